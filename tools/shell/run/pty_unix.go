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

// Start starts a terminal. The error says that too many run, that the session has ended, or why the shell could not be started. Start
// reserves a place first and does not hold mu while the process starts, so that List and Close need not wait for it.
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
	if closed { // Close was called while the terminal was being started
		t.Kill()
		return nil, errors.New("the session has ended; no terminal can be started in it")
	}
	return t, nil
}

// start starts the shell for the user. Unlike commands of the agent, it keeps the API keys in the environment.
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
	// Without a text the shell gets no arguments. It is interactive then, because its input is a terminal.
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
	// Before the start: a program reads the size when it starts, and may ignore the signal of a later change.
	if err := resize(ours, c.Rows, c.Cols); err != nil {
		return nil, errors.Join(fmt.Errorf("the terminal's size: %w", err), ours.Close(), theirs.Close())
	}
	cmd := guard.Command(guard.Person, append([]string{name}, args...)...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, theirs, theirs, theirs
	cmd.Env = append(env[:len(env):len(env)], j.family.Env(), "PWD="+c.Dir, "TERM=xterm-256color")
	j.cmd = cmd
	err = spawn(j)
	// From here on only the program's processes hold theirs, so reading from ours ends when the last of them has ended.
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
	// From here on the goroutines below own the job, so start must not fail any more.
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
		_ = j.cmd.Wait() // the result is in ProcessState
		close(j.done)
		t.ends.Do(func() { ts.runner.end(j) }) // ends the processes that the shell left running
		// Output that is still on its way is read first: with the last process the terminal reports its end.
		// That ends read, which closes the channel.
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

// read copies output to the ring until the last process has closed the terminal. It runs in a goroutine of its own, because a program
// that fills the buffer of the pseudo-terminal blocks until somebody reads.
func (t *Terminal) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.tty.Read(buf)
		if n > 0 {
			_, _ = t.out.Write(buf[:n]) // Write of a ring never fails
		}
		if err != nil {
			return // EIO on Linux, EOF elsewhere
		}
	}
}

// Resize sets the size of the terminal in character cells; 0 stands for 24 rows or 80 columns. It returns ErrTerminalEnded after the
// program has ended, and does nothing for a command without a pseudo-terminal.
func (t *Terminal) Resize(rows, cols int) error {
	t.size.Lock()
	defer t.size.Unlock()
	if t.over {
		return ErrTerminalEnded
	}
	if t.tty == nil {
		return nil // the command prints to a pipe, which has no size
	}
	t.info.Rows, t.info.Cols = int(clampSide(rows, 24)), int(clampSide(cols, 80))
	return resize(t.tty, rows, cols)
}

// openPTY opens a pseudo-terminal. The library opens Pillion's end in blocking mode; openPTY makes it non-blocking, so that a deadline
// can end a write that no program reads. The caller closes both ends.
func openPTY() (ours, theirs *os.File, err error) {
	f, theirs, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	// os.NewFile supports deadlines only for a descriptor that is non-blocking already, so a copy is made for it.
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
	// SyscallConn, since deadlines of the file may stop working after Fd (see os.File.Fd).
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
