package run

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// cells start contained commands. The thread that is restricted for one command serves the next as long as that may read
// the same, so that a session has one thread for all of them. The zero value is ready.
// Restricting a thread is for good, so a thread can only serve commands with the same limits; another set of readable files
// gets a new one.
type cells struct {
	mu      sync.Mutex
	current *cell                 // guarded by mu; nil: none yet
	temp    string                // guarded by mu; the private temporary folder of all; empty: not made yet
	running int                   // guarded by mu; commands of all cells that are not over
	limit   *sandbox.ProcessLimit // guarded by mu; of all commands together; nil: not made yet
}

// cell is a restricted thread, and what its commands may read.
type cell struct {
	thread    *guard.Thread
	contained *sandbox.Contained
	limit     *sandbox.ProcessLimit
	running   int // commands that are not over; guarded by the mutex of cells
}

// enter gives the cell for a command. leave must be called when nothing of the command is left.
// An error means that the command does not run: it was allowed without a question only because it would be contained.
func (c *cells) enter(o sandbox.ContainOptions) (*cell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit == nil {
		c.limit = sandbox.NewProcessLimit()
	}
	if c.temp == "" {
		dir, err := os.MkdirTemp("", "pillion-commands-")
		if err != nil {
			return nil, fmt.Errorf("no private temporary folder for the command: %w", err)
		}
		c.temp = dir
	}
	o.Temp = c.temp
	contained, err := sandbox.Contain(o)
	if err != nil {
		return nil, err
	}
	if c.current == nil || !c.current.contained.Same(contained) {
		// Before the old cell is given up: when this fails, the commands of the old one continue undisturbed.
		thread, err := guard.NewThread(contained.Restrict)
		if err != nil {
			return nil, fmt.Errorf("the command cannot be contained, so it was not run: %w", err)
		}
		// One that still has commands is closed by the last leave.
		if old := c.current; old != nil && old.running == 0 {
			old.thread.Close()
		}
		c.current = &cell{thread: thread, contained: contained, limit: c.limit}
	}
	c.running++
	c.current.running++
	return c.current, nil
}

// leave says that nothing of a command is left. The temporary folder is emptied when no other command uses it.
// It is emptied so that one command cannot leave a file for the next one to run.
func (c *cells) leave(x *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.running--; x.running == 0 && x != c.current {
		x.thread.Close()
	}
	if c.running--; c.running > 0 {
		return
	}
	entries, _ := os.ReadDir(c.temp)
	for _, e := range entries {
		_ = os.RemoveAll(filepath.Join(c.temp, e.Name())) // what cannot be removed stays until the session's end
	}
}

// close ends the current thread and removes the temporary folder. The caller starts nothing afterwards and has ended all
// commands (Runner.Close); restrictions belong to processes, so one that is left would keep its own.
func (c *cells) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		c.current.thread.Close()
		c.current = nil
	}
	if c.temp != "" {
		_ = os.RemoveAll(c.temp)
		c.temp = ""
	}
	if c.limit != nil {
		c.limit.Close()
	}
}
