//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayWrite reports whether this program, outside of the sandbox, could write to a file or into a folder (access(2)). For root
// that is true nearly everywhere. It says nothing about the command in the sandbox.
func mayWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// mayRead reports whether this program could read a file, or list a folder.
func mayRead(path string) bool { return unix.Access(path, unix.R_OK) == nil }

// hasOtherNames reports whether a file has more than one hard link.
func hasOtherNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
