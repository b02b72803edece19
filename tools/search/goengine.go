package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// goEngine searches without any other program.
type goEngine struct{ m *matcher }

func (e goEngine) files(ctx context.Context, j *grepJob, emit func(string)) error {
	scanners := make([]scanner, workers())
	w := walk{
		root: j.root, prune: j.prune, include: j.include, scope: j.scope,
		visit: func(n int, dir string, names []string) {
			d, err := openFolder(dir)
			if err != nil {
				return // gone since it was read
			}
			defer d.Close()
			for _, name := range names {
				if ctx.Err() != nil {
					return
				}
				f, err := d.open(name)
				if err == nil {
					err = scanners[n].scan(ctx, f, e.m, false, func(hit) bool { emit(filepath.Join(dir, name)); return false })
					f.Close()
				}
				if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) {
					j.unread(describe(filepath.Join(dir, name), err))
				}
			}
		},
		failed: func(path string, err error) { j.unread(describe(path, err)) },
	}
	return w.run(ctx)
}

func (e goEngine) lines(ctx context.Context, j *grepJob, paths []string, each func(string, hit) bool) error {
	var s scanner
	for _, path := range paths {
		f, err := open(path)
		if err != nil {
			j.unread(describe(path, err))
			continue
		}
		more := true
		n := 0
		err = s.scan(ctx, f, e.m, true, func(h hit) bool {
			n++
			more = each(path, h)
			return more && n <= j.limit
		})
		f.Close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			j.unread(describe(path, err))
		}
		if !more {
			return nil
		}
	}
	return nil
}

func (e goEngine) text(ctx context.Context, _ *grepJob, text string, each func(hit) bool) error {
	var s scanner
	return s.scan(ctx, io.Reader(strings.NewReader(text)), e.m, true, each)
}
