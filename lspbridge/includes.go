package lspbridge

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// What is read to find out which files include which, at most.
const (
	maxIncluding   = 20_000   // files of a project
	maxIncludeHead = 64 << 10 // bytes of each: includes stand at the top
)

// includes knows which files of a project include which, by their text. A server that compiles each file by itself (clangd)
// reports a broken header only in the files that it is asked about, and knows them from an index that takes minutes; the
// text is there at once. An include is taken for every file whose path ends with it: more than the compiler would, never
// less, but for names that macros put together.
type includes struct {
	mu    sync.Mutex
	files map[string]included // by path; guarded by mu
}

// included is what a file included when it was last looked at.
type included struct {
	changed time.Time
	size    int64
	names   []string // as they are written, with slashes
}

var includeLine = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:include|include_next|import)[ \t]*["<]([^">\n]+)[">]`)

// users are the files of a project that include one of the given ones, directly or not. complete is false when not every
// file has been looked at.
func (i *includes) users(ctx context.Context, row Server, root string, of []string) (users []string, complete bool) {
	all := projectFiles(ctx, root)
	if len(all) >= maxProjectFiles {
		return nil, false
	}
	by := map[string][]string{} // base name of what is included → who includes it, in what words
	words := map[string][]string{}
	n := 0
	for _, path := range all {
		if !row.matches(path) && !headerLike(path) {
			continue
		}
		if n++; n > maxIncluding || ctx.Err() != nil {
			return nil, false
		}
		for _, name := range i.of(path) {
			base := filepath.Base(name)
			by[base] = append(by[base], path)
			words[path] = append(words[path], name)
		}
	}
	seen := map[string]bool{}
	for _, p := range of {
		seen[p] = true
	}
	for queue := of; len(queue) > 0; {
		target := filepath.ToSlash(queue[0])
		queue = queue[1:]
		for _, user := range by[filepath.Base(target)] {
			if seen[user] || !includesIt(words[user], target) {
				continue
			}
			seen[user] = true
			users = append(users, user)
			queue = append(queue, user)
		}
	}
	return users, true
}

// headerLike files are included though they are nobody's sources: x.inc, x.def, and headers without an extension.
func headerLike(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".inc", ".def", ".ipp", ".tpp", ".inl", ".tcc", ".x", "":
		return true
	}
	return false
}

func includesIt(names []string, target string) bool {
	for _, n := range names {
		for strings.HasPrefix(n, "../") || strings.HasPrefix(n, "./") {
			_, n, _ = strings.Cut(n, "/")
		}
		if target == n || strings.HasSuffix(target, "/"+n) {
			return true
		}
	}
	return false
}

// of are the names that a file includes.
func (i *includes) of(path string) []string {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	i.mu.Lock()
	was, known := i.files[path]
	i.mu.Unlock()
	if known && was.size == fi.Size() && was.changed.Equal(fi.ModTime()) {
		return was.names
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, maxIncludeHead))
	now := included{changed: fi.ModTime(), size: fi.Size()}
	if bytes.Contains(head, []byte("#")) {
		for _, m := range includeLine.FindAllSubmatch(head, -1) {
			now.names = append(now.names, filepath.ToSlash(filepath.Clean(string(m[1]))))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.files == nil || len(i.files) > 2*maxIncluding {
		i.files = map[string]included{}
	}
	i.files[path] = now
	return now.names
}
