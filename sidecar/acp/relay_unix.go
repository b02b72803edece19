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

func (p *relayPipe) remove() { _ = os.RemoveAll(p.dir) }

func (p *relayPipe) command() (string, []string) {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return self, []string{RelayArg, p.path}
}

// abandon lets go who waits for the other end.
func (p *relayPipe) abandon() {
	if f, err := os.OpenFile(p.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		f.Close()
	}
}

// attached waits until the editor's program reads.
func (p *relayPipe) attached(ctx context.Context, limit time.Duration) (*os.File, error) {
	late := time.AfterFunc(limit, p.abandon)
	f, err := os.OpenFile(p.path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if !late.Stop() || ctx.Err() != nil {
		f.Close()
		return nil, errors.New("nobody came to read")
	}
	return f, nil
}

// printRelay sends a terminal's output in frames: a letter, a length, bytes. The last one is x with the exit code.
func printRelay(ctx context.Context, t *run.Terminal, out *os.File) error {
	send := func(kind byte, data []byte) error {
		_ = out.SetWriteDeadline(time.Now().Add(relayStuck))
		head := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(len(data)))...)
		_, err := out.Write(append(head, data...))
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // a pipe tells of its reader's end only who writes or looks
		tick := time.NewTicker(relayLook)
		defer tick.Stop()
		for !unread(out) {
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

// cancelled is the exit code of a command whose host went away, as shells report an interrupt.
const cancelled = 130

// RelayMain is what the editor's terminal runs: it prints the command's output and returns its exit code. The one argument
// is the path of the named pipe; the code is 2 without it, and 1 when the pipe is gone.
func RelayMain(args []string) int {
	if len(args) != 1 {
		return 2
	}
	f, err := os.Open(args[0])
	if err != nil {
		os.Stderr.WriteString("pillion: the command is not there any more\n")
		return 1
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return cancelled // Pillion has gone
		}
		n := int64(binary.BigEndian.Uint32(head[1:]))
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

const relayLook = 250 * time.Millisecond

// unread reports that nobody reads a pipe any more.
func unread(out *os.File) bool {
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
