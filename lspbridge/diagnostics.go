package lspbridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/protocol"
)

// fileDiags is what a server said of a file. Values are never changed, only replaced, so snapshots are cheap.
type fileDiags struct {
	pushed  []change.Problem
	pushVer int32     // version the push was for; 0 when the server did not say
	pushSeq uint64    // client.seq when it came
	pushAt  time.Time // … and said something new
	hasPush bool
	pulled  []change.Problem
	pullSeq uint64 // client.seq when it was asked for
	pullRef uint64 // client.refresh then
	hasPull bool
}

// items is the union of both channels without repetitions.
func (f *fileDiags) items() []change.Problem {
	if f == nil {
		return nil
	}
	if len(f.pulled) == 0 {
		return f.pushed
	}
	out := slices.Clone(f.pulled)
	for _, d := range f.pushed {
		if !slices.ContainsFunc(f.pulled, func(p change.Problem) bool {
			return samePlace(p, d) && p.Message == d.Message && p.Code == d.Code
		}) {
			out = append(out, d)
		}
	}
	return out
}

// sameProblems reports that a person would see no difference.
func sameProblems(a, b []change.Problem) bool {
	return slices.EqualFunc(a, b, func(a, b change.Problem) bool {
		return samePlace(a, b) && a.Message == b.Message && a.Severity == b.Severity && a.Code == b.Code && a.Server == b.Server
	})
}

// overlay is a transaction on the open documents: while it lasts, what the server says belongs to it.
type overlay struct {
	files    map[string]*fileDiags
	versions map[string]int32 // of the proposed texts
	over     bool             // rolled back: once the server has settled, files is the truth again
	seq      uint64           // client.seq when it was rolled back: while that is so, client.files is the truth already
}

// way is how a server's diagnostics become final; see LSP.md section 2.
type way int

const (
	byMarker way = iota
	byPull
	byTSServer
	byPush
)

// way is asked again whenever it matters: servers register pull diagnostics late. c.mu is held.
func (c *client) way() way {
	switch {
	case c.spec.Quirks.EndMarker:
		return byMarker
	case c.spec.Quirks.TSServer && c.caps.Execute != nil && slices.Contains(c.caps.Execute.Commands, tsserverRequest):
		return byTSServer
	case has(c.caps.Diagnostic) || c.registered(protocol.MethodTextDocumentDiagnostic):
		return byPull
	}
	return byPush
}

// store is where what arrives now belongs. c.mu is held.
func (c *client) store() map[string]*fileDiags {
	if c.overlay != nil {
		return c.overlay.files
	}
	return c.files
}

// published takes a push.
func (c *client) published(p lsp.Publish) {
	path := uriPath(p.URI)
	if path == "" {
		return
	}
	items := c.convert(path, lsp.Diagnostics(p.Diagnostics))
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.docs[path]
	if p.Version != nil && d != nil && *p.Version < d.version {
		return // of a text that is gone
	}
	files := c.store()
	f := fileDiags{}
	if old := files[path]; old != nil {
		f = *old
	}
	var version int32
	if p.Version != nil {
		version = *p.Version
	}
	if !f.hasPush || f.pushVer != version || version == 0 || !sameProblems(f.pushed, items) {
		f.pushAt = time.Now() // else it only says once more what is known: of a text that was rolled back, mostly
	}
	f.pushed, f.pushSeq, f.pushVer, f.hasPush = items, c.seq, version, true
	delete(c.waited, path)
	c.everSpoke = true
	if c.way() != byTSServer { // its pushes come late and say the same
		files[path] = &f
		c.news(path)
	}
	c.bump()
}

// convert makes our diagnostics of a server's.
func (c *client) convert(path string, in []lsp.Diagnostic) []change.Problem {
	conv := c.converter()
	out := make([]change.Problem, 0, len(in))
	for _, d := range in {
		out = append(out, problemAt(path, conv.in(path, d.Range), change.Problem{Severity: change.SeverityOf(d.Severity), Code: d.Code,
			Source: d.Source, Server: c.spec.ID, Message: d.Message, Raw: d.Raw}))
	}
	return out
}

// converter translates positions against the text the server has.
func (c *client) converter() converter {
	return converter{enc: c.enc, text: func(path string) string {
		if t, open := c.shown(path); open {
			return t
		}
		t, _ := c.host.text(path)
		return validUTF8(t)
	}}
}

// settle waits until what the server says of paths, as they are now open, is final. An error means it is not: the
// context's, errGone, or a reason to tell.
func (c *client) settle(ctx context.Context, paths []string) (err error) {
	ctx, done := c.patience(ctx)
	defer func() { done(err) }()
	for {
		c.mu.Lock()
		w := c.way()
		c.mu.Unlock()
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

var errOtherWay = errors.New("the server registered another way")

// markerLost is how long a diagnosis of ours may fail to begin while the server does nothing else: it refused the
// notification then, and would be waited for for ever.
const markerLost = 10 * time.Second

// settleMarker waits until every diagnosis we caused has ended: then the whole workspace is final.
func (c *client) settleMarker(ctx context.Context) error {
	done := func() bool {
		if !c.allEnded() {
			return false
		}
		c.promote()
		return true
	}
	for {
		c.mu.Lock()
		seq := c.seq
		c.mu.Unlock()
		try, cancel := context.WithTimeout(ctx, markerLost)
		err := c.await(try, done)
		cancel()
		if err == nil || ctx.Err() != nil || errors.Is(err, errGone) {
			return err
		}
		c.mu.Lock()
		if c.ended[causeInitial] > 0 && len(c.tokens) == 0 && seq == c.seq {
			c.log.Warn("a diagnosis never began", "server", c.spec.ID, "sent", c.sent, "ended", c.ended)
			maps.Copy(c.ended, c.sent)
		}
		c.mu.Unlock()
	}
}

// snapshot is what the server says: of the overlay while one lies there, else of what is.
func (c *client) snapshot() map[string]*fileDiags {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overlay != nil && !c.overlay.over {
		return maps.Clone(c.overlay.files)
	}
	return maps.Clone(c.files)
}
