//go:build !linux

package worker

import (
	"net"
	"os"
	"os/exec"

	"github.com/pillion-dev/pillion/tools/builtin"
)

// launchSocket returns nothing: Start does not need the worker.
func launchSocket() (*net.UnixConn, *os.File, error) { return nil, nil, nil }

// Start starts a program in the draft, which is a copy on these systems: a program sees it if its folder is that of the copy, so no other
// process is needed. cmd is as for guard.Start, and Start puts it into the sandbox.
func (c *Client) Start(cmd *exec.Cmd, r Rights) error {
	box, err := r.box(builtin.Env{Root: c.settings.Root, Cwd: c.settings.Cwd, Home: c.settings.Home}, cmd.Dir)
	if err != nil {
		return err
	}
	return start(cmd, box)
}

// Relay is never called, since Start starts no relay.
func Relay([]string) int { return 125 }

func withhold() {}

func (s *server) serveLaunches() {}
