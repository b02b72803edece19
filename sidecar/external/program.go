package external

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// command is a Program that is a child of this process.
type command struct {
	io.WriteCloser
	cmd    *exec.Cmd
	out    *os.File
	exited chan struct{}
	err    error // read after exited
}

// Start starts a command as a Program. The caller has given it a process group of its own (guard.OwnGroup), which ends with it, and has not
// set its standard streams.
func Start(cmd *exec.Cmd, stderr io.Writer) (Program, error) {
	cmd.Stderr = stderr
	cmd.WaitDelay = 3 * time.Second // what it has started may keep standard error open
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of ours: Wait must not close it before the last message was read.
	out, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = w
	err = guard.Start(cmd)
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
		guard.KillGroup(cmd) // what it has left behind
		close(c.exited)
	}()
	return c, nil
}

func (c *command) Output() io.ReadCloser   { return c.out }
func (c *command) Exited() <-chan struct{} { return c.exited }
func (c *command) Err() error              { return c.err }
func (c *command) Kill()                   { guard.KillGroup(c.cmd) }
