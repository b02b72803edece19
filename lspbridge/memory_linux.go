package lspbridge

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// groupMemory returns the resident memory of a process group in bytes (proc_pid_stat(5)). The group, because servers start children
// (tsserver) that use most of it.
func groupMemory(pid int) (total int64) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid pgrp …; the name may contain anything, so parse from its closing parenthesis on.
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		// Index 0 is the state, 2 is pgrp, 21 is rss in pages.
		if len(f) < 22 || string(f[2]) != strconv.Itoa(pid) {
			continue
		}
		pages, _ := strconv.ParseInt(string(f[21]), 10, 64)
		total += pages * int64(os.Getpagesize())
	}
	return total
}
