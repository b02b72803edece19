package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// queryBudget is how long a question waits when its context has no deadline. It is longer than defaultBudget, because the caller needs
// exactly this answer.
const queryBudget = 20 * time.Second

// questions answers requests about a position or a name: definitions, references, symbols, edits.
type questions struct{ *fleet }

// ask sends a request to the servers of a file that support it: to all of them with several, else to one after the other until one has an
// answer. Each server first gets the file as the person sees it. The error is ErrUnsupported when no server supports the request, and a
// *BusyError when one did not answer in time.
func (q questions) ask(ctx context.Context, path string, several bool, can func(*capabilities) bool, what string, f func(context.Context, *client) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, queryBudget)
		defer cancel()
	}
	slots := q.serversOf(path)
	if len(slots) == 0 {
		return fmt.Errorf("no language server for %s: %w", filepath.Base(path), ErrUnsupported)
	}
	asked := false
	var errs []error
	for _, s := range slots {
		c, err := s.get(ctx)
		if err != nil {
			// A missing linter must not hide the answer of the language's own server.
			if !s.spec.Extra {
				errs = append(errs, err)
			}
			continue
		}
		if !can(&c.able.caps) {
			continue
		}
		asked = true
		release, err := c.exclusive.acquire(ctx)
		if err == nil {
			c.sync(c.withBuffers([]string{path}))
			c.waitUntilLoaded(ctx, path)
			_ = c.dependents.waitForFiles(ctx) // an answer from some of the files is better than none
			// A question from a draft is about the draft's texts, which are removed before the next question.
			undo := q.layTexts(ctx, s, c)
			err = f(ctx, c)
			undo()
			release()
		}
		if errors.Is(err, errNothing) { // another server may have an answer
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				err = &BusyError{c.why(ctx, err)}
			}
			errs = append(errs, err)
		} else if !several {
			return nil
		}
	}
	if !asked && len(errs) == 0 {
		return fmt.Errorf("%s: %w by the language server of %s", what, ErrUnsupported, filepath.Base(path))
	}
	if several && asked && len(errs) < len(slots) {
		return nil // at least one server answered
	}
	return errors.Join(errs...)
}

// BusyError means that a server did not answer in time; asking again later may succeed. Tools report it with an error kind of its own, so
// that a script can wait.
type BusyError struct{ reason string }

// Error names the server and what it is doing.
func (e *BusyError) Error() string { return e.reason }

// errNothing means that a server's answer was empty, so the next server is asked.
var errNothing = errors.New("nothing")

// orNothing returns errNothing for an empty answer.
func orNothing(n int) error {
	if n == 0 {
		return errNothing
	}
	return nil
}

// one is ask for a request that a single server answers.
func (q questions) one(ctx context.Context, path string, can func(*capabilities) bool, what string, f func(context.Context, *client) error) error {
	return q.ask(ctx, path, false, can, what, f)
}

// at returns TextDocumentPositionParams in the server's encoding.
func (c converter) at(path string, p Position) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}, "position": c.out(path, p)}
}

// locations sends a request whose answer is locations. Locations that are not files are left out.
func (q questions) locations(ctx context.Context, path string, p Position, method, what string, can func(*capabilities) bool, more map[string]any) ([]Location, error) {
	var out []Location
	err := q.one(ctx, path, can, what, func(ctx context.Context, c *client) error {
		params := c.converter().at(path, p)
		for k, v := range more {
			params[k] = v
		}
		var raw json.RawMessage
		if err := c.call(ctx, method, params, &raw); err != nil {
			return err
		}
		conv := c.converter()
		for _, l := range lsp.Locations(raw) {
			if file := uriPath(l.URI); file != "" {
				out = append(out, Location{file, conv.in(file, l.Range)})
			}
		}
		return orNothing(len(out))
	})
	return out, err
}

// Definition returns where the symbol at a position is defined; none when there is no symbol. Like all questions it waits 20 s when ctx has
// no deadline.
func (q questions) Definition(ctx context.Context, path string, p Position) ([]Location, error) {
	return q.locations(ctx, path, p, protocol.MethodTextDocumentDefinition, "go to definition", func(k *capabilities) bool { return has(k.Definition) }, nil)
}

// TypeDefinition returns where the type of the symbol at a position is defined.
func (q questions) TypeDefinition(ctx context.Context, path string, p Position) ([]Location, error) {
	return q.locations(ctx, path, p, protocol.MethodTextDocumentTypeDefinition, "go to type definition", func(k *capabilities) bool { return has(k.TypeDefinition) }, nil)
}

// Implementation returns the implementations of the interface or method at a position.
func (q questions) Implementation(ctx context.Context, path string, p Position) ([]Location, error) {
	return q.locations(ctx, path, p, protocol.MethodTextDocumentImplementation, "go to implementation", func(k *capabilities) bool { return has(k.Implementation) }, nil)
}

// References returns all references to the symbol at a position, its declaration included.
func (q questions) References(ctx context.Context, path string, p Position) ([]Location, error) {
	return q.locations(ctx, path, p, protocol.MethodTextDocumentReferences, "find references", func(k *capabilities) bool { return has(k.References) },
		map[string]any{"context": map[string]bool{"includeDeclaration": true}})
}

// Hover returns the server's description of the symbol at a position, in Markdown; "" when it has none.
func (q questions) Hover(ctx context.Context, path string, p Position) (string, error) {
	var text string
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.Hover) }, "hover", func(ctx context.Context, c *client) error {
		var h *struct{ Contents json.RawMessage }
		if err := c.call(ctx, protocol.MethodTextDocumentHover, c.converter().at(path, p), &h); err != nil {
			return err
		}
		if h != nil {
			text = lsp.HoverText(h.Contents)
		}
		return orNothing(len(text))
	})
	return text, err
}

// DocumentSymbols returns the outline of a file; from servers without a hierarchy it is a flat list.
func (q questions) DocumentSymbols(ctx context.Context, path string) ([]Symbol, error) {
	var out []Symbol
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.DocSymbol) }, "document symbols", func(ctx context.Context, c *client) error {
		var list []lsp.Symbol
		if err := c.call(ctx, protocol.MethodTextDocumentDocumentSymbol, map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}}, &list); err != nil {
			return err
		}
		out = c.converter().symbols(path, list)
		return orNothing(len(out))
	})
	return out, err
}

// symbols converts symbols; path is their file unless they name another one.
func (c converter) symbols(path string, in []lsp.Symbol) []Symbol {
	out := make([]Symbol, 0, len(in))
	for _, s := range in {
		file := path
		r := s.Range
		// SymbolInformation (a flat list, and workspace/symbol) has a location; DocumentSymbol has a range.
		if s.Location != nil {
			if p := uriPath(s.Location.URI); p != "" {
				file = p
			}
			r = s.Location.Range
		}
		sym := Symbol{Name: s.Name, Detail: s.Detail, Container: s.ContainerName, Kind: int(s.Kind), Path: file}
		// A WorkspaceSymbol may name its file without a range (LSP 3.17).
		if r != nil {
			sym.Range = c.in(file, *r)
			sym.Selection = sym.Range
		}
		if s.Selection != nil {
			sym.Selection = c.in(file, *s.Selection)
		}
		sym.Children = c.symbols(file, s.Children)
		out = append(out, sym)
	}
	return out
}

// PrepareCallHierarchy returns the functions at a position.
func (q questions) PrepareCallHierarchy(ctx context.Context, path string, p Position) ([]CallItem, error) {
	var out []CallItem
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.CallHierarchy) }, "call hierarchy", func(ctx context.Context, c *client) error {
		list, err := c.prepare(ctx, path, p)
		for _, i := range list {
			out = append(out, c.converter().callItem(i, path, nil))
		}
		if err == nil {
			err = orNothing(len(list))
		}
		return err
	})
	return out, err
}

// prepare sends textDocument/prepareCallHierarchy. Its items must be sent back unchanged.
func (c *client) prepare(ctx context.Context, path string, p Position) (list []lsp.CallItem, err error) {
	err = c.call(ctx, protocol.MethodTextDocumentPrepareCallHierarchy, c.converter().at(path, p), &list)
	return list, err
}

// callItem converts an item; from is the file to which ranges refer.
func (c converter) callItem(i lsp.CallItem, from string, ranges []lsp.Range) CallItem {
	file := uriPath(i.URI)
	out := CallItem{Name: i.Name, Detail: i.Detail, Kind: int(i.Kind), Path: file, Range: c.in(file, i.Range), Selection: c.in(file, i.Selection)}
	for _, r := range ranges {
		out.FromRanges = append(out.FromRanges, c.in(from, r))
	}
	return out
}

// IncomingCalls returns the callers of the function at a position. FromRanges are in the caller's file.
func (q questions) IncomingCalls(ctx context.Context, path string, p Position) ([]CallItem, error) {
	return q.calls(ctx, path, p, protocol.MethodCallHierarchyIncomingCalls)
}

// OutgoingCalls returns the functions that the function at a position calls. FromRanges are in the calling file.
func (q questions) OutgoingCalls(ctx context.Context, path string, p Position) ([]CallItem, error) {
	return q.calls(ctx, path, p, protocol.MethodCallHierarchyOutgoingCalls)
}

// calls requests one direction of the call hierarchy.
func (q questions) calls(ctx context.Context, path string, p Position, method string) ([]CallItem, error) {
	var out []CallItem
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.CallHierarchy) }, "call hierarchy", func(ctx context.Context, c *client) error {
		items, err := c.prepare(ctx, path, p)
		if err == nil {
			err = orNothing(len(items))
		}
		if err != nil {
			return err
		}
		for _, item := range items {
			var list []lsp.Call
			if err := c.call(ctx, method, map[string]any{"item": item.Raw}, &list); err != nil {
				return err
			}
			for _, call := range list {
				switch {
				case call.From != nil:
					out = append(out, c.converter().callItem(*call.From, uriPath(call.From.URI), call.FromRanges))
				case call.To != nil:
					out = append(out, c.converter().callItem(*call.To, uriPath(item.URI), call.FromRanges))
				}
			}
		}
		return nil
	})
	return out, err
}
