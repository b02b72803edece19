package editors

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// openSwap finds the swap file of one of the names wherever the option 'directory' puts it: a running Vim holds its swap files
// open, and the first block of each says whose it is (see dirtySwap). It looks at the open files in /proc/PID/fd (proc(5)) and so finds
// only this user's processes: the folder of another user's cannot be read. names are the absolute paths of one file, with and without links
// resolved.
func openSwap(names []string) (holder, bool) {
	for _, p := range running.list(time.Now()) {
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

// running are the processes that openSwap looks at.
var running vims

// vims remembers which processes may be a Vim.
type vims struct {
	mu     sync.Mutex
	seen   time.Time // guarded by mu
	newest string    // guarded by mu; number of the process that was the newest then
	found  []string  // guarded by mu; process numbers
}

// vimStarts is how long a look at the processes counts while no process has been started. It is short because a process that was there may
// have become a Vim since, between fork and exec. A change of fifty files, and the two looks of an edit that nobody is asked about (before
// the proposal, before the write), then cost one walk over all processes of the machine.
const vimStarts = 200 * time.Millisecond

// list returns the numbers of the processes whose program may be a Vim.
func (v *vims) list(now time.Time) []string {
	load, err := os.ReadFile("/proc/loadavg") // it ends with the number of the newest process, see proc(5)
	newest := string(load[bytes.LastIndexByte(load, ' ')+1:])
	v.mu.Lock()
	defer v.mu.Unlock()
	if since := now.Sub(v.seen); err == nil && newest == v.newest && since >= 0 && since < vimStarts {
		return v.found
	}
	v.seen, v.newest, v.found = now, newest, nil
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	processes, _ := proc.Readdirnames(-1) // not in order, which is all the same
	for _, p := range processes {
		if p[0] < '1' || p[0] > '9' {
			continue
		}
		// The program by one system call: reading every descriptor of every process, or only its name in /proc/PID/comm, took longer than
		// the rest of an edit.
		program, err := os.Readlink("/proc/" + p + "/exe")
		if err == nil && strings.Contains(filepath.Base(program), "vi") { // vim.basic, vim.gtk3, nvim, neovide: few others
			v.found = append(v.found, p)
		}
	}
	return v.found
}
