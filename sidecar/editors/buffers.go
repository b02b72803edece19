package editors

import (
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/files"
)

// Buffers are the documents an editor has open, as it reports them. The editor owns the truth; this is its mirror.
// It is safe for concurrent use.
type Buffers struct {
	mu   sync.Mutex
	docs map[string]*document // by cleaned path; guarded by mu
	real map[string]string    // path without symlinks → the path the editor uses; guarded by mu

	// touched is called after every change of a text, once for each of its paths; nil: nobody. It is set once and needs no lock.
	touched func(path string)
}

// document is one open buffer. uri is as the editor spelled it: answers must name the document in its own words.
type document struct {
	path    string // cleaned
	uri     string
	text    string
	version int32 // the editor's, as in LSP; edits that we send name it
	dirty   bool  // has changes that are not on the disk
}

var _ files.Buffers = (*Buffers)(nil)

// NewBuffers makes an empty mirror. touched is called after every change of a text, once for each of its paths; nil: not.
func NewBuffers(touched func(path string)) *Buffers {
	return &Buffers{docs: map[string]*document{}, real: map[string]string{}, touched: touched}
}

// Buffer implements files.Buffers. The path of the answer is the one that the editor uses, which may lead to the file by a link.
func (b *Buffers) Buffer(path string) (files.Buffer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.find(path)
	if d == nil {
		return files.Buffer{}, false
	}
	return files.Buffer{Path: d.path, Text: d.text, Version: d.version, Dirty: d.dirty}, true
}

// Dirty implements files.Buffers: the documents with unsaved changes, in no order.
func (b *Buffers) Dirty() []files.Buffer {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []files.Buffer
	for _, d := range b.docs {
		if d.dirty {
			out = append(out, files.Buffer{Path: d.path, Text: d.text, Version: d.version, Dirty: true})
		}
	}
	return out
}

// find looks a document up under its own path or through symlinks. b.mu is held.
func (b *Buffers) find(path string) *document {
	path = filepath.Clean(path)
	if d := b.docs[path]; d != nil {
		return d
	}
	if p, ok := b.real[path]; ok {
		return b.docs[p]
	}
	return nil
}

// URI is how the editor names an open document, or the plain file URI.
func (b *Buffers) URI(path string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.find(path); d != nil {
		return d.uri
	}
	return PathURI(path)
}

// notifyTouched calls touched for a document whose text has changed, with its own path and with its path without links. Language servers
// may know the file by either. b.mu must not be held: touched may ask for the text.
func (b *Buffers) notifyTouched(path string) {
	if b.touched == nil {
		return
	}
	paths := []string{path}
	b.mu.Lock()
	for real, p := range b.real {
		if p == path {
			paths = append(paths, real)
		}
	}
	b.mu.Unlock()
	for _, p := range paths {
		b.touched(p)
	}
}

// DidOpen takes in a document. URIs that name no file (untitled documents) are ignored.
func (b *Buffers) DidOpen(p protocol.DidOpenParams) {
	path, ok := URIPath(p.TextDocument.URI)
	if !ok {
		return // untitled documents and the like are not files
	}
	defer b.notifyTouched(path)
	// Before the lock, since it asks the disk. A file that does not exist yet has one name only.
	real, err := filepath.EvalSymlinks(path)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.docs[path] = &document{path: path, uri: p.TextDocument.URI, text: p.TextDocument.Text, version: p.TextDocument.Version, dirty: p.TextDocument.Dirty}
	if err == nil && real != path {
		b.real[real] = path
	}
}

// DidChange applies LSP content changes in their order, each to the text that the one before left. Lines count from 0,
// characters in UTF-16 units. A change of a document that is not open is ignored, and so is one with a version below the
// present: a later text is known already. Without "dirty" the text counts as unsaved, which is the safe mistake.
func (b *Buffers) DidChange(p protocol.DidChangeParams) {
	path, ok := URIPath(p.TextDocument.URI)
	if !ok {
		return
	}
	defer b.notifyTouched(path)
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.docs[path]
	if d == nil {
		return
	}
	if v := p.TextDocument.Version; v != nil {
		if *v < d.version {
			return
		}
		d.version = *v
	} else {
		// Without a number the editor's changes still have an order.
		d.version++
	}
	for _, c := range p.ContentChanges {
		if c.Range == nil {
			d.text = c.Text
			continue
		}
		from, to := PositionOffset(d.text, c.Range.Start), PositionOffset(d.text, c.Range.End)
		if to < from {
			from, to = to, from
		}
		d.text = d.text[:from] + c.Text + d.text[to:]
	}
	d.dirty = p.Dirty == nil || *p.Dirty
}

// DidSave says that the disk has the document's text. The text itself stays, as the editor reported it.
func (b *Buffers) DidSave(p protocol.DidSaveParams) {
	path, ok := URIPath(p.TextDocument.URI)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.docs[path]; d != nil {
		d.dirty = false
	}
}

// DidClose forgets a document: the disk's text counts from now on.
func (b *Buffers) DidClose(p protocol.DidCloseParams) {
	path, ok := URIPath(p.TextDocument.URI)
	if !ok {
		return
	}
	defer b.notifyTouched(path)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.docs, path)
	for real, p := range b.real {
		if p == path {
			delete(b.real, real)
		}
	}
}

// applied sets what a workspace edit left in a buffer, before the editor's own didChange says so. Where that was faster, the version is
// known already and nothing happens: the text may be later than this one.
func (b *Buffers) applied(path, text string, version int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.find(path); d != nil && version > d.version {
		d.text, d.version, d.dirty = text, version, true
	}
}

// URIPath gives the absolute path of a file URI (RFC 8089), or of a plain absolute path, as some clients send it. ok is false for other
// schemes, such as untitled: documents.
func URIPath(uri string) (string, bool) {
	if filepath.IsAbs(uri) {
		return filepath.Clean(uri), true
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" {
		return "", false
	}
	p := u.Path
	if len(p) > 2 && p[0] == '/' && p[2] == ':' {
		p = p[1:] // /C:/x
	}
	return filepath.Clean(filepath.FromSlash(p)), true
}

// PathURI is the file URI of an absolute path; a Windows drive gets the slash in front that RFC 8089 asks for.
func PathURI(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}

// lineEnd finds the end of the line that starts at i: the offset of its break (or of the end) and of the next line.
// Breaks are LSP's: \n, \r\n and \r. next is len(text)+1 when there is no break.
func lineEnd(text string, i int) (end, next int) {
	n := strings.IndexAny(text[i:], "\r\n")
	if n < 0 {
		return len(text), len(text) + 1
	}
	end = i + n
	if text[end] == '\r' && end+1 < len(text) && text[end+1] == '\n' {
		return end, end + 2
	}
	return end, end + 1
}

// PositionOffset turns a position (line and UTF-16 character from 0) into a byte offset. What lies beyond the line or
// the text is clamped, as LSP asks; a character inside a surrogate pair is its start.
func PositionOffset(text string, p protocol.Position) int {
	if p.Line < 0 {
		return 0
	}
	i := 0
	for range p.Line {
		_, next := lineEnd(text, i)
		if next > len(text) {
			return len(text)
		}
		i = next
	}
	end, _ := lineEnd(text, i)
	for units := int64(0); i < end && units < p.Character; {
		r, n := utf8.DecodeRuneInString(text[i:])
		if units += int64(utf16.RuneLen(r)); units > p.Character {
			break
		}
		i += n
	}
	return i
}

// OffsetPosition turns a byte offset into a position (line and UTF-16 character from 0).
func OffsetPosition(text string, offset int) protocol.Position {
	offset = min(max(offset, 0), len(text))
	var p protocol.Position
	i := 0
	for {
		end, next := lineEnd(text, i)
		if next > offset {
			offset = min(offset, end) // between \r and \n there is no position
			break
		}
		i = next
		p.Line++
	}
	for i < offset {
		r, n := utf8.DecodeRuneInString(text[i:])
		if i += n; i > offset {
			break // nor is there one inside a character
		}
		p.Character += int64(max(utf16.RuneLen(r), 1))
	}
	return p
}
