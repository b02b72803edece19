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
	Ignore []string          // more patterns to ignore, in the syntax of ignore files
	Limit  int               // entries; 0: DefaultLimit
	Show   func(string) bool // nil shows all files
}

// Node is one entry of a tree.
type Node struct {
	Name     string
	Dir      bool
	Children []*Node // folders first, then by name
}

// Listing is a tree that may be incomplete. A folder that was cut off has only the children that were counted before the limit.
type Listing struct {
	Root    *Node
	Entries int  // without the root
	More    bool // there are more than Limit entries
	Partial bool // the time limit was reached
	Unread  Unread
}

// usualIgnores are folders that a tree always leaves out; the list is OpenCode's. It also hides sources that a project keeps in bin
// or build. That is acceptable because a tree is for orientation; grep still finds those files.
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

// maxListed is how many entries of one folder are read, so that a folder with a million files costs little.
const maxListed = 20000

// Tree lists a folder level by level, so that a limit removes the deepest entries. Ignore files apply as in a search. Errors: a
// *PathError if root is missing or not a folder, else the system's or the context's.
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
			// Show is called only for files: a folder is listed even if all its files are hidden.
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

// listed returns a folder's entries, folders first, each group by name. In a folder with more than maxListed entries, only the
// first ones in the order of the file system are sorted.
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

// String draws the tree, indented by two blanks for each level.
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

// OneLine makes a name fit into a list with one entry on each line. A name with line breaks or control characters is escaped and
// quoted; otherwise a name in a repository could forge further entries or the end of the list.
func OneLine(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsAny(name, "\u2028\u2029") {
		return strconv.Quote(name)
	}
	return name
}
