package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// diagnostics reads the problems of one run of a server: how to request them, what the server has sent, and when that is final. Nothing
// here changes a document.
type diagnostics struct {
	*connection
	spec     Server
	able     *abilities
	docs     *documents
	ledger   *ledger
	progress *progress
	feed     *liveFeed                                // reports files whose problems have changed; nil without Options.Diagnostics
	text     func(path string) (text string, ok bool) // of a file that is not open in the server
	unloaded atomic.Pointer[string]                   // why the server has loaded nothing of the project (hooks.loadFailure); nil: it has
}

// diagnosticMode says how to tell that a server's diagnostics are final.
type diagnosticMode int

const (
	byMarker   diagnosticMode = iota // a progress begins and ends with every diagnosis (gopls)
	byPull                           // textDocument/diagnostic
	byTSServer                       // requests to tsserver behind typescript-language-server
	byPush                           // publishDiagnostics alone: versions and pauses must tell
)

// mode returns the most exact mode that the server supports at present. Do not cache it: servers register pull diagnostics late.
func (d *diagnostics) mode() diagnosticMode {
	switch {
	case d.spec.Quirks.EndMarker:
		return byMarker
	case d.spec.Quirks.TSServer && d.able.runs(tsserverRequest):
		return byTSServer
	case d.able.pulls():
		return byPull
	}
	return byPush
}

// published handles publishDiagnostics. It drops a push for an older version, which would replace a newer answer.
func (d *diagnostics) published(p lsp.Publish) {
	path := uriPath(p.URI)
	if path == "" {
		return
	}
	items := d.convert(path, lsp.Diagnostics(p.Diagnostics))
	var version int32
	if p.Version != nil {
		version = *p.Version
		if doc, open := d.docs.get(path); open && version < doc.version {
			return // about a text that is gone
		}
	} else if len(items) == 0 && d.docs.has(path) && d.ledger.latest(path).isVersioned() {
		return // the document was closed, which takes its problems back, and has been opened again
	}
	d.ledger.hasPublished(path)
	if d.mode() != byTSServer { // its pushes come late and repeat what the requests returned
		d.ledger.published(path, items, version)
		d.feed.add(path)
	}
	d.changed.wake()
}

// convert turns a server's diagnostics into problems. Positions refer to the text that the server has.
func (d *diagnostics) convert(path string, in []lsp.Diagnostic) []change.Problem {
	conv := d.converter()
	out := make([]change.Problem, 0, len(in))
	for _, item := range in {
		out = append(out, problemAt(path, conv.in(path, item.Range), change.Problem{Severity: change.SeverityOf(item.Severity), Code: item.Code,
			Source: item.Source, Server: d.spec.ID, Message: item.Message, Raw: item.Raw}))
	}
	return out
}

// converter converts positions of this server. It uses the open document instead of the buffer, because the server counted in that text.
func (d *diagnostics) converter() converter {
	return converter{enc: d.able.enc, text: func(path string) string {
		if doc, open := d.docs.get(path); open {
			return doc.text
		}
		t, _ := d.text(path)
		return validUTF8(t)
	}}
}

// waitForDiagnostics blocks until the server's problems for paths, as they are open, are final. An error means that they are not: ctx's
// error, errGone, or a reason to show.
func (d *diagnostics) waitForDiagnostics(ctx context.Context, paths []string) (err error) {
	ctx, done := d.boundWait(ctx)
	defer func() { done(err) }()
	for {
		w := d.mode()
		switch w {
		case byMarker:
			err = d.waitForMarker(ctx)
			if why := d.unloaded.Load(); err == nil && why != nil {
				err = unavailable{errors.New(*why)}
			}
		case byPull, byTSServer:
			err = d.waitForPulls(ctx, paths, w)
		case byPush:
			err = d.waitForPush(ctx, paths)
		}
		if !errors.Is(err, errModeChanged) {
			return err
		}
	}
}

// errModeChanged ends a wait in a mode that is outdated because the server has registered pull diagnostics; waitForDiagnostics starts
// again.
var errModeChanged = errors.New("the server registered another kind of diagnostics")

// markerLost is how long a diagnosis that a notification should cause may fail to begin while the server is idle. The server has then
// ignored the notification, and waiting for the marker would never end.
const markerLost = 10 * time.Second

// waitForMarker blocks until every diagnosis that this client caused has ended. The problems of the whole workspace are then final.
func (d *diagnostics) waitForMarker(ctx context.Context) error {
	for {
		seq, _ := d.ledger.state()
		try, cancel := context.WithTimeout(ctx, markerLost)
		err := d.await(try, func() bool {
			if d.unloaded.Load() != nil {
				return true // without a project nothing is diagnosed
			}
			if !d.progress.allEnded() {
				return false
			}
			d.promote()
			return true
		})
		cancel()
		if why := d.progress.failure(); err == nil && why != "" {
			return errors.New("it could not check the project: " + why)
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errGone) {
			return err
		}
		if now, _ := d.ledger.state(); now != seq {
			continue
		}
		if sent, ended, ok := d.progress.giveUp(); ok {
			d.log.Warn("a diagnosis never began", "server", d.id, "sent", sent, "ended", ended)
		}
	}
}

// promote accepts as the project's problems what the server has sent since a proposal was rolled back, once every diagnosis has ended. It
// returns false while a proposal is laid over the documents: its problems must not become the project's.
func (d *diagnostics) promote() bool {
	news, clear := d.ledger.promote()
	d.feed.add(news...)
	return clear
}

// mark counts a notification that may change diagnostics, before it is sent. Comparing later diagnostics with the count tells whether they
// are about the present texts.
func (d *diagnostics) mark(cause string) (seq uint64) {
	if d.spec.Quirks.EndMarker {
		d.progress.cause(cause)
	}
	return d.ledger.mark(cause)
}

// doing returns what the server says it is busy with; "" when nothing keeps it from answering.
func (d *diagnostics) doing() string {
	title := d.progress.loading()
	if title == "" && d.spec.Quirks.EndMarker && !d.progress.loaded() {
		title = "loading the workspace"
	}
	return title
}

// why explains the error of a wait to a person, in one line.
func (d *diagnostics) why(ctx context.Context, err error) string {
	title := d.doing()
	switch why := d.unloaded.Load(); {
	case why != nil && errors.Is(err, ErrUnavailable):
		return *why
	case errors.Is(err, errGone):
		return d.id + " stopped and is being started again"
	case errors.Is(err, errQuiet):
		return d.id + " " + errQuiet.Error()
	case errors.Is(err, errMute):
		return d.id + " " + errMute.Error()
	case d.isFrozen():
		return d.id + " does not answer"
	case ctx.Err() != nil && title != "":
		return fmt.Sprintf("%s is still busy: %s", d.id, title)
	case ctx.Err() != nil:
		return d.id + " has not answered yet"
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // servers send whole stack traces
	return d.id + ": " + text
}

// related returns paths and open documents that a change of them may affect, for servers that report only the files that they are asked
// about; at most maxRelated files.
func (d *diagnostics) related(paths []string) []string {
	if d.mode() == byMarker {
		return slices.Clone(paths)
	}
	others := slices.DeleteFunc(d.docs.paths(), func(p string) bool { return slices.Contains(paths, p) })
	return slices.Concat(paths, others[:min(len(others), max(0, maxRelated-len(paths)))])
}

// maxRelated limits the files that are requested for one change: each costs a request.
const maxRelated = 20

// scope returns the files whose problems must be final before an answer is complete: paths, and their dependents where the server can be
// made to report them.
func (d *diagnostics) scope(paths, dependents []string) []string {
	paths = slices.Concat(paths, dependents)
	if d.mode() == byPush {
		if !d.spec.Quirks.WantDiagnostics {
			paths = paths[:len(paths)-len(dependents)] // nothing makes it publish other files within a known time
		}
		return paths
	}
	return d.related(paths)
}

// certainty returns how certain the present problems of a file are.
func (d *diagnostics) certainty(path string) change.Certainty {
	final := false
	if d.mode() == byMarker {
		final = d.progress.allEnded() && d.progress.failure() == "" && d.unloaded.Load() == nil
	} else {
		doc, open := d.docs.get(path)
		seq, _ := d.ledger.state()
		final = d.ledger.project(path).isFinal(doc, open, seq)
	}
	if final {
		return change.Fresh
	}
	return change.Pending
}

// baselineKnown reports whether the problems of the files were final before the change.
func (d *diagnostics) baselineKnown(paths []string) bool {
	if d.mode() == byMarker {
		return d.progress.loaded()
	}
	return !slices.ContainsFunc(paths, func(p string) bool { return d.ledger.project(p) == nil })
}

// waitUntilLoaded blocks before the first question until the server has loaded its project. Some servers (pyright) answer from what they
// have read so far, and a list of references would be silently incomplete. They report the problems of a file only when they know what it
// imports, so those are the signal.
func (d *diagnostics) waitUntilLoaded(ctx context.Context, path string) {
	w := d.mode()
	if d.ledger.isLoaded() || w == byMarker { // byMarker waits by itself
		return
	}
	wait := loadWait // for a server that only pushes, or has not registered another mode yet
	if end, ok := ctx.Deadline(); ok && (w != byPush || time.Until(end)/2 < wait) {
		wait = time.Until(end) / 2
	}
	half, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := d.waitForDiagnostics(half, []string{path})
	if err == nil || w == byPush && ctx.Err() == nil {
		d.ledger.setLoaded()
	}
}

// loadWait is how long the first question waits for a server's first publish.
const loadWait = 5 * time.Second
