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

// pullAtOnce is how many files are asked for at the same time.
const pullAtOnce = 8

// settlePull asks for every file that changed since it was last asked for, or that another change may have touched.
func (c *client) settlePull(ctx context.Context, paths []string, w way) error {
	for range refreshTries {
		ask := c.ledger.outdated(paths)
		if len(ask) == 0 {
			return nil
		}
		if err := c.pullAll(ctx, ask, w); err != nil {
			return err
		}
	}
	return nil
}

// refreshTries is how often files are asked for again because the server said meanwhile that things look different now.
const refreshTries = 3

func (c *client) pullAll(ctx context.Context, ask []string, w way) error {
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

// again reports an error that asks for the same question once more.
func again(e *jsonrpc2.Error) bool {
	var data struct{ RetriggerRequest *bool }
	_ = json.Unmarshal(e.Data, &data)
	return e.Code == codeContentModified || e.Code == codeServerCancelled && (data.RetriggerRequest == nil || *data.RetriggerRequest)
}

// pull asks for one file and stores the answer.
func (c *client) pull(ctx context.Context, path string, w way) error {
	for try := 0; ; try++ {
		seq, refresh := c.ledger.now()
		var items []change.Problem
		var related map[string][]change.Problem
		var err error
		if w == byTSServer {
			items, err = c.pullTSServer(ctx, path)
		} else {
			items, related, err = c.pullReport(ctx, path)
		}
		var e *jsonrpc2.Error
		if errors.As(err, &e) && again(e) && try < 3 {
			continue
		}
		if err != nil {
			return err
		}
		answers := map[string][]change.Problem{path: items}
		for p, list := range related {
			answers[p] = list
		}
		if !c.ledger.pulled(path, answers, seq, refresh, try >= 3) {
			continue
		}
		for p := range answers {
			c.tellOf(p)
		}
		c.changed.wake()
		return nil
	}
}

// stumbled reads a server's log for the words by which those out of VS Code say that they failed over a file. What they
// answer then is "no problems", and that is not so.
func (c *client) stumbled(params json.RawMessage) {
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
		c.ledger.stumbled(path, "it failed over this file: "+why)
	}
}

// pullReport asks every source of a server's about one file.
func (c *client) pullReport(ctx context.Context, path string) (items []change.Problem, related map[string][]change.Problem, err error) {
	related = map[string][]change.Problem{}
	for _, name := range c.able.identifiers() {
		if err := c.pullFrom(ctx, path, name, &items, related); err != nil {
			return nil, nil, err
		}
	}
	return items, related, nil
}

func (c *client) pullFrom(ctx context.Context, path, name string, items *[]change.Problem, related map[string][]change.Problem) error {
	var r lsp.Report
	c.ledger.stumbled(path, "")
	params := map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}
	if name != "" {
		params["identifier"] = name
	}
	if err := c.call(ctx, protocol.MethodTextDocumentDiagnostic, params, &r); err != nil {
		return err
	}
	switch why := c.ledger.stumble(path); {
	case why != "":
		return errors.New(why)
	case r.Kind == "" && r.Items == nil: // null, or something else: no word is not "no problems"
		return errors.New("it answered without a report")
	case r.Kind == "unchanged": // since an answer that nobody has told it of
		return errors.New("it answered that nothing has changed, and was not asked that")
	}
	for u, rel := range r.Related {
		if p := uriPath(u); p != "" && p != path && rel.Kind != "unchanged" {
			related[p] = append(related[p], c.convert(p, lsp.Diagnostics(rel.Items))...)
		}
	}
	*items = append(*items, c.convert(path, lsp.Diagnostics(r.Items))...)
	return nil
}

func wireRange(r Range) lsp.Range {
	p := func(p Position) lsp.Position {
		return lsp.Position{Line: lsp.Uint(p.Line), Character: lsp.Uint(p.Character)}
	}
	return lsp.Range{Start: p(r.Start), End: p(r.End)}
}
