//go:build unix && !linux

package guard

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Without /proc a family is its process group, which is also its mark. A process that leaves the group on purpose (setsid,
// a daemon) is not found again.

// familyMarks is how a family is known: the process group of its first process; 0 before the start.
type familyMarks struct{ group int }

// watching returns the command that watches, its path first: this program. It has no mark itself, as start tells the watcher of each group.
func watching() (argv []string, more *os.File, err error) {
	self, err := os.Executable()
	return []string{self, self, Arg, firstMark()}, nil, err
}
func enable()           {}
func firstMark() string { return "" }
func unmark(int)        {}

// start starts a command in a group of its own, which the watcher kills at the end as it does a family's.
func start(cmd *exec.Cmd) error { return new(Family).start(cmd) }

// start starts a command in a group of its own and tells the watcher of the group.
func (f *Family) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if !cmd.SysProcAttr.Setsid {
		cmd.SysProcAttr.Setpgid = true
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.os.group = cmd.Process.Pid
	sendMark("+", strconv.Itoa(f.os.group))
	return nil
}

// forgetMarks tells the watcher that the group has ended.
func (f *Family) forgetMarks() {
	if f.os.group != 0 {
		sendMark("-", strconv.Itoa(f.os.group))
	}
}

// killMarked kills the groups that the watcher was told of. 0 and 1 are never killed: -1
// would be every process.
func killMarked(first string, marks map[string]bool) {
	for mark := range marks {
		if group, err := strconv.Atoi(strings.TrimSpace(mark)); err == nil && group > 1 {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
}
