package acp

import (
	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/review"
)

// shared is what the sessions of a connection are shown with.
type shared struct {
	rt        *agent.Runtime
	registry  *editors.Registry
	desk      *review.Desk
	choices   *sessionOptions
	slash     *commandList
	relays    *relays
	selection *selection
}
