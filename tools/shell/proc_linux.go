package shell

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Everything a command starts must be found again, also what forked twice, made a session of its own and emptied its
// environment. Three marks are inherited and looked for: the session the shell leads, PILLION_JOB in the environment,
// and a limit nobody uses (POSIX message queues) set to a value of the job's own. Orphans become children of this
// process, which is made a subreaper, so none escapes to init and none stays a zombie.

// spawner starts all shells from one thread that never ends: the parent-death signal comes when that *thread* dies.
var spawner = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		for f := range work {
			f()
		}
	}()
	return work
})

func spawn(j *job) error {
	j.seen = map[int]bool{}
	done := make(chan error)
	spawner() <- func() { done <- j.startMarked() }
	if err := <-done; err != nil {
		return err
	}
	return nil
}

// startMarked starts the shell and sets the limit before its first instruction: the child asks to be traced, so it
// stops after exec until it is let go.
func (j *job) startMarked() error {
	limit, ok := j.limit()
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: j.tty, Pdeathsig: syscall.SIGKILL, Ptrace: ok && !noTrace.Load()}
	if j.box != nil {
		j.box.attributes(attr)
	}
	j.cmd.SysProcAttr = attr
	err := j.cmd.Start()
	if err != nil && attr.Ptrace {
		// A sandbox around us may forbid tracing. Whatever the reason was, it shows again without.
		again := *j.cmd
		j.cmd = exec.Command(again.Path, again.Args[1:]...)
		j.cmd.Args, j.cmd.Dir, j.cmd.Env, j.cmd.Stdin, j.cmd.Stdout, j.cmd.Stderr = again.Args, again.Dir, again.Env, again.Stdin, again.Stdout, again.Stderr
		attr.Ptrace = false
		j.cmd.SysProcAttr = attr
		if err = j.cmd.Start(); err == nil {
			noTrace.Store(true)
		}
	}
	if err != nil {
		return err
	}
	j.pid = j.cmd.Process.Pid
	if attr.Ptrace {
		var status syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(j.pid, &status, syscall.WALL, nil); err != syscall.EINTR {
				break
			}
		}
	}
	if ok {
		_ = unix.Prlimit(j.pid, unix.RLIMIT_MSGQUEUE, &limit, nil)
	}
	if attr.Ptrace {
		_ = syscall.PtraceDetach(j.pid)
	}
	return nil
}

// noTrace: tracing is forbidden here.
var noTrace atomic.Bool

// limit is the job's own value of the limit on message queues, in bytes: a little less than allowed.
func (j *job) limit() (unix.Rlimit, bool) {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &have); err != nil || have.Cur < 1<<17 {
		return have, false
	}
	have.Cur = min(have.Cur, 1<<30) - 1 - (uint64(os.Getpid())*7919+uint64(j.id))%(have.Cur/2)
	return have, true
}

// process is a line of /proc.
type process struct {
	pid, parent int
	zombie      bool
}

// processes lists those of the job that are alive, and reaps those that are not.
func (j *job) processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	limit, marked := j.limit()
	mark := []byte(j.mark())
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
		if !known && (marked || noTrace.Load()) {
			known = j.marked(pid, limit, mark)
		}
		if !known && !j.seen[pid] {
			continue
		}
		p, ok := readProcess(pid)
		switch {
		case !ok || pid == j.pid && p.zombie:
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

// marked reports a process with the job's limit that does not belong to a job of somebody else, or with its name in
// the environment.
func (j *job) marked(pid int, limit unix.Rlimit, mark []byte) bool {
	var have unix.Rlimit
	same := unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &have) == nil && have.Cur == limit.Cur
	if !same && !noTrace.Load() {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err == nil && bytes.Contains(env, mark) {
		return true
	}
	return same && (err != nil || !bytes.Contains(env, []byte("PILLION_JOB=")))
}

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
	for range 200 {
		j.signal(syscall.SIGKILL)
		if len(j.processes()) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// left counts what still runs after the shell has ended, and sees to it that none of it stays a zombie.
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
