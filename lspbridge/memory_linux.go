package lspbridge

import (
	"os"
	"strconv"
	"strings"
)

// groupMemory returns the resident memory of a process group in bytes. The group, because servers start children (tsserver) that use most of it.
func groupMemory(pid int) (total int64) {
	for _, f := range processes() {
		// Index 0 is the state, 2 is pgrp, 21 is rss in pages.
		if len(f) < 22 || f[2] != strconv.Itoa(pid) {
			continue
		}
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		total += pages * int64(os.Getpagesize())
	}
	return total
}

// memoryIsScarce reports whether less than an eighth of the machine's memory can be had without swapping (proc_meminfo(5), MemAvailable).
func memoryIsScarce() bool {
	text, err := os.ReadFile("/proc/meminfo")
	return err == nil && scarce(string(text))
}

// scarce is memoryIsScarce for a text of /proc/meminfo.
func scarce(meminfo string) bool {
	var total, available int64
	for line := range strings.Lines(meminfo) {
		name, value, _ := strings.Cut(line, ":")
		kB, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		switch name {
		case "MemTotal":
			total = kB
		case "MemAvailable": // missing before Linux 3.14
			available = max(kB, 1)
		}
	}
	return available > 0 && available < total/8
}
