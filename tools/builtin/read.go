package builtin

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

//go:embed read.txt
var readText string

// OpenCode's figures.
const (
	readLines   = 2000     // lines of one call when the model names no limit
	readLine    = 2000     // characters of a line that are shown
	readBytes   = 50 << 10 // bytes of line text of one call
	readPreview = 20       // lines in the metadata
)

const (
	readWhole  = 8 << 20  // bytes up to which a file is read at once; above it is streamed
	readMedia  = 20 << 20 // bytes of an image or a PDF
	sampleSize = 4096     // bytes looked at to tell text from other files
)

type readParams struct {
	FilePath string `json:"filePath" jsonschema:"the file or folder to read, absolute or relative to the working directory"`
	Offset   int    `json:"offset,omitempty" minimum:"0" jsonschema:"the first line (or entry) to read, counted from 1"`
	Limit    int    `json:"limit,omitempty" minimum:"0" jsonschema:"how many lines (or entries) to read; 2000 by default"`
}

// Read shows a file, a folder, an image or a PDF.
func Read(env Env) tools.Tool {
	given := &instructions{env: env}
	return tools.New("read", readText, func(ctx context.Context, p readParams, call *tools.Call) (tools.Result, error) {
		path, err := env.abs(p.FilePath)
		if err != nil {
			return tools.Result{}, err
		}
		at, err := env.place(path)
		if err != nil {
			return tools.Result{}, err
		}
		if err := env.askRead(ctx, call, at); err != nil {
			return tools.Result{}, err
		}
		from, limit := max(p.Offset, 1), p.Limit
		if limit == 0 {
			limit = readLines
		}
		call.Report(tools.Update{Title: env.rel(path), Locations: []tools.Location{{Path: path, Line: p.Offset}}})
		var r tools.Result
		if at.dir {
			r, err = env.readDir(at, from, limit)
		} else {
			r, err = env.readFile(ctx, at, from, limit)
		}
		if err != nil {
			return tools.Result{}, err
		}
		r.Title = env.rel(path)
		if r.Locations == nil {
			r.Locations = []tools.Location{{Path: path, Line: p.Offset}}
		}
		if !at.dir {
			text, loaded := given.above(at)
			r.Output += text
			r.Metadata["loaded"] = loaded
		}
		return r, nil
	}, tools.WithKind(tools.KindRead), tools.WithReadOnly(), readNames)
}

// askRead judges a place before anything of it is looked at.
func (e Env) askRead(ctx context.Context, call *tools.Call, at place) error {
	if spill := e.spill(); spill == "" || !files.Within(spill, at.real) { // long outputs that the model was pointed to
		if err := e.askReading(ctx, call, at); err != nil {
			return err
		}
	}
	return e.askContent(ctx, call, at)
}

// askContent judges the reading of a place that is inside, or was asked about.
func (e Env) askContent(ctx context.Context, call *tools.Call, at place) error {
	return ask(ctx, call, permission.Request{
		Permission: "read", Patterns: e.patterns(at.path, at.real), Also: []string{at.path, at.real}, Always: []string{"*"}, Title: "Read " + e.rel(at.path),
		Metadata: map[string]any{"filepath": at.path},
	})
}

// spill is the real path of the folder where long outputs are kept.
func (e Env) spill() string {
	if e.StateDir == "" {
		return ""
	}
	dir, err := files.Real(e.StateDir + "/tool-output")
	if err != nil {
		return ""
	}
	return dir
}

func (e Env) readFile(ctx context.Context, at place, from, limit int) (tools.Result, error) {
	if e.dirty(at) {
		return e.readText(at, from, limit)
	}
	raw, err := files.OpenRaw(at.real)
	if errors.Is(err, fs.ErrNotExist) {
		if e.buffered(at) {
			return e.readText(at, from, limit)
		}
		return tools.Result{}, missing(at.path)
	}
	if err != nil {
		return tools.Result{}, pathError(at.path, err)
	}
	defer raw.Close()
	sample, err := readSample(raw)
	if err != nil {
		return tools.Result{}, pathError(at.path, err)
	}
	if mime := mediaType(sample); mime != "" {
		r, err := readAttachment(at.path, mime, sample, raw)
		if err == nil {
			text, _ := files.Decode(r.Attachments[0].Data)
			e.Tracker.Note(at.real, files.Hash([]byte(text))) // seen, so write may replace it
		}
		return r, err
	}
	if binaryName(at.path) || binaryBytes(sample) {
		return tools.Result{}, &tools.Error{Kind: "binary", Message: "Cannot read binary file: " + at.path + ". Use the shell to look into it (file, strings, hexdump, unzip -l …)."}
	}
	if raw.Size > readWhole {
		return e.streamText(ctx, at, sample, raw, from, limit)
	}
	return e.readText(at, from, limit)
}

func (e Env) buffered(at place) bool {
	if e.Buffers == nil {
		return false
	}
	if _, ok := e.Buffers.Buffer(at.path); ok {
		return true
	}
	_, ok := e.Buffers.Buffer(at.real)
	return ok
}

func (e Env) dirty(at place) bool {
	if e.Buffers == nil {
		return false
	}
	b, ok := e.Buffers.Buffer(at.path)
	if !ok {
		b, ok = e.Buffers.Buffer(at.real)
	}
	return ok && b.Dirty
}

// readText shows a file that fits into memory, as the person sees it.
func (e Env) readText(at place, from, limit int) (tools.Result, error) {
	f, err := files.Open(at.path, e.Buffers)
	if err != nil {
		return tools.Result{}, pathError(at.path, err)
	}
	pg := &page{from: from, limit: limit}
	rest := f.Text
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		pg.line(line)
	}
	r, err := pg.result(at.path)
	if err != nil {
		return tools.Result{}, err
	}
	if f.Dirty {
		r.Metadata["unsaved"] = true
		r.Output = strings.TrimSuffix(r.Output, "</content>") + "(This is the text in the user's editor, with unsaved changes; commands see the file on disk, which differs.)\n</content>"
	}
	if f.Encoding != files.UTF8 {
		r.Metadata["encoding"] = string(f.Encoding)
	}
	e.Tracker.Read(f)
	if e.Bridge != nil {
		e.Bridge.Warm(at.path)
	}
	return r, nil
}

// binaryName knows files by their name that are never text.
func binaryName(path string) bool {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return false
	}
	switch strings.ToLower(path[i+1:]) {
	case "zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "exe", "dll", "so", "dylib", "class", "jar", "war", "doc", "docx", "xls", "xlsx",
		"ppt", "pptx", "odt", "ods", "odp", "bin", "dat", "obj", "o", "a", "lib", "wasm", "pyc", "pyo":
		return true
	}
	return false
}

// binaryBytes says that a file's beginning is no text: a NUL (UTF-16 with its mark aside), or many control characters.
func binaryBytes(b []byte) bool {
	if _, enc := files.Decode(even(b)); enc == files.UTF16LE || enc == files.UTF16BE {
		return false
	}
	odd := 0
	for _, c := range b {
		if c == 0 {
			return true
		}
		if c < 9 || c > 13 && c < 32 && c != 27 {
			odd++
		}
	}
	return odd*10 > len(b)*3
}

// even drops half a code unit, or half a pair, that the sample's end cut.
func even(b []byte) []byte {
	if len(b) < sampleSize {
		return b
	}
	b = b[:len(b)&^1]
	if n := len(b); n > 2 && (b[n-1]&0xFC == 0xD8 || b[n-2]&0xFC == 0xD8) {
		b = b[:n-2]
	}
	return b
}
