package acp

import (
	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/review"
)

// sessionServices are what every session of a connection works with. They are set when the connection is made and do not
// change; each has a lock of its own.
type sessionServices struct {
	rt       *agent.Runtime    // other sessions: those of sub-agents
	registry *editors.Registry // the other editors of a session
	desk     *review.Desk      // the texts and the reviewer of its changes
	choices  *sessionOptions   // its options, as the editor shows them
	input    *promptReader     // what a prompt stands for
	relays   *relays           // its commands in the editor's own terminals
}
