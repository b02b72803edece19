package search

import "golang.org/x/sys/unix"

// maxChild is how much memory of its own ripgrep may take, in bytes: 64 MB with two threads. It reads a line whole,
// however long; when it would need more than this it dies and the Go engine, which reads such lines in pieces,
// takes over.
func maxChild() uint64 { return uint64(48<<20 + workers()*(8<<20)) }

// limitMemory bounds ripgrep's memory: a pattern of a model can make its automaton huge. RLIMIT_DATA counts private
// writable memory (getrlimit(2)), so mapped files do not count.
func limitMemory(pid int) {
	// Best effort: without the limit the search is still right.
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxChild(), Max: maxChild()}, nil)
}
