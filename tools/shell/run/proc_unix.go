//go:build unix && !linux

package run

import (
	"syscall"
	"time"
)

// Without /proc only the process group is known: what leaves it on purpose is not found again.

func spawn(j *job) error {
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !j.tty, Setsid: j.tty, Setctty: j.tty}
	if err := j.family.Start(j.cmd); err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	return nil
}

func (j *job) signal(s syscall.Signal) { _ = syscall.Kill(-j.pid, s) }

func (j *job) alive() bool { return syscall.Kill(-j.pid, 0) == nil }

func (j *job) kill() {
	j.signal(syscall.SIGTERM)
	for end := time.Now().Add(Grace); time.Now().Before(end) && j.alive(); {
		time.Sleep(5 * time.Millisecond)
	}
	if j.alive() {
		j.signal(syscall.SIGKILL)
	}
}

func (j *job) left() int {
	if j.alive() {
		return 1
	}
	return 0
}
