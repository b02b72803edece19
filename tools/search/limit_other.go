//go:build !linux

package search

// limitMemory does nothing: there is no way to limit a process that runs already.
func limitMemory(int) {}
