//go:build unix && !linux

package guard

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Without /proc a family is its process group, which is also its mark. A process that leaves the group on purpose (setsid,
// a daemon) is not found again.

type familyMarks struct{ group int }

func program(self string) string { return self }
func enable()                    {}
func firstMark() string          { return "" }
func unmark()                    {}

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
