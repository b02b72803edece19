package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/replace"
	"github.com/pillion-dev/pillion/tools/symbol"
)

//go:embed symbol.txt
var symbolText string

//go:embed symbol_find.txt
var symbolFindText string

//go:embed symbol_read.txt
var symbolReadText string

//go:embed symbol_replace.txt
var symbolReplaceText string

//go:embed symbol_insert_before.txt
var symbolBeforeText string

//go:embed symbol_insert_after.txt
var symbolAfterText string

//go:embed symbol_references.txt
var symbolReferencesText string

//go:embed symbol_rename.txt
var symbolRenameText string

//go:embed symbol_delete.txt
var symbolDeleteText string

// symbolParams name one symbol; FilePath and Line matter where several have the name.
type symbolParams struct {
	Symbol   string `json:"symbol"`
	FilePath string `json:"filePath,omitempty"`
	Line     int    `json:"line,omitempty" minimum:"1"`
}

// symbolBodyParams name a symbol and the text that is put in, before or after it.
type symbolBodyParams struct {
	Symbol   string `json:"symbol"`
	Body     string `json:"body"`
	FilePath string `json:"filePath,omitempty"`
	Line     int    `json:"line,omitempty" minimum:"1"`
}

// symbolRenameParams name a symbol and its new name.
type symbolRenameParams struct {
	Symbol   string `json:"symbol"`
	NewName  string `json:"newName"`
	FilePath string `json:"filePath,omitempty"`
	Line     int    `json:"line,omitempty" minimum:"1"`
}

// SymbolRead shows one declaration whole, with the comment and decorators that belong to it, in place of a page of the file.
func SymbolRead(env Env) tools.Tool {
	return symbolTool("symbol_read", symbolReadText, "lsp", tools.KindRead, func(ctx, asking context.Context, p symbolParams, call *tools.Call) (tools.Result, error) {
		c, t, err := env.symbolAt(ctx, asking, call, p)
		if err != nil {
			return tools.Result{}, err
		}
		return c.read(t), nil
	})
}

// SymbolReplace puts a new declaration in one's place. The session must have seen what it replaces; see symbolCall.replaced.
func SymbolReplace(env Env) tools.Tool {
	return symbolEdit(env, "symbol_replace", symbolReplaceText, "Replace", (*symbolCall).replaced)
}

// SymbolInsertBefore puts a declaration in front of one.
func SymbolInsertBefore(env Env) tools.Tool {
	return symbolEdit(env, "symbol_insert_before", symbolBeforeText, "Insert before", inserted(symbol.Before))
}

// SymbolInsertAfter puts a declaration behind one.
func SymbolInsertAfter(env Env) tools.Tool {
	return symbolEdit(env, "symbol_insert_after", symbolAfterText, "Insert after", inserted(symbol.After))
}

// inserted is an edit that takes nothing away, so that nobody need have seen what is there.
func inserted(apply func(text string, s symbol.Symbol, body string) (string, error)) func(*symbolCall, *target, string) (string, error) {
	return func(_ *symbolCall, t *target, body string) (string, error) { return apply(t.text, t.sym, body) }
}

// symbolEdit makes the three tools that put text in place of, before or after a declaration. The result
// is checked for its shape before a person sees it (see checkShape).
func symbolEdit(env Env, id, words, title string, apply func(c *symbolCall, t *target, body string) (string, error)) tools.Tool {
	return symbolTool(id, words, "edit", tools.KindEdit, func(ctx, asking context.Context, p symbolBodyParams, call *tools.Call) (tools.Result, error) {
		if strings.TrimSpace(p.Body) == "" {
			return tools.Result{}, &tools.Error{Kind: "invalid", Message: id + " needs body, the whole declaration; to take a symbol out use symbol_delete"}
		}
		c, t, err := env.symbolAt(ctx, asking, call, symbolParams{p.Symbol, p.FilePath, p.Line})
		if err != nil {
			return tools.Result{}, err
		}
		text, err := apply(c, t, p.Body)
		if err != nil {
			return tools.Result{}, symbolError(err)
		}
		if err := c.checkShape(asking, t, text); err != nil {
			return tools.Result{}, err
		}
		return c.write(ctx, title, t, text)
	})
}

// SymbolReferences lists where a symbol is used, by meaning: it needs a language server.
func SymbolReferences(env Env) tools.Tool {
	return symbolTool("symbol_references", symbolReferencesText, "lsp", tools.KindSearch, func(ctx, asking context.Context, p symbolParams, call *tools.Call) (tools.Result, error) {
		c, t, err := env.symbolAt(ctx, asking, call, p)
		if err != nil {
			return tools.Result{}, err
		}
		return c.references(asking, t)
	})
}

// SymbolRename renames a symbol everywhere its language server knows, as one change set.
func SymbolRename(env Env) tools.Tool {
	return symbolTool("symbol_rename", symbolRenameText, "edit", tools.KindEdit, func(ctx, asking context.Context, p symbolRenameParams, call *tools.Call) (tools.Result, error) {
		if p.NewName == "" {
			return tools.Result{}, &tools.Error{Kind: "invalid", Message: "symbol_rename needs newName"}
		}
		c, t, err := env.symbolAt(ctx, asking, call, symbolParams{p.Symbol, p.FilePath, p.Line})
		if err != nil {
			return tools.Result{}, err
		}
		return c.rename(ctx, asking, t, p.NewName)
	})
}

// SymbolDelete takes an unused symbol out; one that is used is an error that lists the uses.
func SymbolDelete(env Env) tools.Tool {
	return symbolTool("symbol_delete", symbolDeleteText, "edit", tools.KindEdit, func(ctx, asking context.Context, p symbolParams, call *tools.Call) (tools.Result, error) {
		c, t, err := env.symbolAt(ctx, asking, call, p)
		if err != nil {
			return tools.Result{}, err
		}
		return c.remove(ctx, asking, t)
	})
}

// symbolTool is what the tools have in common: how long servers are asked, and how errors are told. asking limits the
// servers; ctx is the call's own, for questions to a person.
func symbolTool[P any](id, words, perm string, kind tools.Kind, run func(ctx, asking context.Context, p P, call *tools.Call) (tools.Result, error)) tools.Tool {
	return tools.New(id, words, func(ctx context.Context, p P, call *tools.Call) (tools.Result, error) {
		asking, cancel := context.WithTimeout(ctx, symbolBudget)
		defer cancel()
		r, err := run(ctx, asking, p, call)
		if err != nil {
			// The call was cancelled: what a server said on the way is not a result.
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return tools.Result{}, symbolError(err)
		}
		return r, nil
	}, tools.WithPermission(perm), tools.WithKind(kind), tools.WithNames(symbolNames), tools.WithIgnored(), tools.WithGroup(symbolGroup))
}

// symbolGroup shows a model the symbol tools as one: their parameters are nearly the same, and eight schemas are long.
var symbolGroup = &tools.Group{ID: "symbol", Description: symbolText}

// symbolNames maps each parameter to the names that models use for it, from the symbol tools of other
// programs. One table serves all of them: a tool ignores the entries whose parameter it does not have.
var symbolNames = map[string][]string{
	"query":    {"symbol", "name", "namePath", "symbolName", "pattern"},
	"path":     {"filePath", "file", "folder", "dir", "directory", "relativePath"},
	"bodies":   {"body", "includeBody"},
	"body":     {"newBody", "code", "content", "newContent", "text", "newCode"},
	"kind":     {"symbolKind", "type"},
	"symbol":   {"name", "namePath", "symbolName", "symbolPath", "query"},
	"filePath": {"path", "file", "relativePath"},
	"newName":  {"name", "newSymbolName", "to"},
	"line":     {"lineNumber", "startLine"},
}

// symbolError gives an error of the servers or of package symbol its kind. "unsupported" tells the model to go another way, "not_whole" to
// send a whole declaration, "lsp" that trying again may help. A cancel stays as it is, because it ends the turn.
func symbolError(err error) error {
	var known *tools.Error
	var fixed *symbol.FixedError
	var refused *replace.Error
	switch {
	case errors.As(err, &refused):
		return &tools.Error{Kind: refused.Kind, Message: err.Error(), Err: err}
	case errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &fixed):
		return &tools.Error{Kind: "not_whole", Message: err.Error(), Err: err}
	case errors.Is(err, lspbridge.ErrUnsupported), errors.Is(err, lspbridge.ErrUnavailable):
		return &tools.Error{Kind: "unsupported", Message: err.Error(), Err: err}
	}
	return &tools.Error{Kind: "lsp", Message: err.Error(), Err: err}
}

// symbolCall is one call of a symbol tool: an lspCall, and what the answer must say about how it was found.
type symbolCall struct {
	lspCall
	notes []string // appended to the answer, e.g. that it was found without the language server
}

// symbols starts a call. lsp is nil without language servers; tree-sitter then answers alone.
func (env Env) symbols(call *tools.Call) *symbolCall {
	c := &symbolCall{lspCall: lspCall{changes: env.changes(), search: env.searcher(), call: call}}
	c.lsp, _ = env.Bridge.(intelligence)
	return c
}

// note adds a note once; several files of one search fail for the same reason.
func (c *symbolCall) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	for _, have := range c.notes {
		if have == n {
			return
		}
	}
	c.notes = append(c.notes, n)
}

// noted appends the notes to an answer, one a line, in brackets, so that they are not taken for code.
func (c *symbolCall) noted(text string) string {
	for _, n := range c.notes {
		text += "\n(" + n + ")"
	}
	return text
}

// symbolAt asks for the servers and for reading the file, and finds the one symbol that is meant.
func (env Env) symbolAt(ctx, asking context.Context, call *tools.Call, p symbolParams) (*symbolCall, *target, error) {
	c := env.symbols(call)
	if strings.TrimSpace(p.Symbol) == "" {
		return nil, nil, &tools.Error{Kind: "invalid", Message: call.Tool + " needs symbol, a name path such as Type.method"}
	}
	if err := c.askLSP(ctx, p.Symbol); err != nil {
		return nil, nil, err
	}
	t, err := c.target(ctx, asking, p)
	return c, t, err
}

// askLSP asks for the permission "lsp", which the tool lsp needs too: one rule decides for both.
func (c *symbolCall) askLSP(ctx context.Context, what string) error {
	return ask(ctx, c.call, permission.Request{Permission: "lsp", Patterns: []string{"*"}, Always: []string{"*"}, Title: "Find the symbol " + what,
		Metadata: map[string]any{"operation": c.call.Tool, "symbol": what}})
}
