package search

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// TreeQuery asks for what is in a folder and its subfolders.
type TreeQuery struct {
	Root   string            // absolute folder
	Ignore []string          // more patterns, as lines of an ignore file
	Limit  int               // entries; 0: DefaultLimit
	Show   func(string) bool // nil shows all files
}

// Node is one entry of a tree.
type Node struct {
	Name     string
	Dir      bool
	Children []*Node // folders first, then by name
}

// Listing is a tree that may be incomplete. A folder that was cut off has the children that were counted before the limit.
type Listing struct {
	Root    *Node
	Entries int  // without the root
	More    bool // there are more than Limit
	Partial bool // time was up
	Unread  Unread
}

// usualIgnores are folders that a tree leaves out whatever the ignore files say; OpenCode's list. This also hides sources that a project
// keeps in bin or build: a tree is for orientation, and grep still finds those files.
const usualIgnores = `node_modules/
__pycache__/
.git/
dist/
build/
target/
vendor/
bin/
obj/
.idea/
.vscode/
.zig-cache/
zig-out/
.coverage/
coverage/
tmp/
temp/
.cache/
cache/
logs/
.venv/
venv/
env/
`

var usual = sync.OnceValue(func() *ruleSet { return parseIgnore([]byte(usualIgnores)) })

// maxListed is how many entries of one folder are looked at, so that a folder of a million files takes no time.
const maxListed = 20000

// Tree lists a folder level by level, so that a limit cuts what is deepest. Ignore files count as in a search. Errors: a
// *PathError for a root that is missing or no folder, else the system's or the context's.
func (s *Searcher) Tree(ctx context.Context, q TreeQuery) (Listing, error) {
	info, err := os.Stat(q.Root)
	if err != nil {
		return Listing{}, notFound(q.Root, err)
	}
	if !info.IsDir() {
		return Listing{}, &PathError{Message: "list path must be a directory: " + q.Root}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	out := Listing{Root: &Node{Name: q.Root, Dir: true}}
	own := usual()
	if len(q.Ignore) > 0 {
		own = parseIgnore([]byte(usualIgnores + strings.Join(q.Ignore, "\n")))
	}
	private := s.private(q.Root)
	type folder struct {
		dir   string
		scope *scope
		node  *Node
	}
	sc, _ := start(q.Root)
	queue := []folder{{q.Root, sc, out.Root}}
	for len(queue) > 0 && !out.More {
		if err := limited.Err(); err != nil {
			if ctx.Err() != nil {
				return Listing{}, ctx.Err()
			}
			out.Partial = true
			break
		}
		at := queue[0]
		queue = queue[1:]
		entries, err := listed(at.dir)
		if err != nil {
			out.Unread.add(describe(at.dir, err))
			continue
		}
		sc := at.scope.enter(at.dir, specialNames(at.dir))
		for _, e := range entries {
			path := filepath.Join(at.dir, e.Name())
			rel, _ := filepath.Rel(q.Root, path)
			isDir := e.IsDir()
			switch {
			// Show is asked about files only: a folder that holds nothing to show is still listed.
			case e.Name() == ".git", sc.ignored(path, isDir), own.match(filepath.ToSlash(rel), e.Name(), isDir) > 0,
				slices.Contains(private, path), !isDir && q.Show != nil && !q.Show(path):
				continue
			}
			if out.Entries == limit {
				out.More = true
				break
			}
			out.Entries++
			n := &Node{Name: e.Name(), Dir: isDir}
			at.node.Children = append(at.node.Children, n)
			if isDir {
				queue = append(queue, folder{path, sc, n})
			}
		}
	}
	return out, nil
}

// listed returns a folder's entries, folders first, each group by name. Of a folder with more than maxListed entries only
// the first ones are sorted, in the order of the file system.
func listed(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxListed)
	if len(entries) == 0 && err != nil && err.Error() != "EOF" {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	return entries, nil
}

// String draws the tree, two blanks a level.
func (n *Node) String() string {
	var b strings.Builder
	n.draw(&b, 0)
	return b.String()
}

// draw writes a node and its children, two blanks deeper for each level.
func (n *Node) draw(b *strings.Builder, depth int) {
	name := n.Name
	if n.Dir && !strings.HasSuffix(name, "/") {
		name += "/"
	}
	b.WriteString(strings.Repeat("  ", depth) + OneLine(name) + "\n")
	for _, c := range n.Children {
		c.draw(b, depth+1)
	}
}

// OneLine is a name for a list with one entry on each line. A name with line breaks or control characters is escaped and quoted, so that
// no name in a repository can forge further entries or the end of the list.
func OneLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsAny(name, "\u2028\u2029") {
		return strconv.Quote(name)
	}
	return name
}
