//go:build unix

package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// Start starts a terminal. The error says that there are too many, that the session has ended, or what kept the shell from
// starting. The process starts without mu held, in a place that reserve has taken: List and Close must not wait for it.
func (ts *Terminals) Start(c TerminalCommand) (*Terminal, error) {
	id, err := ts.reserve()
	if err != nil {
		return nil, err
	}
	t, err := ts.start(id, c)
	if err != nil {
		ts.forget(id)
		return nil, err
	}
	ts.mu.Lock()
	ts.open[id] = t
	closed := ts.closed
	ts.mu.Unlock()
	if closed { // closed while it was started
		t.Kill()
		return nil, errors.New("the session has ended; no terminal can be started in it")
	}
	return t, nil
}

// start runs the shell as the person: guard.Person leaves the environment's keys in, unlike for commands of the agent.
func (ts *Terminals) start(id string, c TerminalCommand) (*Terminal, error) {
	shell, err := c.Shell, error(nil)
	if shell == "" {
		if shell, err = Detect(""); err != nil {
			return nil, err
		}
	}
	switch info, err := os.Stat(c.Dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the directory %s does not exist (any more)", c.Dir)
	case err != nil:
		return nil, fmt.Errorf("the directory %s cannot be used: %w", c.Dir, err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", c.Dir)
	}
	// Without a text the shell gets no arguments, and is interactive because its input is a terminal.
	name, args := shell, []string(nil)
	if c.Text != "" {
		args = shellArgs(shell, c.Text)
	}
	j := &job{family: guard.NewFamily(), done: make(chan struct{}), tty: true, box: c.Sandbox}
	env := c.Env
	if env == nil {
		env = personEnviron(os.Environ())
	}
	if c.Sandbox != nil {
		if name, args, err = c.Sandbox.Argv(name, args); err != nil {
			return nil, err
		}
		env = c.Sandbox.Environ(env)
	}
	ours, theirs, err := openPTY()
	if err != nil {
		return nil, fmt.Errorf("no pseudo-terminal: %w", err)
	}
	// Before the start: programs ask for the size once at their beginning, and a later change is a signal that they may not catch.
	if err := resize(ours, c.Rows, c.Cols); err != nil {
		return nil, errors.Join(fmt.Errorf("the terminal's size: %w", err), ours.Close(), theirs.Close())
	}
	cmd := guard.Command(guard.Person, append([]string{name}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, theirs, theirs, theirs
	cmd.Env = append(env[:len(env):len(env)], j.family.Env(), "PWD="+c.Dir, "TERM=xterm-256color")
	j.cmd = cmd
	err = spawn(j)
	// Only the program holds its end from here on, so that reading ours ends with its last process.
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("%s cannot be started: %w", shell, err)
	}
	title := c.Title
	if title == "" {
		title = cmp.Or(visible.Text(strings.TrimSpace(c.Text)), filepath.Base(shell))
	}
	info := TerminalInfo{Title: title, Command: c.Text, Dir: c.Dir, Rows: int(clampSide(c.Rows, 24)), Cols: int(clampSide(c.Cols, 80)), PTY: true}
	// From here on the goroutines own the job: nothing below may return an error.
	t := &Terminal{id: id, info: info, job: j, tty: ours, out: newRing(Scrollback), done: make(chan struct{}), all: ts}
	ts.runner.add(j)
	read := make(chan struct{})
	ts.runner.wg.Add(2)
	go func() {
		defer ts.runner.wg.Done()
		defer close(read)
		t.read()
	}()
	go func() {
		defer ts.runner.wg.Done()
		_ = j.cmd.Wait() // how it ended is in ProcessState
		close(j.done)
		t.ends.Do(func() { ts.runner.end(j) }) // what the shell left in its terminal ends with it
		// Output that is still on its way is read first: with the last process the terminal reports its end.
		<-read
		t.size.Lock()
		t.over = true
		t.size.Unlock()
		ours.Close()
		t.exit, t.signal = exitOf(j.cmd.ProcessState)
		t.out.end()
		close(t.done)
	}()
	return t, nil
}

// read copies output to the ring until the last process has closed its end. It runs in a goroutine of its own, since a program
// that fills the pseudo-terminal stops until somebody reads.
func (t *Terminal) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.tty.Read(buf)
		if n > 0 {
			_, _ = t.out.Write(buf[:n]) // a ring takes everything
		}
		if err != nil {
			return // EIO on Linux, EOF elsewhere
		}
	}
}

// Resize tells the program the size of the window in character cells; 0 stands for 24 rows or 80 columns. It returns
// ErrTerminalEnded after the end.
func (t *Terminal) Resize(rows, cols int) error {
	t.size.Lock()
	defer t.size.Unlock()
	if t.over {
		return ErrTerminalEnded
	}
	if t.tty == nil {
		return nil // what a command prints into a pipe has no width
	}
	t.info.Rows, t.info.Cols = int(clampSide(rows, 24)), int(clampSide(cols, 80))
	return resize(t.tty, rows, cols)
}

// openPTY opens a pseudo-terminal whose end of Pillion does not block a thread, so that a write nobody reads can be given
// up: the library leaves it in blocking mode.
// The caller closes both ends.
func openPTY() (ours, theirs *os.File, err error) {
	f, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	// A copy, because os.NewFile looks at the mode of the descriptor: only a non-blocking one has deadlines.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		if err = unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd)
		}
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), theirs, nil
}

// resize sets the size in character cells; the kernel sends SIGWINCH to the program.
func resize(f *os.File, rows, cols int) error {
	// SyscallConn and not Fd, after which the deadlines of the file may stop working (see os.File.Fd).
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = conn.Control(func(fd uintptr) {
		inner = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: clampSide(rows, 24), Col: clampSide(cols, 80)})
	})
	return errors.Join(err, inner)
}
