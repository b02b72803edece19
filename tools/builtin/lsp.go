package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

//go:embed lsp.txt
var lspText string

// lspParams are the parameters of all operations in one flat schema; allowed checks which of them an operation needs.
type lspParams struct {
	// The operations have the names of OpenCode's lsp tool, which are LSP's requests in
	// camel case.
	Operation string `json:"operation" enum:"diagnostics,goToDefinition,typeDefinition,goToImplementation,findReferences,hover,documentSymbol,workspaceSymbol,prepareCallHierarchy,incomingCalls,outgoingCalls,typeHierarchy,codeActions,rename,organizeImports,format"`
	FilePath  string `json:"filePath,omitempty"`
	Line      int    `json:"line,omitempty" minimum:"1"`
	Character int    `json:"character,omitempty" minimum:"1"`
	Query     string `json:"query,omitempty"`
	NewName   string `json:"newName,omitempty"`
	Apply     string `json:"apply,omitempty" jsonschema:"an action's id"`
	Undo      string `json:"undo,omitempty" jsonschema:"the id of one that was applied"`
	Kind      string `json:"kind,omitempty" jsonschema:"codeActions: quickfix, refactor, source.fixAll …"`
}

// Queries are the questions that the lsp and symbol tools ask beyond Bridge; *lspbridge.Manager answers them. A Bridge of a host that
// only checks edits need not: the tool then says that there are no servers. Positions count from 0, in UTF-16 units.
type Queries interface {
	ProjectDiagnostics(ctx context.Context, paths ...string) []lspbridge.FileReport
	Definition(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error)
	TypeDefinition(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error)
	Implementation(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error)
	References(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.Location, error)
	Hover(ctx context.Context, path string, p lspbridge.Position) (string, error)
	DocumentSymbols(ctx context.Context, path string) ([]lspbridge.Symbol, error)
	WorkspaceSymbols(ctx context.Context, path, query string) ([]lspbridge.Symbol, error)
	PrepareCallHierarchy(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.CallItem, error)
	IncomingCalls(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.CallItem, error)
	OutgoingCalls(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.CallItem, error)
	TypeHierarchy(ctx context.Context, path string, p lspbridge.Position) ([]lspbridge.TypeTree, error)
	CodeActions(ctx context.Context, path string, r lspbridge.Range, only []string, diags []change.Problem) ([]lspbridge.Action, error)
	ResolveAction(ctx context.Context, a lspbridge.Action) ([]lspbridge.FileEdit, error)
	Rename(ctx context.Context, path string, p lspbridge.Position, newName string) ([]lspbridge.FileEdit, error)
	Format(ctx context.Context, path string) ([]lspbridge.FileEdit, error)
}

// intelligence also runs actions of a server. In a draft those that are commands of the server are refused, see tools/draft/worker.
type intelligence interface {
	Queries
	RunAction(ctx context.Context, a lspbridge.Action, apply lspbridge.Apply) error
}

// How long a question to a server may take. The first one starts it, and it may have a large project to read. The symbol
// tools wait less: they fall back to tree-sitter.
const (
	// For one call of the tool lsp, without the time in which a person is asked.
	lspBudget    = 60 * time.Second
	symbolBudget = 20 * time.Second
)

// LSP asks the language servers by meaning, and changes code through the change pipeline.
func LSP(env Env) tools.Tool {
	// For the life of the tool, which is that of the session: an id from an earlier call must still be found.
	offered := &offeredActions{byID: map[string]offeredAction{}}
	return tools.New("lsp", lspText, func(ctx context.Context, p lspParams, call *tools.Call) (tools.Result, error) {
		return (&lspCall{env.changes(), env.searcher(), p, call, offered, nil, ""}).run(ctx)
	}, tools.WithKind(tools.KindSearch), tools.WithIgnored(), tools.WithNames(map[string][]string{
		"operation": {"op", "method", "command", "action"},
		"filePath":  {"path", "file", "folder", "directory", "relativePath"},
		"line":      {"lineNumber", "row"},
		"character": {"column", "col", "char"},
		"query":     {"symbol", "name", "symbolName"},
		"newName":   {"to", "newSymbolName"},
		"apply":     {"actionId", "action", "id"},
	}))
}

// lspCall is one call of the lsp tool. It embeds changes, because rename, format and code actions change files.
type lspCall struct {
	changes
	search  *search.Searcher
	p       lspParams
	call    *tools.Call
	offered *offeredActions
	lsp     intelligence
	path    string // absolute; "" without filePath
}

// run makes one call: it asks for permission, asks the servers, and gives errors their kinds. A canceled call returns the context's error,
// whatever a server answered.
func (c *lspCall) run(ctx context.Context) (tools.Result, error) {
	c.lsp, _ = c.Bridge.(intelligence)
	if c.lsp == nil {
		return tools.Result{}, &tools.Error{Kind: "unavailable", Message: "No language server is configured for this session. Use grep and read instead."}
	}
	// Before the budget starts: a person may take minutes to answer.
	if err := c.allowed(ctx); err != nil {
		return tools.Result{}, err
	}
	// The errors below keep their kinds, so that the built-in model and scripts can tell
	// "try again" from "never".
	asking, cancel := context.WithTimeout(ctx, lspBudget)
	defer cancel()
	r, err := c.perform(ctx, asking)
	if err != nil {
		var known *tools.Error
		switch {
		case ctx.Err() != nil:
			return tools.Result{}, ctx.Err()
		case errors.As(err, &known):
			return tools.Result{}, err
		case errors.Is(err, lspbridge.ErrUnsupported):
			return tools.Result{}, &tools.Error{Kind: "unsupported", Message: err.Error(), Err: err}
		}
		var busy *lspbridge.BusyError
		if errors.As(err, &busy) {
			return tools.Result{}, &tools.Error{Kind: "busy", Message: err.Error(), Err: err}
		}
		return tools.Result{}, &tools.Error{Kind: "lsp", Message: err.Error(), Err: err}
	}
	if r.Title == "" {
		r.Title = c.title()
	}
	if r.Metadata == nil {
		r.Metadata = map[string]any{}
	}
	r.Metadata["operation"], r.Metadata["cwd"] = c.p.Operation, c.Cwd
	return r, nil
}

// title is the card's: the operation and the place, as people write it (path:line:column).
func (c *lspCall) title() string {
	t := c.p.Operation
	if c.path != "" {
		t += " " + c.rel(c.path)
		if c.p.Line > 0 {
			t += fmt.Sprintf(":%d:%d", c.p.Line, max(c.p.Character, 1))
		}
	}
	return t
}

// allowed checks the parameters and asks for the tool, then for the file as the tool read does, because
// a server's answers quote it. Parameters come first: a person should not approve a call that cannot be
// made.
func (c *lspCall) allowed(ctx context.Context) error {
	needed := c.p.Operation != "diagnostics" && c.p.Operation != "workspaceSymbol" && c.p.Apply == "" && c.p.Undo == ""
	switch {
	case c.p.FilePath == "" && needed:
		return &tools.Error{Kind: "invalid", Message: c.p.Operation + " needs filePath"}
	case c.p.Operation == "rename" && c.p.NewName == "":
		return &tools.Error{Kind: "invalid", Message: "rename needs newName"}
	case c.p.Operation == "workspaceSymbol" && c.p.Query == "":
		return &tools.Error{Kind: "invalid", Message: "workspaceSymbol needs query, the symbol's name or a part of it"}
	}
	if err := ask(ctx, c.call, permission.Request{Permission: "lsp", Patterns: []string{"*"}, Always: []string{"*"}, Title: "Ask the language server: " + c.p.Operation,
		Metadata: map[string]any{"operation": c.p.Operation, "filePath": c.p.FilePath}}); err != nil {
		return err
	}
	if c.p.FilePath == "" {
		return nil
	}
	path, err := c.abs(c.p.FilePath)
	if err != nil {
		return err
	}
	at, err := c.place(path)
	if err != nil {
		return err
	}
	// Asked also where the file exists: a generic editor tells now what is unsaved, and the servers get
	// that text.
	open := c.isBuffer(path)
	if _, err := os.Stat(path); err != nil && !open {
		return missing(path)
	}
	if at.dir && c.p.Operation != "diagnostics" {
		return &tools.Error{Kind: "is_directory", Message: c.p.Operation + " needs a file; " + path + " is a folder"}
	}
	c.path = path
	return c.askRead(ctx, c.call, at)
}

// isBuffer reports whether an editor has the file open: such a file can be asked about before it was ever saved.
func (c *lspCall) isBuffer(path string) bool {
	if c.Buffers == nil {
		return false
	}
	_, ok := c.Buffers.Buffer(path)
	return ok
}

// perform carries out the operation. asking limits the servers; ctx is the call's own and has no limit,
// because a person may be asked about the result.
func (c *lspCall) perform(ctx, asking context.Context) (tools.Result, error) {
	switch c.p.Operation {
	case "diagnostics":
		return c.diagnostics(asking)
	case "documentSymbol":
		list, err := c.lsp.DocumentSymbols(asking, c.path)
		return c.symbols(list), err
	case "workspaceSymbol":
		list, err := c.lsp.WorkspaceSymbols(asking, c.path, c.p.Query)
		return c.symbols(list), err
	case "codeActions":
		if c.p.Apply != "" {
			return c.applyAction(ctx, asking)
		}
		if c.p.Undo != "" {
			return c.undoAction(ctx)
		}
		return c.codeActions(asking)
	case "organizeImports":
		return c.organizeImports(ctx, asking)
	case "format":
		return c.change(ctx, "Format", func() ([]lspbridge.FileEdit, error) { return c.lsp.Format(asking, c.path) })
	}
	// All operations from here on are about a position; those above work on files or names.
	at, err := c.position()
	if err != nil {
		return tools.Result{}, err
	}
	switch c.p.Operation {
	case "goToDefinition":
		return c.locations(c.lsp.Definition(asking, c.path, at))
	case "typeDefinition":
		return c.locations(c.lsp.TypeDefinition(asking, c.path, at))
	case "goToImplementation":
		return c.locations(c.lsp.Implementation(asking, c.path, at))
	case "findReferences":
		return c.locations(c.lsp.References(asking, c.path, at))
	case "hover":
		text, err := c.lsp.Hover(asking, c.path, at)
		r := tools.Result{Output: text, Metadata: map[string]any{"text": text}}
		if text == "" {
			r.Output = "The language server has nothing to say about that position."
		}
		return r, err
	case "prepareCallHierarchy":
		return c.calls(c.lsp.PrepareCallHierarchy(asking, c.path, at))
	case "incomingCalls":
		return c.calls(c.lsp.IncomingCalls(asking, c.path, at))
	case "outgoingCalls":
		return c.calls(c.lsp.OutgoingCalls(asking, c.path, at))
	case "typeHierarchy":
		return c.types(c.lsp.TypeHierarchy(asking, c.path, at))
	case "rename":
		return c.change(ctx, "Rename to "+c.p.NewName, func() ([]lspbridge.FileEdit, error) {
			return c.lsp.Rename(asking, c.path, at, c.p.NewName)
		})
	}
	return tools.Result{}, &tools.Error{Kind: "invalid", Message: "unknown operation " + c.p.Operation}
}

// position is where the call points to, in the text that the person sees, 0-based as LSP has it.
// Without a character it is the line's first word, since models often know the line only. Characters
// are counted as the model counts them; for text beyond the BMP they may be off, and the servers then
// answer for the word at that place.
func (c *lspCall) position() (lspbridge.Position, error) {
	if c.p.Line < 1 {
		return lspbridge.Position{}, &tools.Error{Kind: "invalid", Message: c.p.Operation + " needs line and character, both counted from 1"}
	}
	line, n, err := c.line(c.p.Line)
	if err != nil {
		return lspbridge.Position{}, err
	}
	if c.p.Line > n {
		return lspbridge.Position{}, &tools.Error{Kind: "out_of_range", Message: fmt.Sprintf("%s has %d lines; line %d is beyond its end", c.rel(c.path), n, c.p.Line)}
	}
	// From 0 as LSP counts; -1 when the model gave none.
	char := c.p.Character - 1
	if char < 0 {
		char = len(line) - len(strings.TrimLeft(line, " \t"))
	}
	return lspbridge.Position{Line: c.p.Line - 1, Character: char}, nil
}

// line is a line (from 1) of the file, and how many there are.
func (c *lspCall) line(n int) (text string, lines int, err error) {
	f, err := c.openPlace(place{path: c.path, real: c.realOf()})
	if err != nil {
		return "", 0, err
	}
	all := strings.Split(f.Text, "\n")
	if n >= 1 && n <= len(all) {
		text = strings.TrimSuffix(all[n-1], "\r")
	}
	return text, len(all), nil
}

// realOf is the resolved path of the call's file; the path itself where it cannot be resolved.
func (c *lspCall) realOf() string {
	if p, err := c.place(c.path); err == nil {
		return p.real
	}
	return c.path
}

// change takes edits of a server through the change pipeline. compute runs with the servers' limit, the pipeline with the call's own
// context, since a person is asked. No edits are a result, not an error.
func (c *lspCall) change(ctx context.Context, title string, compute func() ([]lspbridge.FileEdit, error)) (tools.Result, error) {
	edits, err := compute()
	if err != nil {
		return tools.Result{}, err
	}
	// A rename is of the whole project, so its title names no file.
	if c.path != "" && !strings.Contains(title, " to ") {
		title += " in " + c.rel(c.path)
	}
	if len(edits) == 0 {
		return tools.Result{Title: title, Output: title + ": there is nothing to change.", Metadata: map[string]any{"files": []any{}}}, nil
	}
	return c.changeFiles(ctx, c.call, title, edits)
}
