package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
)

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
		delete(c.elsewhere, path)
		set(path, items)
		for p, it := range related {
			set(p, it)
		}
		c.bump()
		c.mu.Unlock()
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
		c.mu.Lock()
		c.stumbles[path] = "it failed over this file: " + why
		c.mu.Unlock()
	}
}

func (c *client) pullReport(ctx context.Context, path string) ([]Diagnostic, map[string][]Diagnostic, error) {
	var r lsp.Report
	c.mu.Lock()
	delete(c.stumbles, path)
	c.mu.Unlock()
	err := c.call(ctx, protocol.MethodTextDocumentDiagnostic, map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}, &r)
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	why := c.stumbles[path]
	c.mu.Unlock()
	if why != "" {
		return nil, nil, errors.New(why)
	}
	if r.Kind == "" && r.Items == nil { // null, or something else: no word is not "no problems"
		return nil, nil, errors.New("it answered without a report")
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
