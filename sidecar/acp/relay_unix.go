//go:build unix

package acp

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/shell/run"
)

// relayPipe is a named pipe in a folder that only this user can enter.
type relayPipe struct{ dir, path string }

// newRelayPipe makes the pipe. XDG_RUNTIME_DIR belongs to the user and is emptied at logout; without it the temporary
// folder is used.
func newRelayPipe() (*relayPipe, error) {
	dir, err := os.MkdirTemp(os.Getenv("XDG_RUNTIME_DIR"), "pillion-terminal-")
	if err != nil {
		return nil, err
	}
	p := &relayPipe{dir, filepath.Join(dir, "out")}
	if err := syscall.Mkfifo(p.path, 0o600); err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

// remove deletes the pipe; it may be called twice.
func (p *relayPipe) remove() { _ = os.RemoveAll(p.dir) }

// command is the command line that the editor's terminal runs: this program as a relay. The running binary is used
// and not "pillion" from PATH, which may be another version or missing.
func (p *relayPipe) command() (string, []string) {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return self, []string{RelayArg, p.path}
}

// releaseWaiter ends a wait in attached: opening a pipe for writing blocks until another process opens it for reading
// (fifo(7)), so this end does, for a moment.
func (p *relayPipe) releaseWaiter() {
	if f, err := os.OpenFile(p.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
}

// attached waits until the editor's program has opened the pipe, at most limit.
func (p *relayPipe) attached(ctx context.Context, limit time.Duration) (*os.File, error) {
	late := time.AfterFunc(limit, p.releaseWaiter)
	f, err := os.OpenFile(p.path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if !late.Stop() || ctx.Err() != nil {
		f.Close()
		return nil, errors.New("the editor's terminal did not open the pipe in time")
	}
	return f, nil
}

// printRelay writes a terminal's output as frames: a letter, the length (4 bytes, big endian), the bytes. "o" is
// output; the last frame is "x" with the exit code. It returns when the command has ended or the reader is gone.
func printRelay(ctx context.Context, t *run.Terminal, out *os.File) error {
	send := func(kind byte, data []byte) error {
		_ = out.SetWriteDeadline(time.Now().Add(relayWriteTimeout))
		// Head and data leave in one write, so that a reader never waits between them.
		head := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(len(data)))...)
		_, err := out.Write(append(head, data...))
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // a silent command writes nothing, so the end of the reader must be looked for
		tick := time.NewTicker(readerCheck)
		defer tick.Stop()
		for !readerGone(out) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
		cancel(errors.New("the editor's terminal was closed"))
	}()
	for at := int64(0); ; {
		data, next, _, err := t.Read(ctx, at)
		switch {
		case errors.Is(err, io.EOF):
			code, _ := t.Exit()
			// A command that a signal has ended has no code of its own.
			if code < 0 {
				code = 130
			}
			return send('x', []byte{byte(code)})
		case err != nil:
			return err
		}
		if err := send('o', data); err != nil {
			return err
		}
		at = next
	}
}

// cancelled is the exit code of a relay whose Pillion has ended; shells report an interrupt by it.
const cancelled = 130

// RelayMain is what the editor's terminal runs: it prints the command's output and returns its exit code. The one argument
// is the path of the named pipe; the code is 2 without it, and 1 when the pipe is gone. It runs in another process,
// started by the editor: the pipe is all that it shares with this one.
func RelayMain(args []string) int {
	if len(args) != 1 {
		return 2
	}
	f, err := os.Open(args[0])
	if err != nil {
		os.Stderr.WriteString("pillion: the command has ended already\n")
		return 1
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return cancelled // Pillion has ended
		}
		n := int64(binary.BigEndian.Uint32(head[1:]))
		// The code follows as one byte, which is all that wait(2) keeps of it.
		if head[0] == 'x' {
			code, err := r.ReadByte()
			if err != nil {
				return cancelled
			}
			return int(code)
		}
		if _, err := io.CopyN(os.Stdout, r, n); err != nil {
			return cancelled
		}
	}
}

// readerCheck is how often a silent command's pipe is checked for its reader.
const readerCheck = 250 * time.Millisecond

// readerGone reports that a pipe has no reader any more (poll(2): POLLERR at the writing end). A descriptor that
// cannot be asked counts as gone.
func readerGone(out *os.File) bool {
	conn, err := out.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}
