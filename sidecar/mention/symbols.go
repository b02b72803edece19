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

	ctx  context.Context // the listings': a listing outlives the request that began it
	wg   sync.WaitGroup
	mu   sync.Mutex
	kept map[string]*index // by folder; guarded by mu
}

// foundSymbol is a declaration that fits a query.
type foundSymbol struct {
	name  string // with what it stands in: Server.Start
	path  string // absolute
	at    protocol.Range
	score int
	marks []int // offsets in name that the query met, in bytes
}

type index struct {
	busy  bool // guarded by declarations.mu
	made  time.Time
	list  *fuzzy.List
	decl  []declared
	files map[string]outlined // owned by whoever makes the index
}

type declared struct {
	name string
	path string // absolute
	at   protocol.Range
}

type outlined struct {
	size int64
	time time.Time
	decl []declared
}

func (d *declarations) find(ctx context.Context, cwd, query string, limit int) []foundSymbol {
	out := d.local(cwd, query, limit)
	m := d.server(cwd)
	if m == nil || !m.Running() {
		return out
	}
	list, err := m.WorkspaceSymbols(ctx, "", query)
	if err != nil || len(list) == 0 {
		return out
	}
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
		if slices.ContainsFunc(out, func(o foundSymbol) bool { return o.path == x.Path && o.at.Start.Line == at.Start.Line }) {
			continue
		}
		out = append(out, foundSymbol{name: x.Name, path: x.Path, at: at, score: b.Score, marks: ranked.Positions(query, b.Index)})
	}
	return out
}

func (d *declarations) server(cwd string) *lspbridge.Manager {
	if d.servers == nil {
		return nil
	}
	return d.servers(cwd)
}

// local looks into the index as it is now and has it made anew when it is old.
func (d *declarations) local(cwd, query string, limit int) []foundSymbol {
	d.mu.Lock()
	x := d.kept[cwd]
	if x == nil {
		for len(d.kept) >= maxLists {
			for other := range d.kept {
				delete(d.kept, other)
				break
			}
		}
		x = &index{files: map[string]outlined{}}
		d.kept[cwd] = x
	}
	if !x.busy && time.Since(x.made) > outlineAge {
		x.busy = true
		d.wg.Go(func() { d.make(cwd, x) })
	}
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

// make outlines what is new or has changed.
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

// declaredIn are a text's declarations but those inside functions.
func declaredIn(path, text string) (out []declared) {
	list, err := symbol.Outline(path, text)
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(s symbol.Symbol) bool { return s.Local })
	slices.SortStableFunc(list, func(a, b symbol.Symbol) int { return a.At - b.At })
	done, line, start := 0, int64(0), 0
	for _, s := range list {
		for ; done < s.At; done++ {
			if text[done] == '\n' {
				line, start = line+1, done+1
			}
		}
		from := int64(len(utf16.Encode([]rune(text[start:s.At]))))
		to := from + int64(len(utf16.Encode([]rune(s.Name()))))
		out = append(out, declared{name: s.String(), path: path, at: protocol.Range{
			Start: protocol.Position{Line: line, Character: from}, End: protocol.Position{Line: line, Character: to}}})
	}
	return out
}
