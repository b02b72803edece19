package evidence

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/symbol"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// grouping finds the hunks of a proposal that are one decision. First come mechanical changes: the language server repeats the
// operation on the old text, and a hunk belongs to the group only if it is exactly in the result. Then come hunks that belong
// together: a declaration whose signature changed, and its uses. A hunk is in at most one group.
type grouping struct {
	ctx     context.Context
	servers Servers
	set     *change.Set
	in      map[string]bool // hunks that are in a group
	out     []change.Group
}

func (g *grouping) mechanical() {
	g.renames()
	g.formatting()
	g.imports()
}

// untouched reports whether only the inside of a declaration changed, and only by verified hunks.
func (g *grouping) untouched(c changed) bool {
	if c.what != change.UseBody {
		return false
	}
	first, _ := position(c.file.Old, c.sym.Bare)
	last, _ := position(c.file.Old, c.sym.End)
	hit := false
	for _, h := range c.file.Hunks {
		if h.OldStart > last+1 || h.OldStart+max(h.OldLines, 1) <= first+1 {
			continue
		}
		if hit = true; !g.in[h.ID] {
			return false
		}
	}
	return hit
}

// add adds a group of hunks, in the order of the set.
func (g *grouping) add(kind, title string, hunks []string) {
	for _, h := range hunks {
		g.in[h] = true
	}
	g.out = append(g.out, change.Group{Kind: kind, Title: title, Hunks: hunks, Verified: kind != change.GroupTogether})
}

// maxRenames limits the renames that are tried: each is a search of the project.
const maxRenames = 8

// renames finds declarations that disappeared while another one of the same kind appeared, and asks the server to rename them.
func (g *grouping) renames() {
	tried := 0
	for _, c := range declarations(g.set) {
		if c.what != change.UseRemoved {
			continue
		}
		to, ok := successor(c)
		if !ok {
			continue
		}
		if tried++; tried > maxRenames {
			return
		}
		line, col := position(c.file.Old, c.sym.At)
		at := lspbridge.Position{Line: line, Character: col}
		edits, err := g.servers.Rename(g.ctx, c.file.Path, at, to)
		if err != nil || len(edits) == 0 {
			continue
		}
		var hunks []string
		for i := range g.set.Files {
			f := &g.set.Files[i]
			for _, e := range edits {
				if e.Path == f.Path && e.Old == f.Old && e.NewPath == "" {
					hunks = append(hunks, g.same(f, e.New)...)
				}
			}
		}
		if len(hunks) == 0 {
			continue
		}
		places, total := 0, 0
		if refs, err := g.servers.References(g.ctx, c.file.Path, at); err == nil {
			seen := map[lspbridge.Location]bool{}
			for _, r := range append(refs, lspbridge.Location{Path: c.file.Path, Range: lspbridge.Range{Start: at}}) {
				r.Range.End = lspbridge.Position{} // the declaration itself may be in the list
				if seen[r] {
					continue
				}
				seen[r] = true
				total++
				if slices.Contains(hunks, hunkAt(g.set, r.Path, r.Range.Start.Line+1)) {
					places++
				}
			}
		}
		title := fmt.Sprintf("verified rename %s → %s, %s", c.sym.Name(), to, textutil.Plural(places, "place"))
		if places < total {
			title = fmt.Sprintf("verified rename %s → %s, %d of %d places; the others are in hunks with other changes, or were not renamed", c.sym.Name(), to, places, total)
		}
		g.add(change.GroupRename, title, hunks)
	}
}

// successor is the new name of a renamed declaration. It has the same text except for the name.
func successor(c changed) (string, bool) {
	path := c.file.Path
	if c.file.NewPath != "" {
		path = c.file.NewPath
	}
	now, err := symbol.Outline(path, c.file.New)
	if err != nil {
		return "", false
	}
	old, err := symbol.Outline(c.file.Path, c.file.Old)
	if err != nil {
		return "", false
	}
	known := map[string]bool{}
	for _, s := range old {
		known[s.Kind+" "+s.String()] = true
	}
	var found []string
	for _, s := range now {
		if s.Kind != c.sym.Kind || known[s.Kind+" "+s.String()] || len(s.Path) != len(c.sym.Path) {
			continue
		}
		found = append(found, s.Name())
	}
	// The server checks below whether it is a rename; here there must only be one candidate.
	if len(found) == 1 {
		return found[0], true
	}
	was := words(c.file.Old[c.sym.Bare:c.sym.End])
	for _, s := range now {
		if slices.Contains(found, s.Name()) && s.Kind == c.sym.Kind && len(s.Path) == len(c.sym.Path) && slices.Equal(renamed(was, c.sym.Name(), s.Name()), words(c.file.New[s.Bare:s.End])) {
			return s.Name(), true
		}
	}
	return "", false
}

var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\pL\pN_$]+|[^\pL\pN_$\s]`) })

func words(s string) []string { return word().FindAllString(s, -1) }

func renamed(list []string, from, to string) []string {
	out := slices.Clone(list)
	for i := range out {
		if out[i] == from {
			out[i] = to
		}
	}
	return out
}

// same returns the hunks of a file that are exactly the result of a program on its old text, perhaps formatted by the program's
// formatter afterwards.
func (g *grouping) same(f *change.File, made string) (ids []string) {
	take := func(text string) {
		other := change.New("", []change.File{{Path: f.Path, Kind: change.Edit, Old: f.Old, New: text}})
		for _, h := range f.Hunks {
			if g.in[h.ID] || slices.Contains(ids, h.ID) {
				continue
			}
			if slices.ContainsFunc(other.Files[0].Hunks, func(x change.Hunk) bool {
				return x.OldStart == h.OldStart && x.OldText == h.OldText && x.NewText == h.NewText
			}) || within(h, f.Old, text) {
				ids = append(ids, h.ID)
			}
		}
	}
	take(made)
	if formatted, ok := g.format(f.Path, f.Old, made); ok && formatted != made {
		take(formatted)
	}
	slices.SortFunc(ids, func(a, b string) int { return order(f, a) - order(f, b) })
	return ids
}

// within reports whether a hunk is part of the result, line by line; the lines beside it may belong to another hunk.
func within(h change.Hunk, old, made string) bool {
	a, b := strings.SplitAfter(old, "\n"), strings.SplitAfter(made, "\n")
	if len(a) != len(b) || h.OldLines == 0 || h.OldLines != h.NewLines || h.OldStart-1+h.OldLines > len(b) {
		return false
	}
	return strings.Join(b[h.OldStart-1:h.OldStart-1+h.OldLines], "") == h.NewText
}

func order(f *change.File, id string) int {
	return slices.IndexFunc(f.Hunks, func(h change.Hunk) bool { return h.ID == id })
}

// format returns a text as the server formats it.
func (g *grouping) format(path, old, text string) (string, bool) {
	ctx := lspbridge.WithTexts(g.ctx, []lspbridge.Proposal{{Path: path, Text: text, Old: old}})
	edits, err := g.servers.Format(ctx, path)
	if err != nil {
		return "", false
	}
	return edited(edits, path, text)
}

// edited returns a text after edits of one file; false if the edits are for several files.
func edited(edits []lspbridge.FileEdit, path, text string) (string, bool) {
	for _, e := range edits {
		if e.Path != path || e.Kind != "edit" || e.Old != text {
			return "", false
		}
		text = e.New
	}
	return text, true
}

// redo makes a group of the hunks that a program adds by itself: without these hunks, the program turns the file into the proposed
// text.
func (g *grouping) redo(kind, title string, candidate func(f *change.File, h change.Hunk) bool, run func(f *change.File, text string) (string, bool)) {
	var all []string
	for i := range g.set.Files {
		f := &g.set.Files[i]
		if f.Kind != change.Edit || f.Binary || f.Links() {
			continue
		}
		var ids []string
		for _, h := range f.Hunks {
			if !g.in[h.ID] && candidate(f, h) {
				ids = append(ids, h.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		text, ok := without(f, ids)
		if !ok {
			continue
		}
		if made, ok := run(f, text); ok && made == f.New {
			all = append(all, ids...)
		}
	}
	if len(all) > 0 {
		g.add(kind, fmt.Sprintf("verified %s, %s", title, textutil.Plural(len(all), "hunk")), all)
	}
}

// without returns the new text of a file if some hunks are rejected.
func without(f *change.File, ids []string) (string, bool) {
	one := &change.Set{Files: []change.File{*f}}
	d, err := one.Decide(change.Decisions{}.Rejecting(ids...))
	if err != nil {
		return "", false
	}
	if len(d.Set.Files) == 0 {
		return f.Old, true
	}
	return d.Set.Files[0].New, true
}

// formatting makes a group of hunks that change only white space, if the server's formatter gives the same result.
func (g *grouping) formatting() {
	bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
	g.redo(change.GroupFormat, "formatting", func(_ *change.File, h change.Hunk) bool { return bare(h.OldText) == bare(h.NewText) },
		func(f *change.File, text string) (string, bool) { return g.format(f.Path, f.Old, text) })
}

// importLine matches lines that import something, by extension. A wrong match does no harm, because the server decides.
var importLine = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		".go":   regexp.MustCompile(`^\s*(import\b.*|\(|\)|([\w.]+\s+)?"[^"]+"(\s*//.*)?)?\s*$`),
		".py":   regexp.MustCompile(`^\s*((from|import)\b.*|\)|[\w.]+( as \w+)?,?|)\s*$`),
		".rs":   regexp.MustCompile(`^\s*(use\b.*|\}.*|[\w:{}, ]+,?|)\s*$`),
		".java": regexp.MustCompile(`^\s*(import\b.*|)\s*$`),
	}
})

var scriptImport = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(import\b.*|export\b.*\bfrom\b.*|\}\s*from\b.*|(type\s+)?[\w$]+(\s+as\s+[\w$]+)?,?|)\s*$`)
})

// imports makes a group of changed imports if the server's source.organizeImports gives the same result.
func (g *grouping) imports() {
	g.redo(change.GroupImports, "organised imports", func(f *change.File, h change.Hunk) bool {
		pattern := importLine()[filepath.Ext(f.Path)]
		if pattern == nil {
			switch filepath.Ext(f.Path) {
			case ".ts", ".tsx", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs":
				pattern = scriptImport()
			default:
				return false
			}
		}
		for line := range strings.Lines(h.OldText + h.NewText) {
			if !pattern.MatchString(strings.TrimRight(line, "\r\n")) {
				return false
			}
		}
		return true
	}, func(f *change.File, text string) (string, bool) {
		ctx := lspbridge.WithTexts(g.ctx, []lspbridge.Proposal{{Path: f.Path, Text: text, Old: f.Old}})
		end := lspbridge.Position{Line: strings.Count(text, "\n") + 1}
		actions, err := g.servers.CodeActions(ctx, f.Path, lspbridge.Range{End: end}, []string{"source.organizeImports"}, nil)
		if err != nil || len(actions) == 0 {
			return "", false
		}
		edits, err := g.servers.ResolveAction(ctx, actions[0])
		if err != nil {
			return "", false
		}
		return edited(edits, f.Path, text)
	})
}

// together makes one group of a declaration whose signature changed and its uses in the proposal, because one without the other
// does not compile.
func (g *grouping) together(uses []change.Use) {
	for _, u := range uses {
		if u.What == change.UseBody || u.Inside == 0 || u.Unknown != "" {
			continue
		}
		refs, err := g.servers.References(g.ctx, u.Path, g.nameOf(u))
		if err != nil {
			continue
		}
		wanted := map[string]bool{hunkAt(g.set, u.Path, u.Line): true}
		for _, r := range refs {
			wanted[hunkAt(g.set, r.Path, r.Range.Start.Line+1)] = true
		}
		var ids []string
		for _, f := range g.set.Files {
			for _, h := range f.Hunks {
				if wanted[h.ID] && !g.in[h.ID] {
					ids = append(ids, h.ID)
				}
			}
		}
		if len(ids) < 2 {
			continue
		}
		what := "is declared differently"
		if u.What == change.UseRemoved {
			what = "is removed"
		}
		g.add(change.GroupTogether, fmt.Sprintf("%s %s, with %d of its %s: %s that belong together", u.Name, what, u.Inside, textutil.Plural(u.Uses, "use"), textutil.Plural(len(ids), "hunk")), ids)
	}
}

// nameOf returns where the name of a declaration is in the old text.
func (g *grouping) nameOf(u change.Use) lspbridge.Position {
	for i := range g.set.Files {
		if f := &g.set.Files[i]; f.Path == u.Path {
			list, _ := symbol.Outline(f.Path, f.Old)
			for _, s := range list {
				if line, col := position(f.Old, s.At); s.String() == u.Name && line+1 == u.Line {
					return lspbridge.Position{Line: line, Character: col}
				}
			}
		}
	}
	return lspbridge.Position{Line: u.Line - 1}
}
