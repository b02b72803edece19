package run

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Everything a command starts must be found again, also a process that forked twice, made a session of its own and emptied its
// environment. It is found by the session that the shell leads, and by the marks of package guard. Orphans become children of this
// process, which guard makes a subreaper, so none escapes to init and none stays a zombie.

// spawn starts the job's shell as the leader of a session of its own, whose number is the shell's process id.
func spawn(j *job) error {
	j.seen = map[int]bool{}
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: j.tty}
	if j.box != nil {
		j.box.Attributes(attr)
	}
	j.cmd.SysProcAttr = attr
	if err := j.family.Start(j.cmd); err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	return nil
}

// process is what /proc says of one process.
type process struct {
	pid, parent int
	zombie      bool
}

// processes lists those of the job that are alive, and reaps those that are not.
// seen keeps the numbers found before: a zombie has no environment with marks any more and must still be reaped.
func (j *job) processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	me := os.Getpid()
	var ours []process
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == me {
			continue
		}
		known := pid == j.pid
		if !known {
			session, err := unix.Getsid(pid)
			known = err == nil && session == j.pid
		}
		known = known || j.family.Has(pid)
		if !known && !j.seen[pid] {
			continue
		}
		p, ok := readProcess(pid)
		switch {
		case !ok || pid == j.pid && p.zombie:
		// An orphan became our child (subreaper): nobody else would wait for it.
		case p.zombie && p.parent == me:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		case p.zombie: // its parent will see to it
			j.seen[pid] = true
		case !known: // another process with a number that was used again
		default:
			j.seen[pid] = true
			ours = append(ours, p)
		}
	}
	return ours
}

// readProcess reads /proc/PID/stat (proc_pid_stat(5)); false when the process has ended.
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// pid (name) state ppid pgrp session …; the name may hold anything.
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return process{}, false
	}
	f := strings.Fields(string(stat[i+1:]))
	if len(f) < 2 {
		return process{}, false
	}
	parent, _ := strconv.Atoi(f[1])
	return process{pid, parent, f[0] == "Z" || f[0] == "X"}, true
}

// signal sends s to all processes of the job. The group of the shell comes first, with one call: during the look through /proc
// its processes could start more.
func (j *job) signal(s syscall.Signal) {
	_ = syscall.Kill(-j.pid, s)
	for _, p := range j.processes() {
		_ = syscall.Kill(p.pid, s)
		if s == syscall.SIGTERM {
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // a stopped process could not hear it
		}
	}
}

// kill ends all processes of the job: TERM, then KILL after Grace, until none is found.
func (j *job) kill() {
	j.signal(syscall.SIGTERM)
	for end := time.Now().Add(Grace); time.Now().Before(end); {
		if len(j.processes()) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	// A process may fork between the look and the signal, so one pass is not enough. After 200 the rest cannot be killed.
	for range 200 {
		j.signal(syscall.SIGKILL)
		if len(j.processes()) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// watchTasks ends a job that has more than most processes and threads, where the kernel does not hold such a limit (see
// sandbox.ProcessLimit). It returns when the job is over. The number of all tasks of the system costs one small read, so
// the job's own are counted only when that has grown by most. Every 20 ms is often enough: a shell forks a few dozen
// times in that time.
func (j *job) watchTasks(most int, over func() bool) {
	before := systemTasks()
	for !over() {
		time.Sleep(20 * time.Millisecond)
		if now := systemTasks(); now < before+most {
			before = min(before, now)
			continue
		}
		if len(j.processes()) <= most {
			continue // other programs of this system started them
		}
		for len(j.processes()) > 0 && !over() {
			// Stopped first: what is killed one by one forks again meanwhile.
			j.signal(syscall.SIGSTOP)
			j.signal(syscall.SIGKILL)
		}
		return
	}
}

// systemTasks is the number of processes and threads in the system, from /proc/loadavg (proc_loadavg(5)); 0 where it
// cannot be read.
func systemTasks() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	// 0.00 0.01 0.05 1/80 11206: the fourth field is running/all.
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.Atoi(all)
	return n
}

// left counts the processes that still run after the shell has ended, and starts a wait for each that is our child, so that none
// stays a zombie.
func (j *job) left() int {
	ours := j.processes()
	me := os.Getpid()
	for _, p := range ours {
		if p.parent == me {
			go j.reap(p.pid)
		}
	}
	return len(ours)
}

// reap waits for an orphan that became our child, then for those it leaves.
// Its wait ends with the process, so the goroutine lives as long as what it waits for.
func (j *job) reap(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_, _ = p.Wait()
	}
	ours := j.processes()
	for _, p := range ours {
		if p.parent == os.Getpid() && p.pid != pid {
			go j.reap(p.pid)
		}
	}
	if len(ours) == 0 {
		j.gone()
	}
}
