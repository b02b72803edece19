package mention

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/fuzzy"
	"github.com/pillion-dev/pillion/tools/symbol"
)

// Limits of an index, so that a home folder that is opened as a project neither fills the memory nor keeps a core
// busy.
const (
	maxOutlined = 4000             // files whose declarations are kept
	maxOutline  = 256 << 10        // bytes of such a file
	maxDeclared = 60_000           // declarations of a project
	outlineAge  = 20 * time.Second // an older index looks again at what has changed on the disk
)

// declarations are an index of a project's symbols by tree-sitter, made behind the answers: the first questions find
// little or nothing in it. Language servers that run are asked besides.
type declarations struct {
	names   func(ctx context.Context, cwd string) (*names, error)
	servers func(cwd string) *lspbridge.Manager // see Options.Servers

	ctx context.Context // the listings': a listing outlives the request that began it
	// wg counts the goroutines of make; Finder.Close waits for them, after ctx has ended.
	wg   sync.WaitGroup
	mu   sync.Mutex
	kept map[string]*index // by folder; guarded by mu
}

// foundSymbol is a declaration that fits a query.
type foundSymbol struct {
	name  string // with the names around it: Server.Start
	path  string // absolute
	at    protocol.Range
	score int
	marks []int // offsets in name that the query met, in bytes
}

// index is the declarations of one folder, and how far they are. list and decl have the same order, so a rank in
// list is an index of decl. list, decl and made are guarded by declarations.mu.
type index struct {
	busy  bool // guarded by declarations.mu
	made  time.Time
	list  *fuzzy.List
	decl  []declared
	files map[string]outlined // owned by the goroutine that makes the index
}

// declared is one declaration; at is the range of its name, in LSP's units: lines and UTF-16 code units from 0.
type declared struct {
	name string
	path string // absolute
	at   protocol.Range
}

// outlined is what is known of one file. A file of the same size and time is not parsed again.
type outlined struct {
	size int64
	time time.Time
	decl []declared
}

// find ranks what fits a query: the index first, then what running language servers know besides. A server that
// fails or is late adds nothing, and ctx bounds how long it may take.
func (d *declarations) find(ctx context.Context, cwd, query string, limit int) []foundSymbol {
	out := d.local(cwd, query, limit)
	m := d.server(cwd)
	// A server is not started for a mention: that may take long, and what is typed is shown at once.
	if m == nil || !m.Running() {
		return out
	}
	list, err := m.WorkspaceSymbols(ctx, "", query)
	if err != nil || len(list) == 0 {
		return out
	}
	// Servers match a query in their own ways, so their answers are ranked again: scores must be comparable.
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = x.Name
	}
	ranked := fuzzy.New(texts)
	best, _ := ranked.Best(query, limit)
	for _, b := range best {
		x := list[b.Index]
		place := func(p lspbridge.Position) protocol.Position {
			return protocol.Position{Line: int64(p.Line), Character: int64(p.Character)}
		}
		at := protocol.Range{Start: place(x.Range.Start), End: place(x.Range.End)}
		// The same declaration from both sources: one place, one line.
		if slices.ContainsFunc(out, func(o foundSymbol) bool { return o.path == x.Path && o.at.Start.Line == at.Start.Line }) {
			continue
		}
		out = append(out, foundSymbol{name: x.Name, path: x.Path, at: at, score: b.Score, marks: ranked.Positions(query, b.Index)})
	}
	return out
}

// server is the manager of a folder's language servers; nil where there are none.
func (d *declarations) server(cwd string) *lspbridge.Manager {
	if d.servers == nil {
		return nil
	}
	return d.servers(cwd)
}

// local looks into the index as it is now and has it made again when it is old.
func (d *declarations) local(cwd, query string, limit int) []foundSymbol {
	d.mu.Lock()
	x := d.kept[cwd]
	if x == nil {
		// Any other index is dropped, since none is more likely to be asked for; it costs one more pass to make it
		// again.
		for len(d.kept) >= maxLists {
			for other := range d.kept {
				delete(d.kept, other)
				break
			}
		}
		x = &index{files: map[string]outlined{}}
		d.kept[cwd] = x
	}
	// busy keeps two goroutines from making one index: files in it belongs to the one that does.
	if !x.busy && time.Since(x.made) > outlineAge {
		x.busy = true
		d.wg.Go(func() { d.make(cwd, x) })
	}
	// list and decl are replaced and never changed, so they may be read after the lock is released.
	list, decl := x.list, x.decl
	d.mu.Unlock()
	if list == nil {
		return nil
	}
	var out []foundSymbol
	best, _ := list.Best(query, limit)
	for _, b := range best {
		s := decl[b.Index]
		out = append(out, foundSymbol{name: s.name, path: s.path, at: s.at, score: b.Score, marks: list.Positions(query, b.Index)})
	}
	return out
}

// make outlines what is new or has changed, and publishes the result in one step. It runs without the lock,
// because it reads files. When the listing fails the index becomes empty, and is tried again when it is old.
func (d *declarations) make(cwd string, x *index) {
	var all []declared
	if n, err := d.names(d.ctx, cwd); err == nil {
		all = d.outline(cwd, x, n)
	}
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.name
	}
	list := fuzzy.New(texts)
	d.mu.Lock()
	defer d.mu.Unlock()
	x.busy, x.made, x.list, x.decl = false, time.Now(), list, all
}

// outline reads the files of a listing until a limit is reached or the Finder closes. Files that are gone are
// forgotten, because x.files is replaced.
func (d *declarations) outline(cwd string, x *index, n *names) (all []declared) {
	files := map[string]outlined{}
	for i := range n.files {
		if len(files) == maxOutlined || len(all) >= maxDeclared || d.ctx.Err() != nil {
			break
		}
		path := filepath.Join(cwd, filepath.FromSlash(n.list.Name(i)))
		if !symbol.Supported(path) {
			continue
		}
		// Lstat: a link could lead out of the project, or to a pipe that never ends.
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxOutline {
			continue
		}
		o, ok := x.files[path]
		if !ok || o.size != info.Size() || !o.time.Equal(info.ModTime()) {
			raw, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			o = outlined{info.Size(), info.ModTime(), declaredIn(path, string(raw))}
		}
		files[path] = o
		all = append(all, o.decl...)
	}
	x.files = files
	return all
}

// declaredIn are a text's declarations but those inside functions, which no prompt mentions by name. None for a
// text without a grammar.
func declaredIn(path, text string) (out []declared) {
	list, err := symbol.Outline(path, text)
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(s symbol.Symbol) bool { return s.Local })
	// In the order of the text, so that lines are counted in one pass over it.
	slices.SortStableFunc(list, func(a, b symbol.Symbol) int { return a.At - b.At })
	done, line, start := 0, int64(0), 0
	for _, s := range list {
		for ; done < s.At; done++ {
			if text[done] == '\n' {
				line, start = line+1, done+1
			}
		}
		// LSP counts characters in UTF-16 code units unless something else is negotiated; the text has bytes.
		from := int64(len(utf16.Encode([]rune(text[start:s.At]))))
		to := from + int64(len(utf16.Encode([]rune(s.Name()))))
		out = append(out, declared{name: s.String(), path: path, at: protocol.Range{
			Start: protocol.Position{Line: line, Character: from}, End: protocol.Position{Line: line, Character: to}}})
	}
	return out
}
