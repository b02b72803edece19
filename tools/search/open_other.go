//go:build !unix

package search

import (
	"os"
	"path/filepath"
	"time"
)

// folder replaces the folder of open_unix.go on systems without openat: it is a path. If a link replaces a folder during the walk,
// it is followed.
type folder string

func openFolder(dir string) (folder, error) { return folder(dir), nil }

func openDir(dir string) (*os.File, error) { return os.Open(dir) }

func (d folder) open(name string) (file, error) { return open(filepath.Join(string(d), name)) }

func (d folder) modTime(name string) (time.Time, error) {
	return modTime(filepath.Join(string(d), name))
}

func (d folder) Close() error { return nil }

// file is an open file of the os package.
type file = *os.File

func open(path string) (file, error) { return os.Open(path) }

// modTime does the same as in open_unix.go.
func modTime(path string) (time.Time, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
