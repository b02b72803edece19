//go:build unix && !linux

package search

import "golang.org/x/sys/unix"

// openWithoutLinks refuses a link at the end of the path: these systems have no call that refuses one on the way.
func openWithoutLinks(path string, flags int) (int, error) { return unix.Open(path, flags, 0) }
