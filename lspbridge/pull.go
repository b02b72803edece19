package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

// pullAtOnce is how many files are pulled concurrently: enough to keep a server busy, without a queue that a cancellation would have to
// empty.
const pullAtOnce = 8

// waitForPulls pulls every file whose last answer is about another state. It repeats that a few times when the server requests a refresh
// meanwhile.
func (d *diagnostics) waitForPulls(ctx context.Context, paths []string, w diagnosticMode) error {
	for range refreshTries {
		ask := d.ledger.outdated(paths)
		if len(ask) == 0 {
			return nil
		}
		if err := d.pullAll(ctx, ask, w); err != nil {
			return err
		}
	}
	return nil
}

// refreshTries limits the rounds of waitForPulls: a server that requests a refresh after every answer must not hold up an edit. Answers
// that are still outdated are accepted then.
const refreshTries = 3

// pullAll pulls several files concurrently. A failure does not end the others, so a broken file costs only its own answer. The errors are
// joined.
func (d *diagnostics) pullAll(ctx context.Context, ask []string, w diagnosticMode) error {
	errs := make([]error, len(ask))
	var wg sync.WaitGroup
	limit := make(chan struct{}, pullAtOnce)
	for i, p := range ask {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			errs[i] = d.pull(ctx, p, w)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// LSP's error codes (LSPErrorCodes, 3.17) after which a request should be repeated.
const (
	codeServerCancelled jsonrpc2.Code = -32802
	codeContentModified jsonrpc2.Code = -32801
)

// retryable reports whether the same request should be sent again. ServerCancelled says so in its data (DiagnosticServerCancellationData);
// without data it counts as yes.
func retryable(e *jsonrpc2.Error) bool {
	var data struct{ RetriggerRequest *bool }
	_ = json.Unmarshal(e.Data, &data)
	return e.Code == codeContentModified || e.Code == codeServerCancelled && (data.RetriggerRequest == nil || *data.RetriggerRequest)
}

// pull pulls one file and stores the answer. It starts again when the texts have changed meanwhile; the fourth answer is accepted anyway,
// so that steady typing does not prevent an answer.
func (d *diagnostics) pull(ctx context.Context, path string, w diagnosticMode) error {
	for try := 0; ; try++ {
		// Read the state before the request: an answer about an older state is not stored.
		seq, refresh := d.ledger.state()
		var items []change.Problem
		var related map[string][]change.Problem
		var err error
		if w == byTSServer {
			items, err = d.pullTSServer(ctx, path)
		} else {
			items, related, err = d.pullReport(ctx, path)
		}
		var e *jsonrpc2.Error
		if errors.As(err, &e) && retryable(e) && try < 3 {
			continue
		}
		if err != nil {
			return err
		}
		answers := map[string][]change.Problem{path: items}
		for p, list := range related {
			answers[p] = list
		}
		if !d.ledger.pulled(path, answers, seq, refresh, try >= 3) {
			continue
		}
		for p := range answers {
			d.feed.add(p)
		}
		d.changed.wake()
		return nil
	}
}

// logFailure looks for failures in a server's log. VS Code's own servers log an exception during a validation and then answer "no
// problems", which would look like a clean file.
func (d *diagnostics) logFailure(params json.RawMessage) {
	var p struct {
		Type    lsp.Uint
		Message string
	}
	if json.Unmarshal(params, &p) != nil || p.Type != 1 {
		return
	}
	rest, ok := strings.CutPrefix(p.Message, "Error while validating ")
	if !ok {
		return
	}
	name, why, _ := strings.Cut(rest, ": ")
	why, _, _ = strings.Cut(why, "\n")
	if path := uriPath(name); path != "" {
		d.ledger.setFailure(path, "it failed on this file: "+why)
	}
}

// pullReport requests the problems of one file from each of the server's diagnostic sources.
func (d *diagnostics) pullReport(ctx context.Context, path string) (items []change.Problem, related map[string][]change.Problem, err error) {
	related = map[string][]change.Problem{}
	for _, name := range d.able.identifiers() {
		if err := d.pullFrom(ctx, path, name, &items, related); err != nil {
			return nil, nil, err
		}
	}
	return items, related, nil
}

// pullFrom requests the problems from one source and adds them. An answer without a report is an error: it must not look like "no
// problems".
func (d *diagnostics) pullFrom(ctx context.Context, path, name string, items *[]change.Problem, related map[string][]change.Problem) error {
	var r lsp.Report
	d.ledger.setFailure(path, "")
	params := map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}
	if name != "" {
		params["identifier"] = name
	}
	if err := d.call(ctx, protocol.MethodTextDocumentDiagnostic, params, &r); err != nil {
		return err
	}
	switch why := d.ledger.failure(path); {
	case why != "":
		return errors.New(why)
	case r.Kind == "" && r.Items == nil: // null, or an unknown form: not the same as "no problems"
		return errors.New("it answered without a report")
	case r.Kind == "unchanged": // the request had no previousResultId to which this could refer
		return errors.New("it answered \"unchanged\" to a request that named no earlier result")
	}
	for u, rel := range r.Related {
		if p := uriPath(u); p != "" && p != path && rel.Kind != "unchanged" {
			related[p] = append(related[p], d.convert(p, lsp.Diagnostics(rel.Items))...)
		}
	}
	*items = append(*items, d.convert(path, lsp.Diagnostics(r.Items))...)
	return nil
}

// wireRange returns a range in the wire's type, without converting the encoding.
func wireRange(r Range) lsp.Range {
	p := func(p Position) lsp.Position {
		return lsp.Position{Line: lsp.Uint(p.Line), Character: lsp.Uint(p.Character)}
	}
	return lsp.Range{Start: p(r.Start), End: p(r.End)}
}
