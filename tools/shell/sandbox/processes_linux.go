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

// ProcessLimit bounds the processes and threads that the contained commands of one session have at the same time: a fork
// bomb in one of them must not stop the rest of the machine. The kernel holds it, by a control group where this program
// may make one, else by RLIMIT_NPROC. Root is exempt from that one (setrlimit(2)), so a root without control groups has
// no such limit and the caller must watch the commands itself: Held says so.
type ProcessLimit struct {
	Most int // processes and threads
	// NoGroup leaves control groups alone, as on a system without: for tests.
	NoGroup bool

	mu    sync.Mutex
	group string // folder of the control group; empty: none was made
	tried bool   // making a group was tried; guarded by mu
}

// limitNumber tells the groups of one process apart.
var limitNumber atomic.Int64

// NewProcessLimit makes a limit. Nothing is made in the system before the first command.
func NewProcessLimit() *ProcessLimit { return &ProcessLimit{Most: defaultProcesses()} }

// Held reports whether the kernel holds the limit.
func (l *ProcessLimit) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.group != "" || os.Geteuid() != 0
}

// Admit puts a process, and all that it starts, under the limit. The process must not have started others yet.
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
	// The kernel counts all tasks of the user, but refuses a new one only to processes that have this low limit: the
	// person's own programs keep theirs.
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

// Idle reports that no process is under the limit, zombies included. False may also mean that this is not known.
func (l *ProcessLimit) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group == "" {
		return false
	}
	n, err := os.ReadFile(filepath.Join(l.group, "pids.current"))
	return err == nil && strings.TrimSpace(string(n)) == "0"
}

// makeGroup makes the control group; empty where that is not possible.
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

// Close removes the control group. Nothing of the commands may be left; a group with processes stays, and is removed by
// a later session once they have ended.
func (l *ProcessLimit) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.group != "" {
		_ = os.Remove(l.group)
		l.group, l.tried = "", false
	}
}

// ownTasks counts the tasks of this user, at most every few seconds: that takes longer than starting a command does,
// and the limit leaves room for hundreds.
func ownTasks() uint64 {
	counted.mu.Lock()
	defer counted.mu.Unlock()
	if now := time.Now(); counted.at.IsZero() || now.Sub(counted.at) > 5*time.Second {
		counted.tasks, counted.at = tasksOf(os.Geteuid()), now
	}
	return counted.tasks
}

// counted is the last answer of ownTasks; at and tasks are guarded by mu.
var counted struct {
	mu    sync.Mutex
	at    time.Time
	tasks uint64
}
