//go:build !linux

package draft

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/pillion-dev/pillion/tools/guard"
)

// Main is the helper of Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "pillion: drafts are entered on Linux only")
	return 125
}

// Probe says what the system offers.
func Probe() Support { return Support{View: Copy, Why: "only Linux has namespaces"} }

func (d *Draft) unfit(context.Context, Support) string { return "" }

func (d *Draft) command(argv []string) (*exec.Cmd, error) {
	cmd := guard.Command(guard.Bash, argv...)
	cmd.Dir = d.Root()
	return cmd, nil
}
