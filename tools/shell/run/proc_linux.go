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

// A job must find every process that its command started, also one that forked twice, created its own session and emptied its
// environment. A process belongs to the job if it is in the session that the shell leads, or has the marks of package guard. Orphans
// become children of this process, which guard makes a subreaper, so that they do not become children of init, and this process
// can reap them.

// spawn starts the job's shell as the leader of a new session. The id of that session is the shell's process id.
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

// processes returns the processes of the job that are alive, and reaps zombies of the job that are children of this process. A zombie
// has no marks any more, so it is recognized by seen, the ids found before.
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
		// The orphan became a child of this process (subreaper), and nothing else waits for it.
		case p.zombie && p.parent == me:
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		case p.zombie: // its parent must reap it
			j.seen[pid] = true
		case !known: // in seen, but the kernel has given the id to another process
		default:
			j.seen[pid] = true
			ours = append(ours, p)
		}
	}
	return ours
}

// readProcess reads /proc/PID/stat (proc_pid_stat(5)). It returns false if the process has ended.
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// "pid (name) state ppid pgrp session …"; the name may contain blanks and parentheses.
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

// signal sends s to all processes of the job. The process group of the shell gets it first, with one call, because its processes could
// start others while /proc is searched.
func (j *job) signal(s syscall.Signal) {
	_ = syscall.Kill(-j.pid, s)
	for _, p := range j.processes() {
		_ = syscall.Kill(p.pid, s)
		if s == syscall.SIGTERM {
			_ = syscall.Kill(p.pid, syscall.SIGCONT) // a stopped process handles TERM only after it continues
		}
	}
}

// kill ends all processes of the job: it sends TERM, and after Grace KILL until it finds no process.
func (j *job) kill() {
	j.signal(syscall.SIGTERM)
	for end := time.Now().Add(Grace); time.Now().Before(end); {
		if len(j.processes()) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	// A process may fork between the search and the signal, so one pass is not enough. What survives 200 passes cannot be killed.
	for range 200 {
		j.signal(syscall.SIGKILL)
		if len(j.processes()) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// watchTasks kills a job with more than most processes, where the kernel does not enforce sandbox.ProcessLimit. It returns when over
// reports true. To count the job's processes it would have to search /proc, so it does that only after the number of all tasks in
// the system, which takes one small read, has grown by most. It checks every 20 ms, in which a shell forks a few dozen times.
func (j *job) watchTasks(most int, over func() bool) {
	before := systemTasks()
	for !over() {
		time.Sleep(20 * time.Millisecond)
		if now := systemTasks(); now < before+most {
			before = min(before, now)
			continue
		}
		if len(j.processes()) <= most {
			continue // other programs have started the new tasks
		}
		for len(j.processes()) > 0 && !over() {
			// STOP first: otherwise processes fork again while others are killed.
			j.signal(syscall.SIGSTOP)
			j.signal(syscall.SIGKILL)
		}
		return
	}
}

// systemTasks is the number of processes and threads in the system, from /proc/loadavg (proc_loadavg(5)). It is 0 if the file cannot be
// read.
func systemTasks() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	// "0.00 0.01 0.05 1/80 11206": the fourth field is running tasks/all tasks.
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return 0
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.Atoi(all)
	return n
}

// left counts the processes that still run after the shell has ended. For each that is a child of this process it starts reap, so that
// none stays a zombie.
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

// reap waits for the end of an orphan that became a child of this process, then for the children that this orphan leaves. When no process
// of the job is left, it calls gone.
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
