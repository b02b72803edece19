package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// process is a running server: its pipes, the end of its stderr, and how it ended.
type process struct {
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *tail         // its last 64 KiB
	exited chan struct{} // closed when the process has ended and was reaped
	err    error         // how it ended; set before exited is closed
	kill   func()        // kills the whole process group at once
	pid    int
}

// startProcess runs argv in dir with env added to the environment. The process gets a group of its own, so that its children can be killed
// with it, and ends with this program where the platform supports that. An error means that the program could not be started.
func startProcess(why guard.Reason, argv []string, dir string, env []string, start func(*exec.Cmd) error) (*process, error) {
	if start == nil {
		start = (*exec.Cmd).Start
	}
	why.Who = guard.Server
	cmd := guard.CommandFor(context.Background(), why, argv...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = processAttributes()
	p := &process{stderr: &tail{max: 64 << 10}, exited: make(chan struct{})}
	cmd.Stderr = p.stderr
	// A child of the server may keep stderr open; do not wait for it after the server has exited.
	cmd.WaitDelay = 500 * time.Millisecond
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait closes that pipe before the last message has been read.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	started := make(chan error)
	go func() {
		// PDEATHSIG counts from the parent's thread, so keep this thread as long as the server lives (prctl(2)).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := start(cmd)
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		// Children of the server would keep its pipes open and go on running.
		killGroup(cmd)
		close(p.exited)
	}()
	err = <-started
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("starting %s: %w", argv[0], err)
	}
	p.stdin, p.stdout, p.pid = stdin, r, cmd.Process.Pid
	p.kill = func() { killGroup(cmd) }
	return p, nil
}

// endReason returns why the process ended, with the most telling line of its stderr. Call it after exited is closed.
func (p *process) endReason() error {
	text := "ended by itself"
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		text = exit.Error()
	}
	if line := p.stderr.explanation(); line != "" {
		text += ": " + line
	}
	return errors.New(text)
}

// tail keeps the last max bytes written to it: a server may log for days.
type tail struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
	max int
}

// Write implements io.Writer; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// String returns the kept output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// explanation returns the line that best explains the exit: the first that names an error, else the last one.
func (t *tail) explanation() string {
	said := strings.TrimSpace(t.String())
	line := said[strings.LastIndexByte(said, '\n')+1:]
	for l := range strings.SplitSeq(said, "\n") {
		if l = strings.TrimSpace(l); namesError(l) {
			line = l
			break
		}
	}
	// The explanation becomes part of a one-line notice, and a line of a bundled script can be kilobytes long.
	if len(line) > 300 {
		line = line[:300] + "…"
	}
	return strings.ToValidUTF8(line, "")
}

// namesError reports whether a line begins like "error: …", "panic: …", or as language runtimes print errors: "TypeError: …", "Error
// [ERR_MODULE_NOT_FOUND]: …", "pkg.SomeException: …".
func namesError(line string) bool {
	low := strings.ToLower(line)
	if strings.HasPrefix(low, "error") || strings.HasPrefix(low, "panic:") || strings.HasPrefix(low, "fatal") {
		return true
	}
	head, _, ok := strings.Cut(low, ":")
	name, _, _ := strings.Cut(head, " [")
	return ok && !strings.ContainsAny(name, " \t/\\(") && (strings.HasSuffix(name, "error") || strings.HasSuffix(name, "exception"))
}
