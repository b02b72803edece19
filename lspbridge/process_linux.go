package lspbridge

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// processes are the running processes by id, each with the fields of its stat file from the state on, which is the third (proc_pid_stat(5)).
func processes() map[int][]string {
	all := map[int][]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		all[pid] = strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the program's name may have blanks
	}
	return all
}

// descendants returns the ids of the processes that a server has started, at any depth.
func descendants(pid int) (all []int) {
	children := map[string][]int{}
	for child, f := range processes() {
		if len(f) > 1 {
			children[f[1]] = append(children[f[1]], child) // by the parent's id
		}
	}
	all = slices.Clone(children[strconv.Itoa(pid)])
	for i := 0; i < len(all); i++ {
		all = append(all, children[strconv.Itoa(all[i])]...)
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
