package lspbridge

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// document is a file as the server has it open.
type document struct {
	text    string
	version int32
	seq     uint64 // client.seq when this text was sent
	used    uint64 // for closing the longest unused

	buffered bool // the text was an editor's, not the disk's
}

// maxOpen is how many documents stay open in one server.
const maxOpen = 200

// Causes as gopls words them: what a notification makes it diagnose.
const (
	causeOpen    = "opened files"
	causeChange  = "changed files"
	causeSave    = "saved files"
	causeClose   = "closed files"
	causeWatched = "files changed on disk"
	causeInitial = "initial workspace load"
)

// put makes the server's text of path be text: it opens the document or sends the difference. c.mu is held, so that
// versions and the wire keep one order; the outbox never waits. It reports whether anything was sent.
func (c *client) put(path, text string) (version int32, sent bool) {
	text = validUTF8(text)
	c.useTick++
	wishes := c.wishes()
	d := c.docs[path]
	if d != nil && d.text != text && wishes.change == 0 {
		c.close(path) // it takes texts only by opening
		d = nil
	}
	if d == nil {
		if !wishes.open {
			return 0, false
		}
		c.versions[path]++
		d = &document{text: text, version: c.versions[path], used: c.useTick}
		c.docs[path] = d
		c.mark(causeOpen)
		d.seq = c.seq
		_ = c.notify(protocol.MethodTextDocumentDidOpen, &protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{
			URI: pathURI(path), LanguageID: protocol.LanguageKind(languageID(path)), Version: d.version, Text: text}})
		return d.version, true
	}
	d.used = c.useTick
	if d.text == text {
		return d.version, false
	}
	c.versions[path]++
	d.version = c.versions[path]
	c.mark(causeChange)
	d.seq = c.seq
	edit := map[string]any{"text": text}
	if wishes.change == 2 {
		if r, with, ok := lineEdit(d.text, text, c.enc); ok {
			edit = map[string]any{"range": r, "text": with}
		}
	}
	params := map[string]any{"textDocument": map[string]any{"uri": pathURI(path), "version": d.version}, "contentChanges": []any{edit}}
	if c.spec.Quirks.WantDiagnostics {
		params["wantDiagnostics"] = true
	}
	d.text = text
	_ = c.notify(protocol.MethodTextDocumentDidChange, params)
	return d.version, true
}

// shown is the text the server has of an open document.
func (c *client) shown(path string) (text string, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.docs[path]
	if d == nil {
		return "", false
	}
	return d.text, true
}

// close closes a document. c.mu is held.
func (c *client) close(path string) {
	if c.docs[path] == nil {
		return
	}
	delete(c.docs, path)
	c.mark(causeClose)
	_ = c.notify(protocol.MethodTextDocumentDidClose, &protocol.DidCloseTextDocumentParams{TextDocument: protocol.TextDocumentIdentifier{URI: pathURI(path)}})
}

// save tells of a save where the server wants to know. c.mu is held.
func (c *client) save(path string) {
	d, w := c.docs[path], c.wishes()
	if !w.save || d == nil && w.open {
		return
	}
	p := &protocol.DidSaveTextDocumentParams{TextDocument: protocol.TextDocumentIdentifier{URI: pathURI(path)}}
	if w.text && d != nil {
		p.Text = &d.text
	}
	c.mark(causeSave)
	_ = c.notify(protocol.MethodTextDocumentDidSave, p)
}

// fileEvent is a change on disk: 1 created, 2 changed, 3 deleted.
type fileEvent struct {
	path string
	kind int
}

// watched tells of changes on disk. c.mu is held.
func (c *client) watched(events []fileEvent) {
	if len(events) == 0 {
		return
	}
	out := make([]map[string]any, len(events))
	for i, e := range events {
		out[i] = map[string]any{"uri": pathURI(e.path), "type": e.kind}
	}
	c.mark(causeWatched)
	_ = c.notify(protocol.MethodWorkspaceDidChangeWatchedFiles, map[string]any{"changes": out})
}

// echo is what a server's next request for a refresh answers: changes of texts alone, or (also) something whose effect
// is not asked about by itself, files on disk above all, and so must be looked at.
type echo int

const (
	echoNone echo = iota
	echoOfText
	echoOfDisk
)

// mark counts a notification that may change diagnostics. c.mu is held.
func (c *client) mark(cause string) {
	c.seq++
	if cause == causeWatched {
		c.echo = echoOfDisk
	} else {
		c.echo = max(c.echo, echoOfText)
	}
	if c.spec.Quirks.EndMarker {
		c.sent[cause]++
	}
}

// sync opens the files or brings them up to what the person sees; a file that is gone is closed. It reports whether the
// server was told anything.
func (c *client) sync(paths []string) (told bool) {
	texts := make([]string, len(paths))
	there, buffered := make([]bool, len(paths)), make([]bool, len(paths))
	for i, p := range paths { // reading comes before the lock
		if texts[i], buffered[i] = c.host.buffer(p); buffered[i] {
			there[i] = true
		} else {
			texts[i], there[i] = c.host.text(p)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, p := range paths {
		if !there[i] {
			if c.docs[p] != nil {
				c.close(p)
				told = true
			}
			continue
		}
		if _, sent := c.put(p, texts[i]); sent {
			told = true
		}
		if d := c.docs[p]; d != nil {
			d.buffered = buffered[i]
		}
	}
	c.trim(paths)
	return told
}

// trim closes the longest unused documents. c.mu is held.
func (c *client) trim(keep []string) {
	for len(c.docs) > max(maxOpen, len(keep)) {
		oldest := ""
		for p, d := range c.docs {
			if !slices.Contains(keep, p) && (oldest == "" || d.used < c.docs[oldest].used) {
				oldest = p
			}
		}
		if oldest == "" {
			return
		}
		c.close(oldest)
	}
}

// lineEdit is the smallest edit by whole lines that makes new of old. ok is false when whole lines cannot say it.
func lineEdit(old, new string, enc Encoding) (r lsp.Range, with string, ok bool) {
	if loneCR(old) || loneCR(new) {
		return r, "", false
	}
	head := strings.LastIndexByte(old[:commonStart(old, new)], '\n') + 1
	lines := strings.Count(old[:head], "\n")
	o, n := old[head:], new[head:]
	tail := commonEnd(o, n) // bytes, from where a line starts in both texts
	starts := func(s string) bool { return tail == len(s) || s[len(s)-tail-1] == '\n' }
	if !starts(o) || !starts(n) {
		end := o[len(o)-tail:]
		tail = len(end) - 1 - strings.IndexByte(end, '\n')
		if tail == len(end) {
			tail = 0
		}
	}
	r.Start.Line = lsp.Uint(lines)
	cut := o[:len(o)-tail]
	r.End.Line = lsp.Uint(lines + strings.Count(cut, "\n"))
	if last := cut[strings.LastIndexByte(cut, '\n')+1:]; last != "" {
		r.End.Character = lsp.Uint(column(last, len(last), UTF8, enc))
	}
	return r, n[:len(n)-tail], true
}

// block is how many bytes are compared at once.
const block = 64

// commonStart is how many bytes two texts have in common at their start.
func commonStart(a, b string) int {
	n, i := min(len(a), len(b)), 0
	for i+block <= n && a[i:i+block] == b[i:i+block] {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// commonEnd is how many bytes they have in common at their end.
func commonEnd(a, b string) int {
	n, i := min(len(a), len(b)), 0
	for i+block <= n && a[len(a)-i-block:len(a)-i] == b[len(b)-i-block:len(b)-i] {
		i += block
	}
	for i < n && a[len(a)-i-1] == b[len(b)-i-1] {
		i++
	}
	return i
}
