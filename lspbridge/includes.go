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

// Limits of the search for files that include one another.
const (
	maxIncluding   = 20_000   // source files of a project
	maxIncludeHead = 64 << 10 // bytes of each file: includes are at the top
)

// includes finds out from the texts which files of a project include which. clangd compiles each file separately: it reports the errors
// caused by a changed header only in files that it is asked about, and its index takes minutes to name them. An include counts for every
// file whose path ends with it. That may be more files than the compiler uses, but never fewer, except for names that macros compose.
type includes struct {
	mu    sync.Mutex
	files map[string]included // by path; guarded by mu
}

// included is what a file included when it was last read, with the time and size that reveal a change.
type included struct {
	changed time.Time
	size    int64
	names   []string // as written in the file, with slashes
}

// includeLine matches #include, #include_next and #import; the name is in quotes or angle brackets.
var includeLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*#[ \t]*(?:include|include_next|import)[ \t]*["<]([^">\n]+)[">]`)
})

// users returns the files of a project that include one of the given ones, directly or indirectly. complete is false when the project has
// too many files to read, or ctx ended.
func (i *includes) users(ctx context.Context, row Server, root string, of []string) (users []string, complete bool) {
	all := projectFiles(ctx, root)
	// A list that reaches the limit may be incomplete.
	if len(all) >= maxProjectFiles {
		return nil, false
	}
	by := map[string][]string{} // base name of an included file → files that include it
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
	// Breadth first; seen ends the search where headers include each other.
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

// headerLike reports whether a file may be included although no row of the table matches it: x.inc, x.def, headers without an extension.
func headerLike(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".inc", ".def", ".ipp", ".tpp", ".inl", ".tcc", ".x", "":
		return true
	}
	return false
}

// includesIt reports whether one of the names, as written in an include, can mean target.
func includesIt(names []string, target string) bool {
	// The base of ../ is not known, so only the rest of the name is compared.
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

// of returns the names that a file includes, cached until the file changes.
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
		for _, m := range includeLine().FindAllSubmatch(head, -1) {
			now.names = append(now.names, filepath.ToSlash(filepath.Clean(string(m[1]))))
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	// Entries of deleted files are not removed one by one; the whole map is dropped instead.
	if i.files == nil || len(i.files) > 2*maxIncluding {
		i.files = map[string]included{}
	}
	i.files[path] = now
	return now.names
}
