package acp

import (
	"context"
	"log/slog"

	"github.com/pillion-dev/pillion/sidecar/editors"
)

// conn is one connection, as its parts use it. Every type that answers methods embeds it, so that none of them needs
// the whole Connection.
type conn struct {
	wire   *wire           // set before the first message is handled
	editor *editors.Editor // what it announced, shows and can do
	ctx    context.Context // ends with the connection; the one place a context is kept, for work that no request started
	log    *slog.Logger
}

// notify sends a notification. It returns no error: when the connection has ended there is no one to notify.
func (c *conn) notify(method string, params any) { _ = c.wire.peer.Notify(c.ctx, method, params) }
