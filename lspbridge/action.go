package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/protocol"
)

// ErrUnsupported means that no server for the file supports the request; callers fall back to a text search.
var ErrUnsupported = errors.New("not supported")

// CodeActions returns the code actions that the servers offer for a range: quick fixes, refactorings, source actions. only filters by kind,
// including sub-kinds; nil returns all. diags are the problems to fix; nil means those known at the range. Without a deadline in ctx it
// waits at most 20 s.
func (q questions) CodeActions(ctx context.Context, path string, r Range, only []string, diags []change.Problem) ([]Action, error) {
	var out []Action
	err := q.ask(ctx, path, true, func(k *capabilities) bool { return has(k.CodeAction) }, "code actions", func(ctx context.Context, c *client) error {
		// Some servers compute fixes from the last pull. After a check of a proposal that pull was about a text that is gone, so pull
		// again.
		if c.mode() == byPull && c.ledger.isPulledForProposal(path) {
			_ = c.pull(ctx, path, byPull)
		}
		about := []json.RawMessage{}
		if diags == nil {
			for _, d := range c.ledger.snapshot()[path].items() {
				if rangesTouch(ProblemRange(d), r) {
					about = append(about, d.Raw)
				}
			}
		}
		for _, d := range diags {
			if d.Raw != nil && d.Server == c.spec.ID {
				about = append(about, d.Raw)
			}
		}
		// 1 is Invoked in LSP's CodeActionTriggerKind: the list was requested explicitly.
		where := map[string]any{"diagnostics": about, "triggerKind": 1}
		if len(only) > 0 {
			where["only"] = only
		}
		var list []lsp.CodeAction
		err := c.call(ctx, protocol.MethodTextDocumentCodeAction, map[string]any{"textDocument": map[string]any{"uri": pathURI(path)},
			"range": c.converter().outRange(path, r), "context": where}, &list)
		for _, a := range list {
			if a.Title == "" || !matchesKind(a.Kind, only) {
				continue
			}
			out = append(out, Action{Title: a.Title, Kind: a.Kind, IsPreferred: a.IsPreferred, Disabled: a.Disabled, Server: c.spec.ID, Path: path, Raw: a.Raw})
		}
		return err
	})
	return out, err
}

// rangesTouch reports whether two ranges overlap or meet: a quick fix is also offered at the end of a problem.
func rangesTouch(a, b Range) bool {
	before := func(x, y Position) bool { return x.Line < y.Line || x.Line == y.Line && x.Character < y.Character }
	return !before(a.End, b.Start) && !before(b.End, a.Start)
}

// matchesKind filters by kind once more, because some servers ignore CodeActionContext.only.
func matchesKind(kind string, only []string) bool {
	if len(only) == 0 {
		return true
	}
	for _, o := range only {
		if kind == o || strings.HasPrefix(kind, o+".") {
			return true
		}
	}
	return false
}

// ResolveAction returns the edits of an action; nothing is written and no command runs. An action that is only a command is an error: its
// edits are known only when RunAction runs it.
func (q questions) ResolveAction(ctx context.Context, a Action) ([]FileEdit, error) {
	if a.Disabled != "" {
		return nil, fmt.Errorf("%s: %s", a.Title, a.Disabled)
	}
	var edits []FileEdit
	found := false
	err := q.ask(ctx, a.Path, true, func(k *capabilities) bool { return has(k.CodeAction) }, "code actions", func(ctx context.Context, c *client) error {
		if c.spec.ID != a.Server {
			return nil
		}
		found = true
		var cmd *lsp.Command
		var err error
		if edits, cmd, err = c.resolveAction(ctx, a); err == nil && cmd != nil {
			err = fmt.Errorf("%s: %w", a.Title, errOnlyRuns)
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s does not run for %s any more", a.Server, a.Path)
	}
	return edits, err
}

// resolveAction returns an action's edit, or its command when it has no edit.
func (c *client) resolveAction(ctx context.Context, a Action) ([]FileEdit, *lsp.Command, error) {
	var act lsp.CodeAction
	if err := json.Unmarshal(a.Raw, &act); err != nil {
		return nil, nil, err
	}
	var provider struct{ ResolveProvider bool }
	_ = json.Unmarshal(c.able.caps.CodeAction, &provider)
	// An action with a command and no data is complete, so it need not be resolved.
	if act.Edit == nil && provider.ResolveProvider && (act.HasData || act.Command == nil) {
		var full lsp.CodeAction
		if err := c.call(ctx, protocol.MethodCodeActionResolve, act.Raw, &full); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", a.Title, err)
		}
		act.Edit = full.Edit
		if full.Command != nil {
			act.Command = full.Command
		}
	}
	switch {
	case act.Edit != nil: // a command beside an edit usually only moves the editor's cursor or starts an inline rename
		edits, err := c.edits.resolve(*act.Edit)
		return edits, nil, err
	case act.Command == nil:
		// An action without effect is an error, or the model would take the problem for fixed.
		return nil, nil, fmt.Errorf("%s: the server sent neither an edit nor a command", a.Title)
	}
	if act.Command.Title == "" {
		act.Command.Title = a.Title
	}
	return nil, act.Command, nil
}

// Rename returns the edits that rename the symbol at a position everywhere. Nothing is written.
func (q questions) Rename(ctx context.Context, path string, p Position, newName string) ([]FileEdit, error) {
	var edits []FileEdit
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.Rename) }, "rename", func(ctx context.Context, c *client) error {
		params := c.converter().at(path, p)
		params["newName"] = newName
		var e *lsp.WorkspaceEdit
		if err := c.call(ctx, protocol.MethodTextDocumentRename, params, &e); err != nil {
			return err
		}
		if e == nil {
			return errors.New("there is no symbol to rename at this position")
		}
		var err error
		edits, err = c.edits.resolve(*e)
		return err
	})
	return edits, err
}

// Format returns the edits that format a whole file; none when the file is already formatted.
func (q questions) Format(ctx context.Context, path string) ([]FileEdit, error) {
	var edits []FileEdit
	err := q.one(ctx, path, func(k *capabilities) bool { return has(k.Format) }, "formatting", func(ctx context.Context, c *client) error {
		text, _ := c.host.text(path)
		var list []lsp.TextEdit
		if err := c.call(ctx, protocol.MethodTextDocumentFormatting, map[string]any{"textDocument": map[string]any{"uri": pathURI(path)}, "options": indentation(text)}, &list); err != nil {
			return err
		}
		var err error
		edits, err = c.edits.resolve(lsp.WorkspaceEdit{Changes: map[string][]lsp.TextEdit{string(pathURI(path)): list}})
		return err
	})
	return edits, err
}

// indentation returns a file's FormattingOptions, guessed from its first indented line: a server without a configuration of its own would
// otherwise reindent the whole file.
func indentation(text string) map[string]any {
	size, spaces := 4, true
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") {
			spaces = false
			break
		}
		// One space, or spaces before '*', belong to a block comment.
		if n := len(line) - len(strings.TrimLeft(line, " ")); n > 1 && n <= 8 && strings.TrimSpace(line) != "" && line[n] != '*' {
			size = n
			break
		}
	}
	return map[string]any{"tabSize": size, "insertSpaces": spaces, "insertFinalNewline": strings.HasSuffix(text, "\n")}
}
