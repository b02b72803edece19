package editors

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// openSwap finds the swap file of one of the names wherever 'directory' puts it: a running Vim holds its swap files
// open, and the first block of each says whose it is. Processes of other users cannot be looked into.
func openSwap(names []string) (holder, bool) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return holder{}, false
	}
	for _, p := range processes {
		if _, err := strconv.Atoi(p.Name()); err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join("/proc", p.Name(), "comm"))
		name := strings.TrimSpace(string(comm))
		if err != nil || !strings.Contains(name, "vi") { // vi, vim, vim.basic, gvim, view, nvim, neovide: few others
			continue
		}
		descriptors := filepath.Join("/proc", p.Name(), "fd")
		open, _ := os.ReadDir(descriptors)
		for _, fd := range open {
			swap, err := os.Readlink(filepath.Join(descriptors, fd.Name()))
			if err != nil || !strings.HasPrefix(filepath.Ext(swap), ".sw") {
				continue
			}
			h, file, dirty := dirtySwap(swap)
			if !dirty {
				continue
			}
			if real, err := filepath.EvalSymlinks(file); slices.Contains(names, file) || err == nil && slices.Contains(names, real) {
				return h, true
			}
		}
	}
	return holder{}, false
}
