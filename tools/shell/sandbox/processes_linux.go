package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessLimit limits the processes and threads that the contained commands of one session have at the same time, so that a fork
// bomb cannot stop the machine. The kernel enforces it: by a control group where this program may create one, else by
// RLIMIT_NPROC. Root is exempt from RLIMIT_NPROC (setrlimit(2)); without a control group, Held is then false and the
// caller must count the processes itself.
type ProcessLimit struct {
	Most int // processes and threads
	// NoGroup makes no control group, for tests of systems without them.
	NoGroup bool

	mu    sync.Mutex
	group string // folder of the control group; empty: there is none; guarded by mu
	tried bool   // makeGroup was called; guarded by mu
}

// limitNumber makes the names of the groups of this process unique.
var limitNumber atomic.Int64

// NewProcessLimit returns a limit of defaultProcesses. The control group is created by the first Admit.
func NewProcessLimit() *ProcessLimit { return &ProcessLimit{Most: defaultProcesses()} }

// Held reports whether the kernel enforces the limit. It is meaningful after the first Admit.
func (l *ProcessLimit) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.group != "" || os.Geteuid() != 0
}

// Admit puts a process, and everything it starts from then on, under the limit. Processes that it has started before are not limited.
func (l *ProcessLimit) Admit(pid int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tried {
		l.tried = true
		if !l.NoGroup {
			l.group = l.makeGroup()
		}
	}
	if l.group != "" {
		if err := os.WriteFile(filepath.Join(l.group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("process limit: %w", err)
		}
		return nil
	}
	if os.Geteuid() == 0 {
		return nil
	}
	// RLIMIT_NPROC is a limit of each process, compared with the number of all tasks of the user. So those that run already are added,
	// and the person's other programs keep their own, higher limit.
	most := uint64(l.Most) + ownTasks()
	var have unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &have); err != nil {
		return fmt.Errorf("process limit: %w", err)
	}
	most = min(most, have.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("process limit: %w", err)
	}
	return nil
}

// Idle reports whether no process, not even a zombie, is under the limit. Without a control group that is not known, and it is false.
func (l *ProcessLimit) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group == "" {
		return false
	}
	n, err := os.ReadFile(filepath.Join(l.group, "pids.current"))
	return err == nil && strings.TrimSpace(string(n)) == "0"
}

// makeGroup creates the control group and returns its folder; empty if that is not possible.
func (l *ProcessLimit) makeGroup() string {
	parent := processGroups()
	if parent == "" {
		return ""
	}
	group := filepath.Join(parent, fmt.Sprintf("pillion-contained.%d.%d", os.Getpid(), limitNumber.Add(1)))
	if os.Mkdir(group, 0o755) != nil {
		return ""
	}
	if os.WriteFile(filepath.Join(group, "pids.max"), []byte(strconv.Itoa(l.Most)), 0o644) != nil {
		_ = os.Remove(group)
		return ""
	}
	return group
}

// Close removes the control group. All processes under the limit must have ended; otherwise the group stays, and sweepGroups
// removes it later. After Close the limit can be used again.
func (l *ProcessLimit) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group != "" {
		_ = os.Remove(l.group)
		l.group, l.tried = "", false
	}
}

// ownTasks is the number of the user's tasks, up to 5 seconds old: counting takes longer than starting a command, and
// the limit has room for hundreds more.
func ownTasks() uint64 {
	counted.mu.Lock()
	defer counted.mu.Unlock()
	if now := time.Now(); counted.at.IsZero() || now.Sub(counted.at) > 5*time.Second {
		counted.tasks, counted.at = tasksOf(os.Geteuid()), now
	}
	return counted.tasks
}

// counted is the last result of ownTasks; at and tasks are guarded by mu.
var counted struct {
	mu    sync.Mutex
	at    time.Time
	tasks uint64
}
