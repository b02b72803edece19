//go:build unix && !linux

package run

import (
	"syscall"
	"time"
)

// Without /proc only the process group is known: what leaves it on purpose is not found again.

// A process with a controlling terminal needs a session; the others get a process group, which is enough to signal them.
func spawn(j *job) error {
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !j.tty, Setsid: j.tty, Setctty: j.tty}
	if err := j.family.Start(j.cmd); err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	return nil
}

// signal goes to the whole group: a negative number means that (kill(2)).
func (j *job) signal(s syscall.Signal) { _ = syscall.Kill(-j.pid, s) }

// alive reports whether any process of the group is there: signal 0 only checks (kill(2)).
func (j *job) alive() bool { return syscall.Kill(-j.pid, 0) == nil }

// kill gives the group Grace to end after TERM, then kills what is left of it.
func (j *job) kill() {
	j.signal(syscall.SIGTERM)
	for end := time.Now().Add(Grace); time.Now().Before(end) && j.alive(); {
		time.Sleep(5 * time.Millisecond)
	}
	if j.alive() {
		j.signal(syscall.SIGKILL)
	}
}

// watchTasks is never called: no command is contained here.
func (j *job) watchTasks(int, func() bool) {}

// left cannot count without /proc: 1 stands for "some".
func (j *job) left() int {
	if j.alive() {
		return 1
	}
	return 0
}
