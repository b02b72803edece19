package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// fileDiags is what a server said of a file. Values are never changed, only replaced, so snapshots are cheap.
type fileDiags struct {
	pushed  []Diagnostic
	pushVer int32  // version the push was for; 0 when the server did not say
	pushSeq uint64 // client.seq when it came
	hasPush bool
	pulled  []Diagnostic
	pullSeq uint64 // client.seq when it was asked for
	pullRef uint64 // client.refresh then
	hasPull bool
}

// items is the union of both channels without repetitions.
func (f *fileDiags) items() []Diagnostic {
	if f == nil {
		return nil
	}
	if len(f.pulled) == 0 {
		return f.pushed
	}
	out := slices.Clone(f.pulled)
	for _, d := range f.pushed {
		if !slices.ContainsFunc(f.pulled, func(p Diagnostic) bool {
			return p.Range == d.Range && p.Message == d.Message && p.Code == d.Code
		}) {
			out = append(out, d)
		}
	}
	return out
}

// overlay is a transaction on the open documents: while it lasts, what the server says belongs to it.
type overlay struct {
	files    map[string]*fileDiags
	versions map[string]int32 // of the proposed texts
	over     bool             // rolled back: once the server has settled, files is the truth again
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
	f.pushed, f.pushSeq, f.pushVer, f.hasPush = items, c.seq, 0, true
	if p.Version != nil {
		f.pushVer = *p.Version
	}
	if c.way() != byTSServer { // its pushes come late and say the same
		files[path] = &f
		c.news(path)
	}
	c.bump()
}

// convert makes our diagnostics of a server's.
func (c *client) convert(path string, in []lsp.Diagnostic) []Diagnostic {
	conv := c.converter()
	out := make([]Diagnostic, 0, len(in))
	for _, d := range in {
		out = append(out, Diagnostic{Path: path, Range: conv.in(path, d.Range), Severity: Severity(d.Severity), Code: d.Code,
			Source: d.Source, Server: c.spec.ID, Message: d.Message, Raw: d.Raw})
	}
	return out
}

// converter translates positions against the text the server has.
func (c *client) converter() converter {
	return converter{enc: c.enc, text: func(path string) string {
		c.mu.Lock()
		d := c.docs[path]
		c.mu.Unlock()
		if d != nil {
			return d.text
		}
		t, _ := c.host.text(path)
		return validUTF8(t)
	}}
}

// errQuiet ends a wait for a push that never came: nothing can be said.
var errQuiet = errors.New("published nothing for this version")

// Times of the push way.
const (
	pushSettle = 200 * time.Millisecond // after a publish, for the second one of the same version
	idleSettle = 300 * time.Millisecond // for the idle report of servers that send them
	quietMin   = time.Second            // without a publish from an unversioned server
)

// settle waits until what the server says of paths, as they are now open, is final. An error means it is not: the
// context's, errGone, or a reason to tell.
func (c *client) settle(ctx context.Context, paths []string) error {
	for {
		c.mu.Lock()
		w := c.way()
		c.mu.Unlock()
		var err error
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

// pullAtOnce is how many files are asked for at the same time.
const pullAtOnce = 8

// settlePull asks for every file that changed since it was last asked for, or that another change may have touched.
func (c *client) settlePull(ctx context.Context, paths []string, w way) error {
	c.mu.Lock()
	var ask []string
	for _, p := range paths {
		f := c.store()[p]
		if f == nil || !f.hasPull || f.pullSeq != c.seq || f.pullRef != c.refresh {
			ask = append(ask, p)
		}
	}
	c.mu.Unlock()
	errs := make([]error, len(ask))
	var wg sync.WaitGroup
	limit := make(chan struct{}, pullAtOnce)
	for i, p := range ask {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			errs[i] = c.pull(ctx, p, w)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// LSP's codes for "ask again".
const (
	codeServerCancelled jsonrpc2.Code = -32802
	codeContentModified jsonrpc2.Code = -32801
)

// pull asks for one file and stores the answer.
func (c *client) pull(ctx context.Context, path string, w way) error {
	for try := 0; ; try++ {
		c.mu.Lock()
		seq, ref := c.seq, c.refresh
		c.mu.Unlock()
		var items []Diagnostic
		var related map[string][]Diagnostic
		var err error
		if w == byTSServer {
			items, err = c.pullTSServer(ctx, path)
		} else {
			items, related, err = c.pullReport(ctx, path)
		}
		var e *jsonrpc2.Error
		if errors.As(err, &e) && (e.Code == codeServerCancelled || e.Code == codeContentModified) && try < 3 {
			continue
		}
		if err != nil {
			return err
		}
		c.mu.Lock()
		if seq != c.seq && try < 3 {
			c.mu.Unlock()
			continue // something changed meanwhile: of which text is the answer?
		}
		set := func(path string, items []Diagnostic) {
			f := fileDiags{}
			if old := c.store()[path]; old != nil {
				f = *old
			}
			f.pulled, f.hasPull, f.pullSeq, f.pullRef = items, true, seq, ref
			c.store()[path] = &f
			c.news(path)
		}
		set(path, items)
		for p, it := range related {
			set(p, it)
		}
		c.bump()
		c.mu.Unlock()
		return nil
	}
}

func (c *client) pullReport(ctx context.Context, path string) ([]Diagnostic, map[string][]Diagnostic, error) {
	var r lsp.Report
	err := c.call(ctx, protocol.MethodTextDocumentDiagnostic, map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}, &r)
	if err != nil {
		return nil, nil, err
	}
	related := map[string][]Diagnostic{}
	for u, rel := range r.Related {
		if p := uriPath(u); p != "" && rel.Kind != "unchanged" {
			related[p] = c.convert(p, lsp.Diagnostics(rel.Items))
		}
	}
	return c.convert(path, lsp.Diagnostics(r.Items)), related, nil
}

const tsserverRequest = "typescript.tsserverRequest"

// tsDiagnostic is tsserver's own form; lines and offsets count from 1, offsets in UTF-16.
type tsDiagnostic struct {
	Start, End         struct{ Line, Offset int }
	Text, Message      string
	Code               int
	Category, Source   string
	ReportsUnnecessary bool
	ReportsDeprecated  bool
}

// pullTSServer asks tsserver for the three kinds of diagnostics in one burst.
func (c *client) pullTSServer(ctx context.Context, path string) ([]Diagnostic, error) {
	kinds := [...]string{"syntacticDiagnosticsSync", "semanticDiagnosticsSync", "suggestionDiagnosticsSync"}
	var lists [len(kinds)][]Diagnostic
	var errs [len(kinds)]error
	var wg sync.WaitGroup
	for i, kind := range kinds {
		wg.Go(func() {
			var r struct {
				Success *bool
				Message string
				Body    []tsDiagnostic
			}
			err := c.call(ctx, protocol.MethodWorkspaceExecuteCommand, map[string]any{"command": tsserverRequest,
				"arguments": []any{kind, map[string]any{"file": path}}}, &r)
			if err == nil && (r.Success == nil || !*r.Success) {
				err = fmt.Errorf("tsserver: %s", r.Message)
			}
			if errs[i] = err; err == nil {
				lists[i] = c.convertTS(path, r.Body)
			}
		})
	}
	wg.Wait()
	return slices.Concat(lists[:]...), errors.Join(errs[:]...)
}

func (c *client) convertTS(path string, in []tsDiagnostic) []Diagnostic {
	severities := map[string]Severity{"error": SeverityError, "warning": SeverityWarning, "message": SeverityInformation, "suggestion": SeverityHint}
	out := make([]Diagnostic, 0, len(in))
	for _, d := range in {
		text := d.Text
		if text == "" {
			text = d.Message
		}
		r := Range{Position{max(0, d.Start.Line-1), max(0, d.Start.Offset-1)}, Position{max(0, d.End.Line-1), max(0, d.End.Offset-1)}}
		sev, ok := severities[d.Category]
		if !ok {
			sev = SeverityError
		}
		raw, _ := json.Marshal(map[string]any{"range": wireRange(r), "severity": sev, "code": d.Code, "source": "typescript", "message": text})
		out = append(out, Diagnostic{Path: path, Range: r, Severity: sev, Code: strconv.Itoa(d.Code), Source: "typescript", Server: c.spec.ID, Message: text, Raw: raw})
	}
	return out
}

func wireRange(r Range) lsp.Range {
	p := func(p Position) lsp.Position {
		return lsp.Position{Line: lsp.Uint(p.Line), Character: lsp.Uint(p.Character)}
	}
	return lsp.Range{Start: p(r.Start), End: p(r.End)}
}

// settlePush waits for a publish of the present version of every path, and for the server to be done with it.
func (c *client) settlePush(ctx context.Context, paths []string) error {
	c.mu.Lock()
	start, seq := time.Now(), c.seq
	fresh := func(p string) bool {
		f, d := c.store()[p], c.docs[p]
		switch {
		case d == nil: // closed: nothing is said of it any more
			return true
		case f == nil || !f.hasPush:
			return false
		case f.pushVer > 0:
			return f.pushVer >= d.version
		}
		return f.pushSeq >= d.seq
	}
	all := func() bool { return !slices.ContainsFunc(paths, func(p string) bool { return !fresh(p) }) }
	already := all()
	unversioned := false
	for _, f := range c.files {
		unversioned = unversioned || f.hasPush && f.pushVer == 0
	}
	patience := max(quietMin, 3*c.latency)
	other := false
	c.mu.Unlock()
	if already {
		return nil
	}
	wait, cancel := ctx, context.CancelFunc(func() {})
	if unversioned {
		wait, cancel = context.WithTimeout(ctx, patience)
	}
	defer cancel()
	err := c.await(wait, func() bool {
		other = c.way() != byPush
		return other || all()
	})
	switch {
	case other:
		return errOtherWay
	case err != nil && ctx.Err() == nil && wait.Err() != nil:
		return errQuiet
	case err != nil:
		return err
	}
	c.mu.Lock()
	c.latency = (3*c.latency + time.Since(start)) / 4
	reports, settle := len(c.idleFile) > 0, pushSettle
	if unversioned {
		settle = max(150*time.Millisecond, c.latency)
	}
	c.mu.Unlock()
	if reports {
		done, cancel := context.WithTimeout(ctx, idleSettle)
		defer cancel()
		_ = c.await(done, func() bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return c.docs[p] != nil && c.idleFile[p] < seq })
		})
		return ctx.Err()
	}
	select {
	case <-time.After(settle):
		return nil
	case <-c.gone:
		return errGone
	case <-ctx.Done():
		return ctx.Err()
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
