package lspbridge

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// document is a file as the server has it open. Callers get copies; the original is guarded by documents.mu.
type document struct {
	text    string
	version int32  // starts at 1 and never repeats for a path, even after didClose
	seq     uint64 // ledger.seq when this text was sent
	used    uint64 // documents.tick at the last use; the smallest is closed first

	buffered bool // the text is the editor's buffer, not the file on disk
}

// maxOpen is how many documents stay open in one server: each costs memory there, and some servers diagnose all open documents after every
// change.
const maxOpen = 200

// documents are the files that one run of a server has open. The lock is held while a notification is queued, so that versions are sent in
// ascending order. That cannot block: the queue never waits for the server.
type documents struct {
	wire   notifier
	able   *abilities
	quirks Quirks

	mu       sync.Mutex // guards what follows
	open     map[string]*document
	versions map[string]int32  // last version by path; kept after didClose
	earlier  map[string][]sent // the last versions of each path, oldest first
	tick     uint64            // counts uses, to order them by time
}

// sent is the text of one version, as a hash: what the server reports about that version holds for every later version with the same text.
type sent struct {
	version int32
	bytes   int
	sum     uint64 // hash of the text, by textSum
}

// maxEarlier is how many versions of a file are remembered. Each check and each question about a draft's texts makes two.
const maxEarlier = 64

// textSum differs in each process; hashes are never stored.
var textSum = maphash.MakeSeed()

// notifier is the part of the client that documents calls.
type notifier interface {
	// notify queues a notification.
	notify(method string, params any) error
	// mark counts a notification that may change diagnostics, before it is sent; it returns the number of the new state.
	mark(cause string) (seq uint64)
}

// newDocuments returns documents with no file open. wire is called with the lock held.
func newDocuments(wire notifier, able *abilities, quirks Quirks) *documents {
	return &documents{wire: wire, able: able, quirks: quirks, open: map[string]*document{}, versions: map[string]int32{}, earlier: map[string][]sent{}}
}

// put makes text the server's text of path: it opens the document or sends the difference. sent is false when the server has the text
// already or accepts no texts.
func (d *documents) put(path, text string) (version int32, sent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text = validUTF8(text)
	d.tick++
	wishes := d.able.wishes()
	doc := d.open[path]
	if doc != nil && doc.text != text && wishes.change == 0 {
		d.closeLocked(path) // a server without didChange gets a new text only by another didOpen
		doc = nil
	}
	if doc == nil {
		if !wishes.open {
			return 0, false
		}
		d.versions[path]++
		doc = &document{text: text, version: d.versions[path], used: d.tick}
		d.open[path] = doc
		d.remember(path, doc)
		doc.seq = d.wire.mark(causeOpen)
		_ = d.wire.notify(protocol.MethodTextDocumentDidOpen, &protocol.DidOpenTextDocumentParams{TextDocument: protocol.TextDocumentItem{
			URI: pathURI(path), LanguageID: protocol.LanguageKind(languageID(path)), Version: doc.version, Text: text}})
		return doc.version, true
	}
	doc.used = d.tick
	if doc.text == text {
		return doc.version, false
	}
	edit := map[string]any{"text": text}
	if wishes.change == 2 {
		if r, with, ok := lineEdit(doc.text, text, d.able.enc); ok {
			edit = map[string]any{"range": r, "text": with}
		}
	}
	doc.text = text
	d.change(path, doc, edit, false)
	return doc.version, true
}

// change sends an edit as the next version. The caller holds d.mu and has already put the edit into doc.text.
func (d *documents) change(path string, doc *document, edit map[string]any, rebuild bool) {
	d.versions[path]++
	doc.version = d.versions[path]
	d.remember(path, doc)
	doc.seq = d.wire.mark(causeChange)
	params := map[string]any{"textDocument": map[string]any{"uri": pathURI(path), "version": doc.version}, "contentChanges": []any{edit}}
	if d.quirks.WantDiagnostics {
		params["wantDiagnostics"] = true
	}
	if rebuild {
		params["forceRebuild"] = true
	}
	_ = d.wire.notify(protocol.MethodTextDocumentDidChange, params)
}

// remember records the text of the document's version. The caller holds d.mu.
func (d *documents) remember(path string, doc *document) {
	list := append(d.earlier[path], sent{doc.version, len(doc.text), maphash.String(textSum, doc.text)})
	d.earlier[path] = list[max(0, len(list)-maxEarlier):]
}

// sameText reports whether a version of an open document had the text that the server has at present. Checks and questions about drafts lay
// other texts over a document and remove them again: that changes the version, but not the text.
func (d *documents) sameText(path string, version int32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, list := d.open[path], d.earlier[path]
	if doc == nil {
		return false
	}
	i := slices.IndexFunc(list, func(s sent) bool { return s.version == version })
	return i >= 0 && list[i].bytes == len(doc.text) && list[i].sum == maphash.String(textSum, doc.text)
}

// rebuild makes a server check these files again although their text is the same: a file that they include or use has changed.
func (d *documents) rebuild(paths []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range paths {
		if doc := d.open[p]; doc != nil {
			d.change(p, doc, map[string]any{"text": doc.text}, true)
		}
	}
}

// close closes a document; it reports whether it was open.
func (d *documents) close(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closeLocked(path)
}

// closeLocked is close for a caller that holds d.mu.
func (d *documents) closeLocked(path string) bool {
	if d.open[path] == nil {
		return false
	}
	delete(d.open, path)
	d.wire.mark(causeClose)
	_ = d.wire.notify(protocol.MethodTextDocumentDidClose, &protocol.DidCloseTextDocumentParams{TextDocument: protocol.TextDocumentIdentifier{URI: pathURI(path)}})
	return true
}

// save sends didSave if the server wants it; some linters run only then.
func (d *documents) save(path string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, w := d.open[path], d.able.wishes()
	if !w.save || doc == nil && w.open {
		return
	}
	p := &protocol.DidSaveTextDocumentParams{TextDocument: protocol.TextDocumentIdentifier{URI: pathURI(path)}}
	if w.text && doc != nil {
		p.Text = &doc.text
	}
	d.wire.mark(causeSave)
	_ = d.wire.notify(protocol.MethodTextDocumentDidSave, p)
}

// trim closes the least recently used documents while more than maxOpen are open; those in keep stay open.
func (d *documents) trim(keep []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.open) > max(maxOpen, len(keep)) {
		oldest := ""
		for p, doc := range d.open {
			if !slices.Contains(keep, p) && (oldest == "" || doc.used < d.open[oldest].used) {
				oldest = p
			}
		}
		if oldest == "" {
			return
		}
		d.closeLocked(oldest)
	}
}

// get returns a copy of an open document; ok is false when path is not open.
func (d *documents) get(path string) (doc document, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.open[path]; have != nil {
		return *have, true
	}
	return document{}, false
}

// has reports whether a file is open.
func (d *documents) has(path string) bool {
	_, ok := d.get(path)
	return ok
}

// wasOpen reports whether a file has ever been open.
func (d *documents) wasOpen(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.versions[path] > 0
}

// unopened returns those of paths that are not open.
func (d *documents) unopened(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), d.has)
}

// setBuffered records whether a document's text is the editor's buffer.
func (d *documents) setBuffered(path string, buffered bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc := d.open[path]; doc != nil {
		doc.buffered = buffered
	}
}

// paths returns all open files, the most recently used first.
func (d *documents) paths() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]string, 0, len(d.open))
	for p := range d.open {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b string) int { return int(int64(d.open[b].used) - int64(d.open[a].used)) })
	return out
}

// among returns those of the paths that are open.
func (d *documents) among(paths []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return d.open[p] == nil })
}

// copies returns copies of those of the paths that are open.
func (d *documents) copies(paths []string) map[string]document {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]document{}
	for _, p := range paths {
		if doc := d.open[p]; doc != nil {
			out[p] = *doc
		}
	}
	return out
}

// versionsOf returns the versions of those of the paths that are open.
func (d *documents) versionsOf(paths []string) map[string]int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[string]int32{}
	for _, p := range paths {
		if doc := d.open[p]; doc != nil {
			out[p] = doc.version
		}
	}
	return out
}

// mentioning returns the open files whose text contains one of the names.
func (d *documents) mentioning(names []string) (out []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, doc := range d.open {
		if slices.ContainsFunc(names, func(n string) bool { return n != "" && strings.Contains(doc.text, n) }) {
			out = append(out, path)
		}
	}
	return out
}

// lineEdit returns the smallest edit of whole lines that turns old into new. Whole lines begin at character 0, which is the same in every
// encoding; only the end of a last line without a newline is not. ok is false when a text has a lone CR, which ends a line in LSP but not
// here.
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

// block is how many bytes are compared at a time: comparing slices is much faster than a loop over bytes, and large texts mostly have long
// common parts.
const block = 64

// commonStart returns the length of the common prefix in bytes.
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

// commonEnd returns the length of the common suffix in bytes.
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

// openOrder orders the files of a proposal: new ones, changed ones, deletions. An import is then resolvable before the file that uses it is
// checked.
func (d *documents) openOrder(f Proposal) int {
	switch {
	case f.Delete:
		return 2
	case !d.has(f.Path):
		return 0
	}
	return 1
}

// with returns paths and all other open documents, whose text may have changed as well.
func (d *documents) with(paths []string) []string {
	open := slices.DeleteFunc(d.paths(), func(p string) bool { return slices.Contains(paths, p) })
	return slices.Concat(paths, open)
}
