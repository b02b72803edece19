package lspbridge

import (
	"context"
	"errors"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// way is how a server's diagnostics become final.
type way int

const (
	byMarker   way = iota // progress brackets every diagnosis (gopls)
	byPull                // textDocument/diagnostic
	byTSServer            // requests to tsserver behind typescript-language-server
	byPush                // publishDiagnostics alone: finality must be guessed by versions and pauses
)

// way is the best way that the server offers now. Ask again each time: servers register pull diagnostics
// late.
func (c *client) way() way {
	switch {
	case c.spec.Quirks.EndMarker:
		return byMarker
	case c.spec.Quirks.TSServer && c.able.runs(tsserverRequest):
		return byTSServer
	case c.able.pulls():
		return byPull
	}
	return byPush
}

// published handles publishDiagnostics. A push for an older version is dropped: it would replace a newer
// answer.
func (c *client) published(p lsp.Publish) {
	path := uriPath(p.URI)
	if path == "" {
		return
	}
	items := c.convert(path, lsp.Diagnostics(p.Diagnostics))
	var version int32
	if p.Version != nil {
		version = *p.Version
		if doc, open := c.docs.get(path); open && version < doc.version {
			return // of a text that is gone
		}
	}
	c.ledger.spoke(path)
	if c.way() != byTSServer { // its pushes come late and say the same
		c.ledger.published(path, items, version)
		c.tellOf(path)
	}
	c.changed.wake()
}

// convert turns a server's diagnostics into problems: positions are recoded against the text that the
// server has.
func (c *client) convert(path string, in []lsp.Diagnostic) []change.Problem {
	conv := c.converter()
	out := make([]change.Problem, 0, len(in))
	for _, d := range in {
		out = append(out, problemAt(path, conv.in(path, d.Range), change.Problem{Severity: change.SeverityOf(d.Severity), Code: d.Code,
			Source: d.Source, Server: c.spec.ID, Message: d.Message, Raw: d.Raw}))
	}
	return out
}

// converter recodes positions of this server. It uses the open document, not the buffer: the server
// counted in that text.
func (c *client) converter() converter {
	return converter{enc: c.able.enc, text: func(path string) string {
		if doc, open := c.docs.get(path); open {
			return doc.text
		}
		t, _ := c.host.text(path)
		return validUTF8(t)
	}}
}

// settle waits until the server's problems for paths, as they are open now, are final. An error means that
// they are not: ctx's error, errGone, or a reason to show.
func (c *client) settle(ctx context.Context, paths []string) (err error) {
	ctx, done := c.patience(ctx)
	defer func() { done(err) }()
	for {
		w := c.way()
		switch w {
		case byMarker:
			err = c.settleMarker(ctx)
		case byPull, byTSServer:
			err = c.settlePull(ctx, paths, w)
		case byPush:
			err = c.settlePush(ctx, paths)
		}
		if !errors.Is(err, errOtherWay) {
			return err
		}
	}
}

// errOtherWay ends a wait that the server has made pointless by registering another way; settle starts
// over.
var errOtherWay = errors.New("the server registered another way")

// markerLost is how long one of our diagnoses may fail to begin while the server is idle. The server has
// refused the notification then, and waiting for its marker would never end.
const markerLost = 10 * time.Second

// settleMarker waits until every diagnosis that we caused has ended. The problems of the whole workspace
// are then final.
func (c *client) settleMarker(ctx context.Context) error {
	for {
		seq, _ := c.ledger.now()
		try, cancel := context.WithTimeout(ctx, markerLost)
		err := c.await(try, func() bool {
			if !c.progress.allEnded() {
				return false
			}
			c.promote()
			return true
		})
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, errGone) {
			return err
		}
		if now, _ := c.ledger.now(); now != seq {
			continue
		}
		if sent, ended, ok := c.progress.giveUp(); ok {
			c.log.Warn("a diagnosis never began", "server", c.id, "sent", sent, "ended", ended)
		}
	}
}

// promote takes over what the server has said since a proposal was rolled back, once every diagnosis has
// ended. It returns false while a proposal is laid over the documents: its problems must not become the
// project's.
func (c *client) promote() bool {
	news, clear := c.ledger.promote()
	c.tellOf(news...)
	return clear
}
