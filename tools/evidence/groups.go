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
	named   map[string]bool // those of renames
	out     []change.Group
}

func (g *grouping) mechanical() {
	g.renames()
	g.formatting()
	g.imports()
}

// untouched reports whether only verified hunks changed a declaration. Those of a generator change what it declares, unless they are
// inside of it; a rename changes only how the declaration names others.
func (g *grouping) untouched(c changed) bool {
	only := g.in
	switch c.what {
	case change.UseRemoved:
		return false
	case change.UseSignature:
		only = g.named
	}
	first, _ := position(c.file.Old, c.sym.Bare)
	last, _ := position(c.file.Old, c.sym.End)
	hit := false
	for _, h := range c.file.Hunks {
		if h.OldStart > last+1 || h.OldStart+max(h.OldLines, 1) <= first+1 {
			continue
		}
		if hit = true; !only[h.ID] {
			return false
		}
	}
	return hit
}

// claim notes that hunks are in a group.
func (g *grouping) claim(hunks []string) {
	for _, h := range hunks {
		g.in[h] = true
	}
}

// place is the place of a hunk in the order of the set.
func (g *grouping) place(id string) (n int) {
	for i := range g.set.Files {
		if at := order(&g.set.Files[i], id); at >= 0 {
			return n + at
		}
		n += len(g.set.Files[i].Hunks)
	}
	return n
}

// add adds a group of hunks, in the order of the set.
func (g *grouping) add(kind, title string, hunks []string) {
	g.claim(hunks)
	if kind == change.GroupRename {
		for _, h := range hunks {
			g.named[h] = true
		}
	}
	g.out = append(g.out, change.Group{Kind: kind, Title: title, Hunks: hunks, Verified: kind != change.GroupTogether})
}

// maxRenames limits the renames that are tried: each is a search of the project.
const maxRenames = 8

// rename is one that the proposal contains, as the server does it on the old texts.
type rename struct {
	of    []changed // the declaration; of a method of an interface also those of the types that implement it
	to    string
	edits map[string]lspbridge.FileEdit // by path
	hunks []string
	with  []*rename // those that changed names in its hunks too
}

// renames finds declarations that disappeared while another one of the same kind appeared, and asks the server to rename them. A
// hunk belongs to a rename if it is in its result, or in that of all renames together: a line can have several names.
func (g *grouping) renames() {
	list := g.tryRenames()
	for i := range g.set.Files {
		f := &g.set.Files[i]
		var in []*rename
		for _, r := range list {
			if e, ok := r.edits[f.Path]; ok {
				ids := g.same(f, e.New)
				r.hunks = append(r.hunks, ids...)
				g.claim(ids)
				in = append(in, r)
			}
		}
		if len(in) < 2 {
			continue
		}
		if all, ok := combined(f.Old, f.Path, in); ok {
			for _, id := range g.same(f, all) {
				var both []*rename
				for _, r := range in {
					if r.touches(f, id) {
						both = append(both, r)
					}
				}
				if len(both) > 0 {
					both[0].hunks = append(both[0].hunks, id)
					both[0].with = append(both[0].with, both[1:]...)
					g.claim([]string{id})
				}
			}
		}
	}
	same := map[string]int{}
	for _, r := range list {
		same[r.names()]++
	}
	title := func(r *rename) string {
		words := r.names()
		if same[words] > 1 { // several declarations have this name
			words += " (declared in " + filepath.Base(r.of[0].file.Path) + ")"
		}
		if places, total := g.placesOf(r); places < total {
			return words + fmt.Sprintf(", %d of %d places; the others are in hunks with other changes, or were not renamed", places, total)
		} else {
			return words + ", " + textutil.Plural(places, "place")
		}
	}
	for _, r := range list {
		if len(r.hunks) == 0 {
			continue
		}
		slices.SortFunc(r.hunks, func(a, b string) int { return g.place(a) - g.place(b) })
		words := "verified rename " + title(r)
		// One that has no hunk of its own is named with the one that has them.
		for i, w := range r.with {
			if len(w.hunks) == 0 && !slices.Contains(r.with[:i], w) {
				words += "; " + title(w)
			}
		}
		g.add(change.GroupRename, words, r.hunks)
	}
}

func (r *rename) names() string { return r.of[0].sym.Name() + " → " + r.to }

// tryRenames asks the server for the renames of the declarations that are gone.
func (g *grouping) tryRenames() (list []*rename) {
	tried := 0
next:
	for _, c := range declarations(g.set) {
		if c.what != change.UseRemoved {
			continue
		}
		to, ok := successor(c)
		if !ok {
			continue
		}
		// A rename that renames this declaration too is the same one.
		for _, r := range list {
			if e, ok := r.edits[c.file.Path]; ok && r.to == to && r.of[0].sym.Name() == c.sym.Name() && changesAt(e, c.sym.At) {
				r.of = append(r.of, c)
				continue next
			}
		}
		if tried++; tried > maxRenames {
			return list
		}
		line, col := position(c.file.Old, c.sym.At)
		edits, err := g.servers.Rename(g.ctx, c.file.Path, lspbridge.Position{Line: line, Character: col}, to)
		if err != nil || len(edits) == 0 {
			continue
		}
		r := &rename{of: []changed{c}, to: to, edits: map[string]lspbridge.FileEdit{}}
		for _, f := range g.set.Files {
			for _, e := range edits {
				if e.Path == f.Path && e.Old == f.Old && e.NewPath == "" {
					r.edits[f.Path] = e
				}
			}
		}
		list = append(list, r)
	}
	return list
}

// placesOf counts where the renamed declarations are and are used, and how many of these places are in verified hunks.
func (g *grouping) placesOf(r *rename) (places, total int) {
	seen := map[lspbridge.Location]bool{}
	for _, c := range r.of {
		line, col := position(c.file.Old, c.sym.At)
		at := lspbridge.Position{Line: line, Character: col}
		refs, err := g.servers.References(g.ctx, c.file.Path, at)
		if err != nil {
			continue
		}
		for _, l := range append(refs, lspbridge.Location{Path: c.file.Path, Range: lspbridge.Range{Start: at}}) {
			l.Range.End = lspbridge.Position{} // the declaration itself may be in the list
			if seen[l] {
				continue
			}
			seen[l] = true
			total++
			if g.in[hunkAt(g.set, l.Path, l.Range.Start.Line+1)] {
				places++
			}
		}
	}
	return places, total
}

// span is a part of an old text, in bytes, and what a rename makes of it.
type span struct {
	start, end int
	text       string
}

// spans are the words that a rename changes in a file; false if it changes more than words.
func spans(e lspbridge.FileEdit) (out []span, ok bool) {
	a, b := word().FindAllStringIndex(e.Old, -1), word().FindAllString(e.New, -1)
	if len(a) != len(b) {
		return nil, false
	}
	for i, at := range a {
		if e.Old[at[0]:at[1]] != b[i] {
			out = append(out, span{at[0], at[1], b[i]})
		}
	}
	return out, true
}

func changesAt(e lspbridge.FileEdit, at int) bool {
	list, ok := spans(e)
	return ok && slices.ContainsFunc(list, func(s span) bool { return s.start <= at && at < s.end })
}

// combined is the text of a file after several renames; false if they cannot be done together.
func combined(old, path string, list []*rename) (string, bool) {
	var all []span
	for _, r := range list {
		one, ok := spans(r.edits[path])
		if !ok {
			return "", false
		}
		all = append(all, one...)
	}
	slices.SortFunc(all, func(a, b span) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, s := range all {
		if s.start < at {
			return "", false
		}
		b.WriteString(old[at:s.start] + s.text)
		at = s.end
	}
	return b.String() + old[at:], true
}

// touches reports whether a rename changes a line of a hunk.
func (r *rename) touches(f *change.File, id string) bool {
	list, _ := spans(r.edits[f.Path])
	h := f.Hunks[order(f, id)]
	return slices.ContainsFunc(list, func(s span) bool {
		line, _ := position(f.Old, s.start)
		return line+1 >= h.OldStart && line+1 < h.OldStart+h.OldLines
	})
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
