package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/draft/worker"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// The test binary is Pillion itself where a test needs a process: with PILLION_TEST_MAIN=1, as the sandbox's helper, and as a draft's. With
// FAKE_AGENT it is an external agent.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // the race detector's second of waiting at each end would be most of what our children take
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	helper := len(os.Args) > 1 && slices.Contains([]string{sandbox.Arg, draft.Arg, worker.Arg, worker.RelayArg, app.IndexArg}, os.Args[1])
	if helper || os.Getenv("PILLION_TEST_MAIN") == "1" {
		app.ViewWait = 20 * time.Minute // a busy machine must not turn a fresh verdict into a partial one
		// The helpers of the sandbox and of a draft inherit the agent's environment, and start it.
		if helper || os.Getenv("FAKE_AGENT") == "" {
			main()
		}
		runFakeAgent()
		os.Exit(0)
	}
	os.Exit(m.Run())
}
