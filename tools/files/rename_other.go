//go:build !linux

package files

// renameNew is as exclusive as the system allows; see renameFree.
func renameNew(from, to string) error { return renameFree(from, to) }
