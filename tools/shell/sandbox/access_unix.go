//go:build unix

package sandbox

import "golang.org/x/sys/unix"

// mayWrite reports whether this program could write to a file, or into a folder.
func mayWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// mayRead reports whether this program could read a file, or list a folder.
func mayRead(path string) bool { return unix.Access(path, unix.R_OK) == nil }
