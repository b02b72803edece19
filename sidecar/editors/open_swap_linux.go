package editors

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// openSwap finds the swap file of one of the names wherever the option 'directory' puts it: a running Vim holds its swap files
// open, and the first block of each says whose it is (see dirtySwap). It looks at the open files in /proc/PID/fd (proc(5)) and so finds
// only this user's processes: the folder of another user's cannot be read. names are the absolute paths of one file, with and without links
// resolved.
func openSwap(names []string) (holder, bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return holder{}, false
	}
	defer proc.Close()
	processes, _ := proc.Readdirnames(-1) // not in order, which is all the same
	for _, p := range processes {
		if p[0] < '1' || p[0] > '9' {
			continue
		}
		// The program first, by one system call: this runs twice for each write, and reading every descriptor of every process, or
		// only its name in /proc/PID/comm, took longer than the rest of the edit.
		program, err := os.Readlink("/proc/" + p + "/exe")
		if err != nil || !strings.Contains(filepath.Base(program), "vi") { // vim.basic, vim.gtk3, nvim, neovide: few others
			continue
		}
		descriptors := filepath.Join("/proc", p, "fd")
		// The process may have ended, or belong to another user: then there is nothing to see.
		open, _ := os.ReadDir(descriptors)
		for _, fd := range open {
			swap, err := os.Readlink(filepath.Join(descriptors, fd.Name()))
			// .swp, .swo and so on. A pipe or a socket has no such name.
			if err != nil || !strings.HasPrefix(filepath.Ext(swap), ".sw") {
				continue
			}
			h, file, dirty := dirtySwap(swap)
			if !dirty {
				continue
			}
			// Vim may have the file by another of its names.
			if real, err := filepath.EvalSymlinks(file); slices.Contains(names, file) || err == nil && slices.Contains(names, real) {
				return h, true
			}
		}
	}
	return holder{}, false
}
