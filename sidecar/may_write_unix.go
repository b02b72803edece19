//go:build unix

package main

import "golang.org/x/sys/unix"

// mayWrite asks the system (access(2)), which knows of ACLs and read-only mounts.
func mayWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }
