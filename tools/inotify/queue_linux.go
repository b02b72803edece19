package inotify

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrLost means that the kernel dropped events because too many waited: what is remembered of every folder may be wrong.
var ErrLost = errors.New("too many files changed at once")

// Queue is an inotify instance. It is not safe for concurrent use, except Wait and Interrupt. A Queue that nobody holds any more closes itself.
type Queue struct {
	file *os.File
	fd   int // of file: reads are made on it, as they must not wait
	buf  []byte
}

// Open makes a queue. A person may have few of them (fs.inotify.max_user_instances, 128 by default).
func Open() (*Queue, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &Queue{file: os.NewFile(uintptr(fd), "inotify"), fd: fd, buf: make([]byte, 64<<10)}, nil
}

// Close ends the watching. It may be called again.
func (q *Queue) Close() {
	q.file.Close()
	q.fd = -1
}

// Add watches an open folder, by its descriptor because a path may lead elsewhere by now. The number of the watch is the same
// when the folder is watched already, under whatever name.
func (q *Queue) Add(folder int, mask uint32) (watch int32, err error) {
	w, err := unix.InotifyAddWatch(q.fd, fmt.Sprintf("/proc/self/fd/%d", folder), mask)
	return int32(w), err
}

// Remove ends a watch; it does nothing where the folder is gone.
func (q *Queue) Remove(watch int32) { _, _ = unix.InotifyRmWatch(q.fd, uint32(watch)) }

// Drain reads all events that the kernel has queued. It ends with the first error of do, or with ErrLost.
func (q *Queue) Drain(do func(watch int32, mask uint32, name string) error) error {
	for {
		n, err := unix.Read(q.fd, q.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return nil
		case err != nil:
			return err
		case n < unix.SizeofInotifyEvent:
			return ErrLost
		}
		for b := q.buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&b[0]))
			end := unix.SizeofInotifyEvent + int(e.Len)
			name := b[unix.SizeofInotifyEvent:end]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			if e.Mask&unix.IN_Q_OVERFLOW != 0 {
				return ErrLost
			}
			if err := do(e.Wd, e.Mask, string(name)); err != nil {
				return err
			}
			b = b[end:]
		}
	}
}

// Interrupt ends a Wait.
func (q *Queue) Interrupt() { _ = q.file.SetReadDeadline(time.Now()) }

// Wait blocks until there are events, the time has come or the queue is closed. It reads nothing.
func (q *Queue) Wait(until time.Time) {
	_ = q.file.SetReadDeadline(until)
	conn, err := q.file.SyscallConn()
	if err != nil {
		return
	}
	// The poller reports what comes after this call began, so the function looks for what was there before.
	_ = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// Watches is how many folders a person's programs may watch together (fs.inotify.max_user_watches), editors above all.
func Watches() (int, error) {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return 0, err
	}
	var limit int
	_, err = fmt.Sscan(string(b), &limit)
	return limit, err
}
