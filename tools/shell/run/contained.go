package run

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// cells provides the restricted threads that start contained commands. The restrictions of a thread can never be lifted, so one thread
// serves all commands that may read the same files, and a command that may read other files gets a new thread. The zero value is
// ready.
type cells struct {
	mu      sync.Mutex
	current *cell                 // guarded by mu; nil: none yet
	temp    string                // guarded by mu; temporary folder of all contained commands; empty: not created yet
	running int                   // guarded by mu; commands in all cells that have processes left
	limit   *sandbox.ProcessLimit // guarded by mu; for all contained commands together; nil: not created yet
}

// cell is a restricted thread with its restrictions.
type cell struct {
	thread    *guard.Thread
	contained *sandbox.Contained
	limit     *sandbox.ProcessLimit
	running   int // commands in this cell that have processes left; guarded by cells.mu
}

// enter returns the cell for a command. The caller must call leave when no process of the command is left. After an error the command
// must not run, since it was allowed without approval only because it would be contained.
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
		// The new thread is made before the old one is closed. If this fails, the old cell stays in use.
		thread, err := guard.NewThread(contained.Restrict)
		if err != nil {
			return nil, fmt.Errorf("the command cannot be contained, so it was not run: %w", err)
		}
		// A thread that still has commands is closed by the leave of the last one.
		if old := c.current; old != nil && old.running == 0 {
			old.thread.Close()
		}
		c.current = &cell{thread: thread, contained: contained, limit: c.limit}
	}
	c.running++
	c.current.running++
	return c.current, nil
}

// leave must be called when no process of a command is left. If no other contained command runs, it empties the temporary folder, so
// that a command cannot leave a file there for a later command to run.
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
		_ = os.RemoveAll(filepath.Join(c.temp, e.Name())) // close tries again what cannot be removed here
	}
}

// close ends the current thread and removes the temporary folder. Runner.Close calls it after it has ended all commands; none may be
// started afterwards. A process that is left all the same keeps its restrictions.
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
