package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
)

// question is a query of builtin.Queries on the wire. Ask is the method's name, which decides what the other fields mean. Each method needs
// a case in answer and a method of servers; without the case the tool fails with "the language servers are not asked for …".
type question struct {
	Ask    string             `json:"ask"`
	Path   string             `json:"path,omitempty"`
	At     lspbridge.Position `json:"at"`
	Range  lspbridge.Range    `json:"range"`
	Text   string             `json:"text,omitempty"` // a query, a new name
	List   []string           `json:"list,omitempty"` // paths, kinds of actions
	Diags  []problem          `json:"diags,omitempty"`
	Action lspbridge.Action   `json:"action"`
	// Wait is the time in milliseconds until the deadline of the worker's context; 0: it has none. The host gives up after that time.
	Wait int64 `json:"wait,omitempty"`
}

// problem is a change.Problem with its Raw, which the JSON of change.Problem leaves out. Code actions need it, see withSent.
type problem struct {
	change.Problem
	Sent json.RawMessage `json:"sent,omitempty"`
}

// withSent converts for the wire, withRaw back. Raw is the diagnostic as the server sent it (LSP Diagnostic, with code and data). A
// textDocument/codeAction request must return it unchanged, or a server that relies on data cannot find its quick fix.
func withSent(list []change.Problem) []problem {
	out := make([]problem, len(list))
	for i, p := range list {
		out[i] = problem{p, p.Raw}
	}
	return out
}

// withRaw undoes withSent.
func withRaw(list []problem) []change.Problem {
	out := make([]change.Problem, len(list))
	for i, p := range list {
		out[i] = p.Problem
		out[i].Raw = p.Sent
	}
	return out
}

// questionAnswer is the result of one method: Value is its result type as JSON, Sent the problems in it with their Raw.
type questionAnswer struct {
	Value json.RawMessage `json:"value,omitempty"`
	Sent  [][]problem     `json:"sent,omitempty"` // of ProjectDiagnostics, file by file
	Error *wireError      `json:"error,omitempty"`
}

// answer asks the host's servers. It is a switch and not reflection, so that the worker can reach these methods and no others.
func answer(ctx context.Context, h builtin.Queries, q question) questionAnswer {
	var v any
	var err error
	// A code action needs each problem as its server sent it, so the problems are sent a second time, with Raw.
	var sent [][]problem
	switch q.Ask {
	case "ProjectDiagnostics":
		list := h.ProjectDiagnostics(ctx, q.List...)
		for _, r := range list {
			sent = append(sent, withSent(r.Items))
		}
		v = list
	case "Definition":
		v, err = h.Definition(ctx, q.Path, q.At)
	case "TypeDefinition":
		v, err = h.TypeDefinition(ctx, q.Path, q.At)
	case "Implementation":
		v, err = h.Implementation(ctx, q.Path, q.At)
	case "References":
		v, err = h.References(ctx, q.Path, q.At)
	case "Hover":
		v, err = h.Hover(ctx, q.Path, q.At)
	case "DocumentSymbols":
		v, err = h.DocumentSymbols(ctx, q.Path)
	case "WorkspaceSymbols":
		v, err = h.WorkspaceSymbols(ctx, q.Path, q.Text)
	case "PrepareCallHierarchy":
		v, err = h.PrepareCallHierarchy(ctx, q.Path, q.At)
	case "IncomingCalls":
		v, err = h.IncomingCalls(ctx, q.Path, q.At)
	case "OutgoingCalls":
		v, err = h.OutgoingCalls(ctx, q.Path, q.At)
	case "TypeHierarchy":
		v, err = h.TypeHierarchy(ctx, q.Path, q.At)
	case "CodeActions":
		v, err = h.CodeActions(ctx, q.Path, q.Range, q.List, withRaw(q.Diags))
	case "ResolveAction":
		v, err = h.ResolveAction(ctx, q.Action)
	case "Rename":
		v, err = h.Rename(ctx, q.Path, q.At, q.Text)
	case "Format":
		v, err = h.Format(ctx, q.Path)
	// No tool of Pillion sends another name; a command in the draft that reaches the connection may.
	default:
		err = errors.New("the language servers are not asked for " + q.Ask)
	}
	a := questionAnswer{Sent: sent, Error: toWire(err)}
	if err == nil {
		if a.Value, err = json.Marshal(v); err != nil {
			a.Error = toWire(err)
		}
	}
	return a
}

// query sends a question and decodes the answer into the method's result type. An error of the host's servers and a broken connection are
// both returned as err.
func query[T any](ctx context.Context, b servers, q question) (v T, err error) {
	a, err := b.question(ctx, q)
	if err == nil {
		err = a.Error.err()
	}
	if err == nil {
		err = json.Unmarshal(a.Value, &v)
	}
	return v, err
}

// ProjectDiagnostics implements builtin.Queries. It cannot return an error, so without an answer from the host there are no reports.
func (b servers) ProjectDiagnostics(ctx context.Context, paths ...string) (out []lspbridge.FileReport) {
	a, err := b.question(ctx, question{Ask: "ProjectDiagnostics", List: paths})
	if err != nil || json.Unmarshal(a.Value, &out) != nil {
		return nil
	}
	// The JSON of the reports has no Raw; Sent has the same problems with it, in the same order.
	for i := range min(len(out), len(a.Sent)) {
		out[i].Items = withRaw(a.Sent[i])
	}
	return out
}

// Definition implements builtin.Queries, like the methods below: each sends one question. Positions pass through unchanged.
func (b servers) Definition(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error) {
	return query[[]lspbridge.Location](ctx, b, question{Ask: "Definition", Path: path, At: p})
}

func (b servers) TypeDefinition(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error) {
	return query[[]lspbridge.Location](ctx, b, question{Ask: "TypeDefinition", Path: path, At: p})
}

func (b servers) Implementation(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error) {
	return query[[]lspbridge.Location](ctx, b, question{Ask: "Implementation", Path: path, At: p})
}

func (b servers) References(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error) {
	return query[[]lspbridge.Location](ctx, b, question{Ask: "References", Path: path, At: p})
}

func (b servers) Hover(ctx context.Context, path string, p lspbridge.Position) (string, error) {
	return query[string](ctx, b, question{Ask: "Hover", Path: path, At: p})
}

func (b servers) DocumentSymbols(ctx context.Context, path string) ([]lspbridge.Symbol, error) {
	return query[[]lspbridge.Symbol](ctx, b, question{Ask: "DocumentSymbols", Path: path})
}

func (b servers) WorkspaceSymbols(ctx context.Context, path, text string) ([]lspbridge.Symbol, error) {
	return query[[]lspbridge.Symbol](ctx, b, question{Ask: "WorkspaceSymbols", Path: path, Text: text})
}

func (b servers) PrepareCallHierarchy(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.CallItem, error) {
	return query[[]lspbridge.CallItem](ctx, b, question{Ask: "PrepareCallHierarchy", Path: path, At: p})
}

func (b servers) IncomingCalls(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.CallItem, error) {
	return query[[]lspbridge.CallItem](ctx, b, question{Ask: "IncomingCalls", Path: path, At: p})
}

func (b servers) OutgoingCalls(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.CallItem, error) {
	return query[[]lspbridge.CallItem](ctx, b, question{Ask: "OutgoingCalls", Path: path, At: p})
}

func (b servers) TypeHierarchy(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.TypeTree, error) {
	return query[[]lspbridge.TypeTree](ctx, b, question{Ask: "TypeHierarchy", Path: path, At: p})
}

// CodeActions implements builtin.Queries. The problems cross with Raw, see withSent.
func (b servers) CodeActions(ctx context.Context, path string, r lspbridge.Range, only []string, diags []change.Problem) ([]lspbridge.Action, error) {
	return query[[]lspbridge.Action](ctx, b, question{Ask: "CodeActions", Path: path, Range: r, List: only, Diags: withSent(diags)})
}

// ResolveAction implements builtin.Queries. The action holds the server's own data and is returned as it came.
func (b servers) ResolveAction(ctx context.Context, a lspbridge.Action) ([]lspbridge.FileEdit, error) {
	return query[[]lspbridge.FileEdit](ctx, b, question{Ask: "ResolveAction", Path: a.Path, Action: a})
}

// RunAction implements builtin.Queries. It applies an action's edits in the draft. An action that is only a command of the server fails
// with kind "unsupported": the server would change the project's files, not the draft's.
func (b servers) RunAction(ctx context.Context, a lspbridge.Action, apply lspbridge.Apply) error {
	// Actions that already have edits are resolved too: the host knows which of them still need the server.
	edits, err := b.ResolveAction(ctx, a)
	if err != nil {
		return &tools.Error{Kind: "unsupported", Message: a.Title + " cannot be carried out in a draft: " + err.Error(), Err: err}
	}
	if len(edits) == 0 {
		return nil
	}
	return apply(ctx, a.Title, edits)
}

func (b servers) Rename(ctx context.Context, path string, p lspbridge.Position, newName string) ([]lspbridge.FileEdit, error) {
	return query[[]lspbridge.FileEdit](ctx, b, question{Ask: "Rename", Path: path, At: p, Text: newName})
}

func (b servers) Format(ctx context.Context, path string) ([]lspbridge.FileEdit, error) {
	return query[[]lspbridge.FileEdit](ctx, b, question{Ask: "Format", Path: path})
}
