//go:build unix && !linux

package run

import (
	"syscall"
	"time"
)

// Without /proc, only the process group of the shell is known. A process that leaves the group is not found.

// spawn starts the job's shell. A shell on a terminal gets its own session, since a controlling terminal needs one. Any other shell gets
// its own process group, which is enough to signal its processes.
func spawn(j *job) error {
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !j.tty, Setsid: j.tty, Setctty: j.tty}
	if err := j.family.Start(j.cmd); err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	return nil
}

// signal sends s to the whole process group, which a negative id means (kill(2)).
func (j *job) signal(s syscall.Signal) { _ = syscall.Kill(-j.pid, s) }

// alive reports whether the group has a process. Signal 0 only checks that (kill(2)).
func (j *job) alive() bool { return syscall.Kill(-j.pid, 0) == nil }

// kill sends TERM to the group, and KILL if a process is left after Grace.
func (j *job) kill() {
	j.signal(syscall.SIGTERM)
	for end := time.Now().Add(Grace); time.Now().Before(end) && j.alive(); {
		time.Sleep(5 * time.Millisecond)
	}
	if j.alive() {
		j.signal(syscall.SIGKILL)
	}
}

// watchTasks is never called, because commands cannot be contained here.
func (j *job) watchTasks(int, func() bool) {}

// left is 1 if any process of the group is left, since processes cannot be counted without /proc.
func (j *job) left() int {
	if j.alive() {
		return 1
	}
	return 0
}
