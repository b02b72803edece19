package lspbridge

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes puts a server into a process group of its own, and makes the kernel kill it when the thread that started it ends, even
// after a crash of this program.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a server and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// descendants returns the ids of the processes that a server has started, at any depth (proc_pid_stat(5)).
func descendants(pid int) (all []int) {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path)
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // state, ppid, …
		if len(f) < 2 {
			continue // it has ended
		}
		parent, _ := strconv.Atoi(string(f[1]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		children[parent] = append(children[parent], child)
	}
	all = slices.Clone(children[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// reap waits, without holding up its caller, for those of the processes that a server has left to this one. Package guard makes this process adopt
// orphans, so nobody else waits for them, and they would stay zombies: gopls leaves one that watches it, in a session of its own.
func reap(pids []int) {
	for _, pid := range pids {
		go func() {
			for {
				if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR { // ECHILD: it is not ours
					return
				}
			}
		}()
	}
}
