package main

import (
	"os"
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// The test binary is Pillion itself where a test needs a process: with PILLION_TEST_MAIN=1, and as the sandbox's helper.
func TestMain(m *testing.M) {
	if os.Getenv("GORACE") == "" { // the race detector's second of waiting at each end would be most of what our children take
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.Arg || os.Getenv("PILLION_TEST_MAIN") == "1" {
		main()
	}
	os.Exit(m.Run())
}
