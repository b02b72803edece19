package search

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Files lists what no ignore file hides below root: paths relative to it, with slashes, in no order; at most limit.
// more says that there are others, or that time was up.
func (s *Searcher) Files(ctx context.Context, root string, limit int) (paths []string, more bool, err error) {
	return s.list(ctx, root, limit, false)
}

// FilesAndLinks is Files with the symbolic links, which are not followed.
func (s *Searcher) FilesAndLinks(ctx context.Context, root string, limit int) (paths []string, more bool, err error) {
	return s.list(ctx, root, limit, true)
}

func (s *Searcher) list(ctx context.Context, root string, limit int, links bool) (paths []string, more bool, err error) {
	if info, err := os.Stat(root); err != nil {
		return nil, false, notFound(root, err)
	} else if !info.IsDir() {
		return nil, false, &PathError{Message: root + " is not a directory"}
	}
	if insideGit(root) {
		return nil, false, nil
	}
	within, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	var mu sync.Mutex // paths, more
	base := len(withSeparator(root))
	sc, _ := start(root)
	w := walk{root: root, links: links, prune: s.private(root), scope: sc, failed: func(string, error) {},
		visit: func(_ int, dir string, names []string) {
			prefix := filepath.ToSlash(withSeparator(dir)[base:])
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				if len(paths) == limit {
					more = true
					cancel()
					return
				}
				paths = append(paths, strings.Clone(prefix+name))
			}
		}}
	if err := w.run(within); err != nil && !errors.Is(ctx.Err(), err) {
		more = true
	}
	return paths, more, ctx.Err()
}
