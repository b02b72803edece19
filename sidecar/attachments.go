package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
)

// Limits of what -f and a pasted path attach.
const (
	maxAttachedText    = 256 << 10 // bytes of a text file that -f sends; the read tool reads the rest of a longer one
	maxAttachedPicture = 32 << 20  // bytes of a picture or PDF before it is scaled
)

// attachments are the files that a prompt mentions with @, read by the read tool: through the same gate, so that a
// mention in a text that was pasted unread sends no secret. A file that cannot be read adds nothing; the mention
// stays in the text.
func attachments(ctx context.Context, a *app.App, s *agent.Session, text string) []provider.Part {
	if !strings.Contains(text, "@") {
		return nil
	}
	all, err := a.Toolbox().Tools(ctx, s.Info())
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.ID == "read" })
	if err != nil || i < 0 {
		return nil
	}
	// Beside the turn: the session's own calls would wait for the end of the one that runs.
	return slash.Mentioned(text, s.Info().Cwd, func(input json.RawMessage) (agent.ToolData, error) { return s.ToolBeside(ctx, all[i], input) })
}

// fileParts reads the files that -f names. The user has named each, so no approval is asked for. Unlike a mention,
// a file that cannot be attached is an error: the prompt relies on it.
func fileParts(cwd string, names []string) (out []provider.Part, err error) {
	for _, name := range names {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("cannot attach %s: %w", name, err)
		}
		if f, ok := pictureOf(filepath.Base(path), b); ok {
			out = append(out, provider.Part{Type: provider.PartFile, Files: []provider.File{f}})
			continue
		}
		// A null byte is valid UTF-8, but files with one are binary.
		if !utf8.Valid(b) || slices.Contains(b, 0) {
			return nil, fmt.Errorf("cannot attach %s: it is neither text, a picture nor a PDF", name)
		}
		text, rest := string(b), ""
		if len(text) > maxAttachedText {
			rest = fmt.Sprintf("\n(%d more bytes are in the file; the read tool shows them)", len(text)-maxAttachedText)
			// The cut may fall into a character; a provider refuses text that is not UTF-8.
			text = strings.ToValidUTF8(text[:maxAttachedText], "")
		}
		// The fence must be longer than any in the text, or the text would end its own block (CommonMark, fenced
		// code blocks).
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		out = append(out, provider.Part{Type: provider.PartText, Synthetic: true, Text: fmt.Sprintf("Content of %s:\n%s\n%s\n%s%s", path, fence, strings.TrimSuffix(text, "\n"), fence, rest)})
	}
	return out, nil
}

// pictureOf is a picture or PDF with its type, by its first bytes: names lie, and a provider refuses a wrong type.
func pictureOf(name string, b []byte) (provider.File, bool) {
	mime, _, _ := strings.Cut(http.DetectContentType(b), ";")
	if len(b) == 0 || len(b) > maxAttachedPicture || mime != "application/pdf" && !strings.HasPrefix(mime, "image/") {
		return provider.File{}, false
	}
	return provider.File{Mime: mime, Name: name, Data: b}, true
}

// pictureFile reads a picture whose path was pasted, which is what terminals do with a file that is dropped on them: quoted, with
// backslashes, or as a URL.
func pictureFile(text string) (provider.File, bool) {
	path := strings.Trim(text, `"'`)
	// Terminals escape blanks in the path of a dropped file. On Windows a backslash divides folders, so it stays.
	if u, err := url.Parse(path); err == nil && u.Scheme == "file" {
		path = u.Path
	} else if runtime.GOOS != "windows" {
		path = strings.ReplaceAll(path, `\ `, " ")
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".pdf":
	default:
		return provider.File{}, false
	}
	if !filepath.IsAbs(path) {
		return provider.File{}, false // a word of a sentence is not a file
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxAttachedPicture {
		return provider.File{}, false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return provider.File{}, false
	}
	return pictureOf(filepath.Base(path), b)
}

// clipboardPrograms write the clipboard's image to standard output, by system (GOOS); the first one that is
// installed and succeeds counts. On Linux wl-paste is for Wayland and xclip for X11.
var clipboardPrograms = map[string][][]string{
	"linux":   {{"wl-paste", "--type", "image/png"}, {"xclip", "-selection", "clipboard", "-t", "image/png", "-o"}},
	"darwin":  {{"pngpaste", "-"}},
	"windows": {{"powershell", "-NoProfile", "-Command", "Add-Type -AssemblyName System.Windows.Forms; $i = [Windows.Forms.Clipboard]::GetImage(); if ($i) { $i.Save([Console]::OpenStandardOutput(), [Drawing.Imaging.ImageFormat]::Png) }"}},
}

// clipboardPicture reads the image in the clipboard. Its errors tell a missing program from a clipboard without an
// image.
func clipboardPicture(ctx context.Context) (provider.File, error) {
	var names []string
	installed := false
	for _, words := range clipboardPrograms[runtime.GOOS] {
		names = append(names, words[0])
		if _, err := exec.LookPath(words[0]); err != nil {
			continue
		}
		installed = true
		// Person: such a program needs the person's whole environment (display, Wayland socket).
		out, err := guard.CommandContext(ctx, guard.Person, words...).Output()
		if f, ok := pictureOf("clipboard.png", out); err == nil && ok {
			return f, nil
		}
	}
	if !installed {
		return provider.File{}, fmt.Errorf("no image from the clipboard: install %s, or paste a picture's path", strings.Join(names, " or "))
	}
	return provider.File{}, errors.New("the clipboard contains no image")
}
