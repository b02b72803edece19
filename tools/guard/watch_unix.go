//go:build unix

package guard

import (
	"bufio"
	"maps"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The watching process and the marks it knows. A line on the pipe is + or - and a mark. marks repeats what was written, for
// a new watcher after the old one was killed.
var watcher struct {
	mu    sync.Mutex
	proc  *os.Process     // guarded by mu
	pipe  *os.File        // guarded by mu
	marks map[string]bool // guarded by mu
	over  bool            // Close was called; no watcher is started any more; guarded by mu
}

// watch starts the watcher when there is none. Its errors are dropped: without it a command is less protected, but runs.
func watch() {
	if !enabled.Load() {
		return
	}
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	if watcher.pipe == nil && !watcher.over {
		startWatcher()
	}
}

// startWatcher starts the watcher and tells it all marks. When that fails pipe stays nil, and the next watch tries again. mu is
// held.
func startWatcher() {
	argv, more, err := watching()
	if err != nil {
		return
	}
	if more != nil {
		defer more.Close()
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return
	}
	defer null.Close()
	// A session of its own: what ends our terminal or our process group must not end the watcher first. It only waits, so one
	// processor and a small heap are enough.
	files := []*os.File{theirs, null, null}
	if more != nil {
		files = append(files, more)
	}
	p, err := os.StartProcess(argv[0], argv[1:], &os.ProcAttr{
		Dir: "/", Env: append(without(os.Environ()), "GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=16MiB"),
		Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		ours.Close()
		return
	}
	unmark(p.Pid)
	watcher.proc, watcher.pipe = p, ours
	for mark := range watcher.marks {
		_, _ = ours.WriteString("+" + mark + "\n")
	}
}

// sendMark tells the watcher a mark to kill (+), or that no process has it any more (-). It may be called without a watcher.
func sendMark(sign, mark string) {
	if !enabled.Load() {
		return
	}
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	if sign == "-" {
		delete(watcher.marks, mark)
	} else {
		if watcher.marks == nil {
			watcher.marks = map[string]bool{}
		}
		watcher.marks[mark] = true
	}
	if watcher.pipe == nil {
		return
	}
	if _, err := watcher.pipe.WriteString(sign + mark + "\n"); err == nil {
		return
	}
	dismiss(0) // the watcher was killed
	startWatcher()
}

// dismiss closes the watcher's pipe, whereupon it kills what still has a mark and ends, and waits at most limit for that. A
// goroutine reaps it in any case. mu is held.
func dismiss(limit time.Duration) {
	if watcher.pipe == nil {
		return
	}
	watcher.pipe.Close()
	p := watcher.proc
	watcher.pipe, watcher.proc = nil, nil
	done := make(chan struct{})
	go func() { defer close(done); _, _ = p.Wait() }()
	if limit > 0 {
		select {
		case <-done:
		case <-time.After(limit):
		}
	}
}

// Close kills what still runs with a mark, as the end of this program would, and ends the watcher; it waits a second at
// most. Processes started afterwards are not watched.
func Close() {
	watcher.mu.Lock()
	defer watcher.mu.Unlock()
	watcher.over = true
	if watcher.pipe == nil {
		return
	}
	// This program kills by itself, which costs less than the start of one that does it in a shell's place.
	killed := make(chan bool)
	marks := maps.Clone(watcher.marks)
	if marks == nil {
		marks = map[string]bool{}
	}
	go func() { killMarked(firstMark(), marks); close(killed) }()
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	select {
	case <-killed:
		_, _ = watcher.pipe.WriteString(over + "\n")
	case <-limit.C: // the watcher goes on
	}
	dismiss(time.Second)
}

// over is the line that tells the watcher that nothing is left to kill.
const over = "."

// Main is the watching process: it reads marks from standard input until that ends, because its parent has called Close or has
// died, and kills the processes that have one. It returns the exit code. Where a shell has waited in its place, the marks are arguments.
// Signals that a terminal or a service manager sends to everybody are ignored, because they arrive just when it is needed.
func Main() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if len(os.Args) < 3 {
		return 2
	}
	// Before anything else is read: the watcher has inherited the mark of the program that it watches.
	unmark(os.Getpid())
	marks := map[string]bool{}
	for _, mark := range os.Args[3:] {
		marks[mark] = true
	}
	if first := os.Args[2]; first != "" {
		marks[first] = true
	}
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		if mark, ok := strings.CutPrefix(s.Text(), "+"); ok {
			marks[mark] = true
		} else if mark, ok := strings.CutPrefix(s.Text(), "-"); ok {
			delete(marks, mark)
		} else if s.Text() == over {
			return 0
		}
	}
	killMarked(os.Args[2], marks)
	return 0
}
