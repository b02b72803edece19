//go:build !linux

package draft

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/pillion-dev/pillion/tools/guard"
)

// Main is the helper of Linux. On other systems no command starts it; 125 is the code that it has for failures of its own.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "pillion: drafts are entered on Linux only")
	return 125
}

// Probe reports what the system offers: a copy under another path, which the caller translates.
func Probe() Support { return Support{View: Copy, Why: "only Linux has namespaces"} }

// unfit is the reason for best: without Linux there is no overlay.
func (d *Draft) unfit(context.Context, bool) string { return Probe().Why }

// foreign is the reason for Fits: without Linux there is no overlay.
func (d *Draft) foreign(context.Context) string { return Probe().Why }

// command is Command for a copy: an ordinary process whose working directory is the clone. Nothing keeps it from writing to the project
// under the project's own path.
func (d *Draft) command(argv []string) (*exec.Cmd, error) {
	cmd := guard.Command(guard.Bash, argv...)
	cmd.Dir = d.Root()
	return cmd, nil
}
