package external

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// command implements Program by a child of this process.
type command struct {
	io.WriteCloser
	cmd    *exec.Cmd
	out    *os.File
	exited chan struct{}
	err    error // set before exited is closed
}

// Start starts cmd as a Program with start, which is guard.Start, or starts it in a draft. The caller must have given cmd a process group of its
// own (guard.OwnGroup), which is killed when cmd exits, and must not have set its standard streams.
func Start(cmd *exec.Cmd, stderr io.Writer, start func(*exec.Cmd) error) (Program, error) {
	cmd.Stderr = stderr
	cmd.WaitDelay = 3 * time.Second // its own children may keep standard error open after its exit
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait closes that pipe when the program exits, before its last message has been read.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	err = start(cmd)
	w.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	c := &command{WriteCloser: in, cmd: cmd, out: out, exited: make(chan struct{})}
	go func() {
		if err := cmd.Wait(); !errors.Is(err, exec.ErrWaitDelay) {
			c.err = err
		}
		guard.KillGroup(cmd) // processes that it left behind
		close(c.exited)
	}()
	return c, nil
}

func (c *command) Output() io.ReadCloser   { return c.out }
func (c *command) Exited() <-chan struct{} { return c.exited }
func (c *command) Err() error              { return c.err }
func (c *command) Kill()                   { guard.KillGroup(c.cmd) }
