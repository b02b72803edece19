//go:build !linux

package draft

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/pillion-dev/pillion/tools/guard"
)

// Main is the helper of Linux. On other systems no command of ours names it; 125 is the same code for a failure of its own.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "pillion: drafts are entered on Linux only")
	return 125
}

// Probe says what the system offers: a copy under another path, whose names the caller translates.
func Probe() Support { return Support{View: Copy, Why: "only Linux has namespaces"} }

// unfit implements the question of best: there is no overlay here.
func (d *Draft) unfit(context.Context, bool) string { return Probe().Why }

// command is Command in a copy: an ordinary process whose working directory is the clone. Nothing keeps it from the project.
func (d *Draft) command(argv []string) (*exec.Cmd, error) {
	cmd := guard.Command(guard.Bash, argv...)
	cmd.Dir = d.Root()
	return cmd, nil
}
