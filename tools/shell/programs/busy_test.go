package programs

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// On a busy machine each step of an analysis takes long. A short command is bounded by its steps, so it is understood all the same; a long
// one is cut off and asked about.
func TestABusyMachineUnderstandsShortCommands(t *testing.T) {
	for files, opaque := range map[int]bool{40: false, 2000: true} {
		var command strings.Builder
		command.WriteString("cat")
		for i := range files {
			fmt.Fprintf(&command, " a/%d", i)
		}
		synctest.Test(t, func(t *testing.T) { // whose clock only the delay moves
			busy := func(string, scan.Access) (string, bool) { time.Sleep(100 * time.Millisecond); return "", false }
			a := Analyze(scan.Request{Command: command.String(), Dir: "/p", Root: "/p", Home: "/h", Protected: busy})
			if a.Opaque != opaque {
				t.Errorf("%d bytes: opaque %t, want %t: %s", command.Len(), a.Opaque, opaque, a.Why)
			}
		})
	}
}
