//go:build unix

package checkpoint

import (
	"io/fs"
	"syscall"
)

// inode is the file's number on its file system, so that a file replaced by another one of the same size and time is noticed.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
