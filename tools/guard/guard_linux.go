package guard

import (
	"bytes"
	"fmt"
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

// The limit on POSIX message queues, in bytes, is the mark: everything inherits it, nothing looks at it. This program
// gives itself a value of its own, so all it starts has that; a family has a value of its own below.

// familyMarks is how a family of processes recognises its own on Linux: a resource limit
// with a number that no other process has. Children inherit limits, and unlike a process
// group they cannot be left by setsid.
type familyMarks struct {
	limit unix.Rlimit // Cur is the mark, in bytes; Max stays, so that a process may still raise its own
	set   bool        // the system's limit is high enough for marks below it
}

// watching returns the command that watches, its path first, and a file that it needs as its descriptor 3. It is a shell, which becomes
// this program when there is something to kill: a shell that waits has 0.1 MB of its own, and this program 7 MB, because the loader writes
// to its tables of addresses. The descriptor is this very program, also after an update has replaced its file.
func watching() (argv []string, exe *os.File, err error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(shell); err == nil {
		if exe, err = os.Open(self); err == nil {
			return []string{shell, "sh", "-c", waiting, Arg, firstMark()}, exe, nil
		}
	}
	return []string{self, self, Arg, firstMark()}, nil, nil
}

// shell runs waiting. Without one this program waits itself. Tests change it.
var shell = "/bin/sh"

// waiting reads marks as Main does, keeps them with a blank around each, and becomes Main. $0 is Arg.
const waiting = `trap '' TERM INT HUP QUIT PIPE
marks=' '
while IFS= read -r line; do
	case $line in
	` + over + `) exit 0 ;;
	+*) marks="$marks${line#+} " ;;
	-*) case $marks in *" ${line#-} "*) marks="${marks%%" ${line#-} "*} ${marks#*" ${line#-} "}" ;; esac ;;
	esac
done
exec /proc/self/fd/3 "$0" "$1" $marks`

// enable marks this program, and by inheritance all that it starts. 7919 is a prime that spreads neighbouring process ids
// over the range, so that two Pillions on one machine rarely have the same mark.
func enable() {
	if limit, ok := smaller(uint64(os.Getpid()) * 7919); ok {
		_ = unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &limit)
	}
}

// firstMark is our own: our process id and the limit that everything we start has.
func firstMark() string {
	var have unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &have) != nil {
		return strconv.Itoa(os.Getpid()) + " 0"
	}
	return fmt.Sprintf("%d %d", os.Getpid(), have.Cur)
}

// smaller returns a limit below ours and at least half of it, chosen by n; false where ours is under 16 KiB, too low for
// many different values. 1 GiB at most, so that "unlimited" becomes a plain number too.
func smaller(n uint64) (unix.Rlimit, bool) {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &have); err != nil || have.Cur < 1<<14 {
		return have, false
	}
	have.Cur = min(have.Cur, 1<<30)
	have.Cur -= 1 + n%(have.Cur/2)
	return have, true
}

// unmark raises the limit of the watcher to its maximum again, which takes its parent's mark off it: it must not pass for
// one of the processes to kill.
func unmark(pid int) {
	var have unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &have) == nil {
		have.Cur = have.Max
		_ = unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, &have, nil)
	}
}

// adoptOrphans makes this process a subreaper: orphans of what it starts become its children, so none stays a zombie.
func adoptOrphans() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// spawner starts everything from one thread that never ends: the parent-death signal comes when that *thread* dies.
var spawner = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		adoptOrphans()
		for f := range work {
			f()
		}
	}()
	return work
})

// inSpawner runs f on the spawner's thread and waits for it. The thread is shared: f must not wait for a process.
func inSpawner(f func() error) error {
	done := make(chan error)
	spawner() <- func() { done <- f() }
	return <-done
}

// start starts a command that has the mark of all.
func start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return inSpawner(cmd.Start)
}

// noTrace is set once a start has worked only without ptrace (a container or a sandbox forbids it). Later starts do not
// try it again, and families are then found by their environment alone.
var noTrace atomic.Bool

// start starts the command and sets the limit before its first instruction: the child asks to be traced, so it stops
// after exec until it is let go.
func (f *Family) start(cmd *exec.Cmd) error {
	f.os.limit, f.os.set = smaller(uint64(os.Getpid())*7919 + uint64(f.id))
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if f.os.set { // before the start: a crash between the two must leave a mark that the watcher knows
		sendMark("+", strconv.FormatUint(f.os.limit.Cur, 10))
	}
	if f.Thread != nil {
		return f.Thread.start(func() error { return f.startMarked(cmd) })
	}
	return inSpawner(func() error { return f.startMarked(cmd) })
}

// setLimits sets the family's mark and limits, and has it admitted. Another thread does it: a restricted one must not
// touch the limits of other processes, nor write to control groups.
func (f *Family) setLimits(pid int) error {
	done := make(chan error)
	go func() {
		var err error
		defer func() { done <- err }()
		if f.os.set {
			_ = unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, &f.os.limit, nil)
		}
		for resource, value := range f.Limits {
			var have unix.Rlimit
			if unix.Prlimit(pid, resource, nil, &have) == nil {
				value = min(value, have.Max)
				_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
			}
		}
		if f.Admit != nil {
			err = f.Admit(pid)
		}
	}()
	return <-done
}

// startMarked runs on the thread that is to be the child's parent. ptrace and the parent-death signal belong to that
// thread, so all calls about the child are made on it.
func (f *Family) startMarked(cmd *exec.Cmd) error {
	attr := cmd.SysProcAttr
	attr.Pdeathsig = syscall.SIGKILL
	attr.Ptrace = f.os.set && !noTrace.Load()
	err := cmd.Start()
	if err != nil && attr.Ptrace {
		// A sandbox around us may forbid tracing. Whatever the reason was, it shows again without.
		again := exec.Command(cmd.Path, cmd.Args[1:]...)
		again.Args, again.Dir, again.Env, again.Stdin, again.Stdout, again.Stderr, again.ExtraFiles = cmd.Args, cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles
		attr.Ptrace = false
		again.SysProcAttr = attr
		*cmd = *again
		if err = cmd.Start(); err == nil {
			noTrace.Store(true)
		}
	}
	if err != nil {
		return err
	}
	pid := cmd.Process.Pid
	if attr.Ptrace {
		// The stop after exec. Until then the child has not run an instruction of the program.
		var status syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &status, syscall.WALL, nil); err != syscall.EINTR {
				break
			}
		}
	}
	err = f.setLimits(pid)
	if err != nil {
		_ = cmd.Process.Kill() // while it is stopped, so that it has run nothing
	}
	if attr.Ptrace {
		_ = syscall.PtraceDetach(pid)
	}
	if err != nil {
		_ = cmd.Wait() // else it stays a zombie
	}
	return err
}

// forgetMarks tells the watcher that nothing of the family is left, so that a later process
// with the same mark is not killed for it.
func (f *Family) forgetMarks() {
	if f.os.set {
		sendMark("-", strconv.FormatUint(f.os.limit.Cur, 10))
	}
}

// Has reports whether a process has the family's marks: its limit, and no other family's name in the environment; or
// its name in the environment where limits cannot be told apart.
func (f *Family) Has(pid int) bool {
	blind := noTrace.Load()
	if !f.os.set && !blind {
		return false
	}
	limit, ok := limitOf(pid)
	same := f.os.set && ok && limit == f.os.limit.Cur
	if !same && !blind {
		return false
	}
	env, err := environ(pid)
	if err == nil && hasName(env, f.Env()) {
		return true
	}
	return same && (err != nil || !bytes.Contains(env, []byte(variable+"=")))
}

// hasName looks for a whole NAME=value in an environment as /proc gives it, with a NUL after each.
func hasName(env []byte, name string) bool {
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if string(e) == name {
			return true
		}
	}
	return false
}

// limitOf is the mark of a process; false when it has ended or belongs to another user.
func limitOf(pid int) (uint64, bool) {
	var have unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_MSGQUEUE, nil, &have) != nil {
		return 0, false
	}
	return have.Cur, true
}

// environ is the environment that a process was started with. It fails for processes of other users and for those that ended.
func environ(pid int) ([]byte, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
}

// killMarked kills processes with a mark until it finds none, for 2,000 rounds at most. first is the dead program's own mark.
func killMarked(first string, marks map[string]bool) {
	owner, own, _ := strings.Cut(first, " ")
	delete(marks, first)
	limits := map[uint64]bool{}
	for mark := range marks {
		if n, err := strconv.ParseUint(mark, 10, 64); err == nil {
			limits[n] = true
		}
	}
	if n, err := strconv.ParseUint(own, 10, 64); err == nil && n > 0 {
		limits[n] = true
	}
	name := []byte(variable + "=" + owner + ".")
	// 2,000 rounds with a millisecond between them: what forks as fast as it is killed must not keep the watcher for ever.
	for range 2000 {
		if !killOnce(limits, name) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// killOnce kills every process with a mark and reports whether it found one. A process may fork between the listing and
// the signal, so its caller repeats it until nothing is found.
func killOnce(limits map[uint64]bool, name []byte) (found bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	pids, _ := dir.Readdirnames(-1)
	self := os.Getpid()
	program, _ := os.Readlink("/proc/self/exe")
	for _, s := range pids {
		pid, err := strconv.Atoi(s)
		if err != nil || pid == self || pid == 1 {
			continue
		}
		env, envErr := environ(pid)
		switch limit, ok := limitOf(pid); {
		case envErr == nil && hasPrefix(env, name):
		case !ok || !limits[limit] || hasPrefix(env, []byte(variable+"=")):
			continue
		default:
			// Another Pillion may have the same value by chance. It is never killed for its limit alone.
			if exe, err := os.Readlink("/proc/" + s + "/exe"); err == nil && exe == program {
				continue
			}
		}
		if dead(s) {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			found = true
		}
	}
	return found
}

// hasPrefix looks for a variable that begins with prefix in an environment with a NUL after each.
func hasPrefix(env, prefix []byte) bool {
	return bytes.HasPrefix(env, prefix) || bytes.Contains(env, append([]byte{0}, prefix...))
}

// dead reports a process that has ended: it is gone, a zombie that its parent has not waited for, or about to be removed.
// The state is the field after the name, which itself may hold brackets: so the last one is looked for.
func dead(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(stat, ')')
	return i < 0 || len(stat) > i+2 && (stat[i+2] == 'Z' || stat[i+2] == 'X')
}
