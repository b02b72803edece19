package builtin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
)

//go:embed read.txt
var readText string

// Limits of one page, with OpenCode's figures, so that its prompts behave alike.
const (
	readLines   = 2000     // lines of one call when the model gives no limit
	readLine    = 2000     // characters of a line that are shown
	readBytes   = 50 << 10 // bytes of line text of one call
	readPreview = 20       // lines in the metadata
)

const (
	readWhole  = 8 << 20  // bytes; larger files are streamed, so that a page of a log needs little memory
	readMedia  = 20 << 20 // bytes of an image or a PDF; providers refuse larger ones
	sampleSize = 4096     // bytes looked at to tell text from other files
)

// readParams is the tool's input. Offset is the first line, from 1. Both numbers are 0 when the model leaves them out.
type readParams struct {
	FilePath string `json:"filePath"`
	Offset   int    `json:"offset,omitempty" minimum:"0"`
	Limit    int    `json:"limit,omitempty" minimum:"0"`
}

// reader shows files and folders as the person sees them, and records in Tracker what was shown.
type reader struct {
	workspace
	// Tracker must be the one of the session's edit tools: write and edit accept a file as read that is recorded here.
	Tracker *files.Tracker
	Bridge  Bridge // nil: no language servers
}

// Read shows a file, a folder, an image or a PDF.
func Read(env Env) tools.Tool {
	rd := reader{env.workspace(), env.Tracker, env.Bridge}
	// One for the life of the tool, which is that of the session: an instruction file is shown once.
	given := &instructions{workspace: rd.workspace}
	return tools.New("read", readText, func(ctx context.Context, p readParams, call *tools.Call) (tools.Result, error) {
		path, err := rd.abs(p.FilePath)
		if err != nil {
			return tools.Result{}, err
		}
		at, err := rd.place(path)
		if err != nil {
			return tools.Result{}, err
		}
		if err := rd.askRead(ctx, call, at); err != nil {
			return tools.Result{}, err
		}
		// 0 and 1 both mean the first line: models count either way.
		from, limit := max(p.Offset, 1), p.Limit
		if limit == 0 {
			limit = readLines
		}
		call.Report(tools.Update{Title: rd.rel(path), Locations: []tools.Location{{Path: path, Line: p.Offset}}})
		var r tools.Result
		if at.dir {
			r, err = rd.readDir(at, from, limit)
		} else {
			r, err = rd.readFile(ctx, at, from, limit)
		}
		if err != nil {
			return tools.Result{}, err
		}
		r.Title = rd.rel(path)
		// The line that was asked for, so that an editor that follows the agent scrolls there.
		if r.Locations == nil {
			r.Locations = []tools.Location{{Path: path, Line: p.Offset}}
		}
		// Instructions of the folders in between count for work on a file; a listing of a folder is not work in it yet.
		if !at.dir {
			text, loaded := given.above(at)
			r.Output += text
			r.Metadata["loaded"] = loaded
		}
		return r, nil
	}, tools.WithKind(tools.KindRead), tools.WithReadOnly(), readNames)
}

// readFile shows a file according to its content: text as a page, an image or a PDF as an attachment, and an error for other binary files.
// Unsaved text in an editor comes before the disk.
func (rd reader) readFile(ctx context.Context, at place, from, limit int) (tools.Result, error) {
	if rd.dirty(at) {
		return rd.readText(at, from, limit)
	}
	raw, err := files.OpenExact(at.real)
	if errors.Is(err, fs.ErrNotExist) {
		// A document that was never saved exists for the person, although not on the disk.
		if rd.buffered(at) {
			return rd.readText(at, from, limit)
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
	// An image must be a file on the disk: no editor holds one in a text buffer.
	if mime := mediaType(sample); mime != "" {
		r, err := readAttachment(at.path, mime, sample, raw)
		if err == nil {
			text, _ := files.Decode(r.Attachments[0].Data)
			rd.Tracker.Note(at.real, files.Hash([]byte(text))) // it counts as read, so write may replace it
		}
		return r, err
	}
	if binaryName(at.path) || binaryBytes(sample) {
		return tools.Result{}, &tools.Error{Kind: "binary", Message: "Cannot read binary file: " + at.path + ". Use the shell to look into it (file, strings, hexdump, unzip -l …)."}
	}
	if raw.Size > readWhole {
		return rd.streamText(ctx, at, sample, raw, from, limit)
	}
	return rd.readText(at, from, limit)
}

// readText shows a file that fits into memory, as the person sees it, and notes it as read. The
// language server is started now, since an edit is likely to follow.
func (rd reader) readText(at place, from, limit int) (tools.Result, error) {
	f, err := files.OpenAt(at.path, at.real, rd.Buffers)
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
	// Without the note the model compares this text with what a command prints of the file, and takes the difference for a bug.
	if f.Dirty {
		r.Metadata["unsaved"] = true
		r.Output = strings.TrimSuffix(r.Output, "</content>") + "(This is the text in the user's editor, with unsaved changes; commands see the file on disk, which differs.)\n</content>"
	}
	if f.Encoding != files.UTF8 {
		r.Metadata["encoding"] = string(f.Encoding)
	}
	// The whole file counts as read although a page was shown: the tracker compares texts, not pages, and an edit quotes what it changes.
	rd.Tracker.Read(f)
	// Reading is often followed by an edit, whose check then finds the server ready.
	if rd.Bridge != nil {
		rd.Bridge.Warm(at.path)
	}
	return r, nil
}

// binaryName reports names of files that are never text, whatever their first bytes look like.
func binaryName(path string) bool {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return false
	}
	// The list need not be complete: the content decides about all other names.
	switch strings.ToLower(path[i+1:]) {
	case "zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "exe", "dll", "so", "dylib", "class", "jar", "war", "doc", "docx", "xls", "xlsx",
		"ppt", "pptx", "odt", "ods", "odp", "bin", "dat", "obj", "o", "a", "lib", "wasm", "pyc", "pyo":
		return true
	}
	return false
}

// isBinary reports whether a file that was opened as text is none, for the edit tools. UTF-16 is decoded here, so it is not judged by its
// NUL bytes. Encoding Bytes is any file that is not valid in the others; with a NUL in it, it is certainly not text.
func isBinary(f *files.File) bool {
	return binaryName(f.Path) || f.Encoding != files.UTF16LE && f.Encoding != files.UTF16BE && binaryBytes([]byte(f.Text[:min(len(f.Text), sampleSize)])) ||
		f.Encoding == files.Bytes && strings.ContainsRune(f.Text, 0)
}

// binaryBytes reports whether the beginning of a file is not text: more than 30 % control characters, or more NULs than a separator needs
// (except UTF-16 with a byte order mark). Text with a NUL here and there is still text.
func binaryBytes(b []byte) bool {
	if _, enc := files.Decode(dropCutUnit(b)); enc == files.UTF16LE || enc == files.UTF16BE {
		return false
	}
	odd, nuls := 0, 0
	// Tab to carriage return (9 to 13) and escape (27, colours in a log) occur in text; other control characters do not.
	for _, c := range b {
		if c == 0 {
			nuls++
		}
		if c < 9 || c > 13 && c < 32 && c != 27 {
			odd++
		}
	}
	// One NUL in 64 bytes is still a separator, as in the output of find -print0. In invalid UTF-8 one NUL is enough.
	return odd*10 > len(b)*3 || nuls > 0 && (nuls > max(1, len(b)/64) || !utf8.Valid(dropCutRune(b)))
}

// dropCutRune drops a character that the sample's end cut in two, which would look like invalid UTF-8.
func dropCutRune(b []byte) []byte {
	// A sample shorter than sampleSize ends with the file, so nothing was cut there and a broken character is the file's own.
	for n := 1; n < utf8.UTFMax && n <= len(b) && len(b) >= sampleSize; n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// dropCutUnit drops half a UTF-16 unit, or half a surrogate pair, that the sample's end cut.
func dropCutUnit(b []byte) []byte {
	if len(b) < sampleSize {
		return b
	}
	b = b[:len(b)&^1]
	// A high surrogate (0xD800 to 0xDBFF) as the last unit has lost its other half. Which byte is the high one depends on the byte order,
	// which is not known here, so both are looked at.
	if n := len(b); n > 2 && (b[n-1]&0xFC == 0xD8 || b[n-2]&0xFC == 0xD8) {
		b = b[:n-2]
	}
	return b
}

// page collects the lines that are asked for and counts all of them. Lines count from 1.
type page struct {
	from, limit int
	// shown holds at most limit lines, and readBytes bytes of them after cutLine.
	shown  []string
	bytes  int
	total  int
	capped bool // the byte limit ended it
	open   bool // total is not known: the file continues
}

// line takes the next line, without its newline, and reports whether later ones can still be shown.
// Lines beyond the page are counted only: the result names the total.
func (p *page) line(s string) bool {
	p.total++
	if p.total < p.from || p.full() {
		return !p.full()
	}
	s = cutLine(strings.TrimSuffix(s, "\r"))
	// The first line is shown however long it is: an empty page with "use offset=1 to continue" would repeat for ever.
	if p.bytes+len(s)+1 > readBytes && len(p.shown) > 0 {
		p.capped = true
		return false
	}
	p.bytes += len(s) + 1
	p.shown = append(p.shown, s)
	return !p.full()
}

// full reports that no later line can be shown.
func (p *page) full() bool { return p.capped || len(p.shown) >= p.limit }

// cutLine keeps the first readLine characters of a long line (minified code, data).
func cutLine(s string) string {
	// Bytes are never fewer than characters, so most lines need no count.
	if len(s) <= readLine {
		return s
	}
	n := 0
	for i := range s {
		if n == readLine {
			return s[:i] + fmt.Sprintf("... (line truncated to %d chars)", readLine)
		}
		n++
	}
	return s
}

// result has OpenCode's tags and words; models are trained on "Use offset=N to continue".
func (p *page) result(path string) (tools.Result, error) {
	// An empty file has no line 1, but reading it from there is no mistake.
	if p.from > max(p.total, 1) {
		return tools.Result{}, &tools.Error{Kind: "out_of_range", Message: fmt.Sprintf("Offset %d is out of range for this file (%d lines)", p.from, p.total)}
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "<path>%s</path>\n<type>file</type>\n<content>\n", path)
	for i, s := range p.shown {
		fmt.Fprintf(&sb, "%d: %s\n", p.from+i, s)
	}
	last := p.from + len(p.shown) - 1
	of := fmt.Sprintf(" of %d", p.total)
	if p.open {
		of = ""
	}
	more := p.open || last < p.total
	switch {
	// In words, because a model takes an empty result for a failure and repeats the call.
	case p.total == 0 && !p.open:
		sb.WriteString("\n(End of file - total 0 lines)\n(The file is empty.)")
	case p.capped:
		fmt.Fprintf(&sb, "\n(Output capped at 50 KB. Showing lines %d-%d. Use offset=%d to continue.)", p.from, last, last+1)
	case more:
		fmt.Fprintf(&sb, "\n(Showing lines %d-%d%s. Use offset=%d to continue.)", p.from, last, of, last+1)
	default:
		fmt.Fprintf(&sb, "\n(End of file - total %d lines)", p.total)
	}
	sb.WriteString("\n</content>")
	return tools.Result{Output: sb.String(), Metadata: map[string]any{
		"preview": strings.Join(p.shown[:min(len(p.shown), readPreview)], "\n"), "truncated": more,
		"display": map[string]any{"type": "file", "path": path, "lineStart": p.from, "lineEnd": last, "totalLines": p.total, "truncated": more},
	}}, nil
}

// readDir lists a folder, one entry a line, in OpenCode's tags. offset and limit count entries; the byte limit is that of a file's page, so
// that node_modules does not fill the context.
func (rd reader) readDir(at place, from, limit int) (tools.Result, error) {
	des, err := os.ReadDir(at.real)
	if err != nil {
		return tools.Result{}, pathError(at.path, err)
	}
	names := make([]string, len(des))
	for i, de := range des {
		names[i] = entryName(at.real, de)
	}
	sortNames(names)
	if from > max(len(names), 1) {
		return tools.Result{}, &tools.Error{Kind: "out_of_range", Message: fmt.Sprintf("Offset %d is out of range for this folder (%d entries)", from, len(names))}
	}
	// from may be 1 with no entries at all.
	shown := names[min(from-1, len(names)):]
	shown = shown[:min(limit, len(shown))]
	for i, n := 0, 0; i < len(shown); i++ {
		if n += len(shown[i]) + 1; n > readBytes {
			shown = shown[:i]
			break
		}
	}
	last := from + len(shown) - 1
	var sb strings.Builder
	fmt.Fprintf(&sb, "<path>%s</path>\n<type>directory</type>\n<entries>\n", at.path)
	for _, n := range shown {
		sb.WriteString(n + "\n")
	}
	if last < len(names) || from > 1 {
		fmt.Fprintf(&sb, "\n(Showing %d of %d entries.", len(shown), len(names))
		if last < len(names) {
			fmt.Fprintf(&sb, " Use 'offset' parameter to read beyond entry %d", last)
		}
		sb.WriteString(")")
	} else {
		fmt.Fprintf(&sb, "\n(%d entries)", len(names))
	}
	sb.WriteString("\n</entries>")
	return tools.Result{Output: sb.String(), Metadata: map[string]any{
		"preview": strings.Join(shown[:min(len(shown), readPreview)], "\n"), "truncated": last < len(names),
		"display": map[string]any{"type": "directory", "path": at.path, "entries": shown, "offset": from, "totalEntries": len(names)},
	}}, nil
}

// entryName is an entry of a folder as shown: folders, and links to them, end in "/".
func entryName(dir string, de os.DirEntry) string {
	name := de.Name()
	isDir := de.IsDir()
	if de.Type()&os.ModeSymlink != 0 {
		// A dangling link stays a plain entry.
		if fi, err := os.Stat(filepath.Join(dir, name)); err == nil {
			isDir = fi.IsDir()
		}
	}
	if q := strconv.Quote(name); !utf8.ValidString(name) || strings.ContainsAny(name, "\n\r\t") {
		name = q // so that one entry is one line
	}
	if isDir {
		name += "/"
	}
	return name
}

// sortNames orders as people read: letter case counts last.
func sortNames(names []string) {
	sort.Slice(names, func(i, j int) bool {
		a, b := strings.ToLower(names[i]), strings.ToLower(names[j])
		if a != b {
			return a < b
		}
		return names[i] < names[j]
	})
}

// readSample is the first sampleSize bytes, fewer at the end of the file. Read may return less than
// asked without an error.
func readSample(r io.Reader) ([]byte, error) {
	b := make([]byte, sampleSize)
	n := 0
	for n < len(b) {
		k, err := r.Read(b[n:])
		n += k
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b[:n], nil
}

// streamText shows a page of a big file in little memory. Up to files.MaxText all of it is read, to count its lines
// and to know its hash; of bigger ones, which cannot be edited anyway, no more than the page.
func (rd reader) streamText(ctx context.Context, at place, sample []byte, raw *files.Raw, from, limit int) (tools.Result, error) {
	// In UTF-16 a '\n' byte may be half of another character, so the text must be decoded as a whole.
	if bytes.HasPrefix(sample, []byte{0xFF, 0xFE}) || bytes.HasPrefix(sample, []byte{0xFE, 0xFF}) {
		return rd.readText(at, from, limit)
	}
	// The hash is that of the decoded text, which has no byte order mark. Without this no edit would recognise the file as read.
	sample = bytes.TrimPrefix(sample, []byte("\xef\xbb\xbf"))
	sum := sha256.New()
	all := io.TeeReader(io.MultiReader(bytes.NewReader(sample), raw), sum)
	if raw.Size > files.MaxText {
		all = io.MultiReader(bytes.NewReader(sample), raw)
	}
	in := bufio.NewReaderSize(all, 256<<10)
	pg := &page{from: from, limit: limit}
	valid := true
	// Of each line only what cutLine could show: readLine characters of at most four bytes. A file that is one line of a gigabyte costs no more.
	keep := make([]byte, 0, 4*readLine)
	for n := 0; ; n++ {
		// Checked only now and then: a canceled turn must not read a log to its end.
		if n%1024 == 0 && ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		keep = keep[:0]
		any := false
		var err error
		// The buffer's 256 KiB may end before the line does; the rest of a long line is read and dropped.
		for {
			var part []byte
			part, err = in.ReadSlice('\n')
			any = any || len(part) > 0
			keep = append(keep, part[:min(len(part), cap(keep)-len(keep))]...)
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
			if ctx.Err() != nil {
				return tools.Result{}, ctx.Err()
			}
		}
		if any {
			line := bytes.TrimSuffix(keep, []byte("\n"))
			// A line that keep could not hold may be cut within a character, so it says nothing about the encoding.
			if len(keep) < cap(keep) {
				valid = valid && utf8.Valid(line)
			}
			more := pg.line(strings.ToValidUTF8(string(line), "\uFFFD"))
			// Files beyond MaxText cannot be edited, so their hash is not needed; reading on would only count lines.
			if !more && raw.Size > files.MaxText {
				pg.open = true
				break
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return tools.Result{}, pathError(at.path, err)
		}
	}
	if !valid && raw.Size <= files.MaxText {
		return rd.readText(at, from, limit) // the whole is needed to know its encoding
	}
	r, err := pg.result(at.path)
	if err != nil {
		return tools.Result{}, err
	}
	if raw.Size > files.MaxText {
		r.Output += fmt.Sprintf("\n\n(The file has %d bytes: too big to edit with the edit tools.)", raw.Size)
	} else {
		rd.Tracker.Note(at.real, hex.EncodeToString(sum.Sum(nil)))
	}
	return r, nil
}

// mediaType recognizes files that models can see, by their first bytes and not by their names, which may be wrong; "" for every other file.
// WebP is a RIFF container that names its content at byte 8.
func mediaType(b []byte) string {
	has := func(s string) bool { return bytes.HasPrefix(b, []byte(s)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return "image/png"
	case has("\xff\xd8\xff"):
		return "image/jpeg"
	case has("GIF87a"), has("GIF89a"):
		return "image/gif"
	case has("RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return "image/webp"
	case has("%PDF-"):
		return "application/pdf"
	}
	return ""
}

// readAttachment is an image or a PDF as an attachment: sample, the bytes that were read already, and the rest of raw.
func readAttachment(path, mime string, sample []byte, raw *files.Raw) (tools.Result, error) {
	if raw.Size > readMedia {
		return tools.Result{}, &tools.Error{Kind: "too_big", Message: fmt.Sprintf("%s has %d bytes; at most %d can be attached. Make a smaller copy with the shell first.", path, raw.Size, readMedia)}
	}
	// The limit holds although Size was checked: the file may grow while it is read.
	rest, err := io.ReadAll(io.LimitReader(raw, readMedia))
	if err != nil {
		return tools.Result{}, pathError(path, err)
	}
	what := "Image"
	if mime == "application/pdf" {
		what = "PDF"
	}
	out := what + " read successfully"
	return tools.Result{
		Output: out, Metadata: map[string]any{"preview": out, "truncated": false},
		Attachments: []tools.Attachment{{Mime: mime, Name: filepath.Base(path), Data: append(sample, rest...)}},
	}, nil
}
