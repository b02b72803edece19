package guard

import (
	"errors"
	"os"
	"runtime"
	"sync"
)

// Thread is a thread of this program that is restricted for good and does nothing but start commands: what Linux applies
// to threads (Landlock, seccomp, capabilities) then holds for the commands and not for this program, at the cost of a
// fork. It lives until it is closed and the families that it started are over: the parent-death signal of their first
// processes comes when it ends.
type Thread struct {
	work chan func() // what the thread is to run; closed to end it, by end

	mu     sync.Mutex
	users  int  // families that are not over; guarded by mu
	closed bool // guarded by mu
	ended  bool // work is closed; guarded by mu
}

// NewThread makes a thread and calls restrict on it. When restrict fails its error is returned and the thread ends. The
// caller must Close the thread, or it stays as long as this program.
func NewThread(restrict func() error) (*Thread, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("threads are restricted on Linux only")
	}
	t := &Thread{work: make(chan func())}
	ready := make(chan error)
	serve := func() {
		adoptOrphans() // before the thread is restricted; it counts for the process
		err := restrict()
		ready <- err
		if err != nil {
			return
		}
		for f := range t.work {
			f()
		}
	}
	go func() {
		runtime.LockOSThread() // where it is restricted it is never unlocked: it ends with its goroutine
		if threadID() != os.Getpid() {
			serve()
			return
		}
		// The first thread is the process to the kernel (/proc/self, signals) and never ends: it must not be restricted.
		other := make(chan struct{})
		go func() { runtime.LockOSThread(); close(other); serve() }()
		<-other
		runtime.UnlockOSThread()
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return t, nil
}

// start runs a function that starts a command on the thread. release must follow, also when it failed.
func (t *Thread) start(f func() error) error {
	t.mu.Lock()
	t.users++
	ended := t.ended
	t.mu.Unlock()
	if ended {
		return errors.New("the restricted thread has ended")
	}
	// The thread serves one start at a time; others wait in the send.
	done := make(chan error)
	t.work <- func() { done <- f() }
	return <-done
}

// release counts down for a family whose processes have ended, or whose start failed. The last one ends a closed thread.
func (t *Thread) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users--
	t.end()
}

// Close ends the thread when the last family is over, or at once when there is none. It does not wait for that.
func (t *Thread) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.end()
}

// end ends the thread when it is closed and has no families left. mu is held.
func (t *Thread) end() {
	if t.closed && t.users == 0 && !t.ended {
		t.ended = true
		close(t.work)
	}
}
