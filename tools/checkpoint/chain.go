package checkpoint

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
)

// chain is the pieces whose files depend on each other: through renames, or because a file is where a folder was that held another.
// They are undone together or not at all, because half of a chain would leave a file under a name that it never had.
type chain struct {
	pieces []*piece // newest first, the order in which they are undone
	paths  []string // all paths that the pieces touch
	nested bool     // one of the paths is a folder of another
}

// tookPlace is the reason for leaving alone a chain in which files and folders would change places. No member of a change set removes a
// folder to make room for a file, so only a part of the chain could be undone.
const tookPlace = "a file and a folder of this name took each other's place since then; it is left as it is, all of it"

// group joins the pieces whose paths depend on each other, so that they are undone or left alone together. Chains keep the order
// in which todo first names one of their paths.
func group(todo []*piece) []*chain {
	g := groups{of: map[string]*chain{}, rank: map[*piece]int{}}
	for i, p := range todo {
		g.rank[p] = i
		c := g.at(p.path)
		c = g.join(c, g.at(p.newAt))
		c.pieces = append(c.pieces, p)
	}
	// sorted, so that equal sessions give equal plans
	for _, path := range slices.Sorted(maps.Keys(g.of)) {
		c := g.of[path]
		// up to the root of the file system, whose parent is itself
		for up := filepath.Dir(path); up != filepath.Dir(up); up = filepath.Dir(up) {
			if above := g.of[up]; above != nil {
				c = g.join(above, c)
				c.nested = true
			}
		}
	}
	return g.order
}

// groups builds the chains. It is a union-find that moves all members at a join, since chains are short.
type groups struct {
	of    map[string]*chain // by path; changes together with order
	order []*chain          // each chain once, in the order in which todo names them
	rank  map[*piece]int    // place in todo, by which a chain keeps its pieces newest first
}

// at is the chain of a path, a new one if need be.
func (g *groups) at(path string) *chain {
	c := g.of[path]
	if c == nil {
		c = &chain{paths: []string{path}}
		g.of[path] = c
		g.order = append(g.order, c)
	}
	return c
}

// join makes one of two chains.
func (g *groups) join(a, b *chain) *chain {
	if a == b {
		return a
	}
	for _, path := range b.paths {
		g.of[path] = a
	}
	a.paths = append(a.paths, b.paths...)
	a.pieces = append(a.pieces, b.pieces...)
	slices.SortFunc(a.pieces, func(x, y *piece) int { return g.rank[x] - g.rank[y] })
	g.order = slices.DeleteFunc(g.order, func(c *chain) bool { return c == b })
	return a
}

// swaps reports whether the plan would create a file where a folder is, or a folder where a file is. Only created paths can be in the
// way of another.
func (w *world) swaps(paths []string) bool {
	const slash = string(filepath.Separator)
	for _, come := range paths {
		if w.first[come].exists || !w.over[come].exists {
			continue
		}
		for _, is := range paths {
			if w.first[is].exists && (strings.HasPrefix(is, come+slash) || strings.HasPrefix(come, is+slash)) {
				return true
			}
		}
	}
	return false
}

// links records the present state of paths that the newest change made symbolic links. world.now follows links, and would give the text
// of the target.
func (g *chain) links(files *world) {
	seen := map[string]bool{}
	for _, p := range g.pieces {
		if seen[p.newAt] {
			// only the newest piece of a path says what the path is at present
			continue
		}
		seen[p.newAt] = true
		f := &p.kept.Files[p.file]
		// a deleted link has nothing to read
		if f.Encoding != change.Link || f.Kind == change.Delete {
			continue
		}
		if target, err := os.Readlink(p.newAt); err == nil {
			s := state{text: target, exists: true, encoding: change.Link, binary: true}
			files.over[p.newAt], files.first[p.newAt] = s, s
		}
	}
}
