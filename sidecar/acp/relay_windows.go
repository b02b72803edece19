package acp

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/run"
)

// relayPipe does not exist on Windows, which has no named pipes in the file system; the editor shows the output as
// text.
type relayPipe struct{}

// newRelayPipe always fails.
func newRelayPipe() (*relayPipe, error) { return nil, errors.ErrUnsupported }

// The methods let relay.go compile; without a pipe none is called.
func (p *relayPipe) remove()                     {}
func (p *relayPipe) releaseWaiter()              {}
func (p *relayPipe) command() (string, []string) { return "", nil }
func (p *relayPipe) attached(context.Context, time.Duration) (*os.File, error) {
	return nil, errors.ErrUnsupported
}

// printRelay is never called, as newRelayPipe fails.
func printRelay(context.Context, *run.Terminal, *os.File) error { return errors.ErrUnsupported }

// RelayMain is never started here, as no relay is offered; it returns the code of a wrong call.
func RelayMain([]string) int { return 2 }
