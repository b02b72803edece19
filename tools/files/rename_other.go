//go:build !linux

package files

func renameNew(from, to string) error { return renameFree(from, to) }
