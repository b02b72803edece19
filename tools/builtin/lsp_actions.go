package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/gofix"
)

// offeredActions are the code actions that the model was shown in a session, by id. LSP has no ids for actions, and an action is too long
// for a model to repeat.
type offeredActions struct {
	mu sync.Mutex // guards what follows
	// byID holds the last maxOffered actions, by the ids that the model was shown ("a17").
	byID map[string]offeredAction
	last int                             // number of the last id given out
	done map[string][]lspbridge.FileEdit // applied actions by id, with the texts before and after
}

// offeredAction records where and for what an action was offered, so that the server can be asked for it again when the file has changed:
// the positions in the old action would be wrong.
type offeredAction struct {
	action lspbridge.Action
	text   string          // the file at that time; the action's positions are valid in this text only
	rng    lspbridge.Range // the range that was asked for, from 0
	only   []string        // the kinds that were asked for; nil: all
	diags  []string        // messages of the problems that it was offered for
	own    *gofix.Fix      // the edit itself, for a fix of Pillion's; nil: a server offers the action
}

// maxOffered bounds what is remembered; the oldest ids then stop working. Each entry keeps the file's text of that moment in memory.
const maxOffered = 5000

// add remembers an action and returns its id. Ids are not used twice in a session, so an id from an old list never means another action.
func (o *offeredActions) add(a offeredAction) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	delete(o.byID, "a"+strconv.Itoa(o.last-maxOffered))
	id := "a" + strconv.Itoa(o.last)
	o.byID[id] = a
	return id
}

// get finds an action by its id; false for one that was never given out, or was dropped for later ones.
func (o *offeredActions) get(id string) (offeredAction, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, ok := o.byID[id]
	return a, ok
}

// codeActions lists what is offered at a place, or for every problem of a file when no line is given. The answer names an id for each, which
// the parameter apply takes; nothing is changed.
func (c *lspCall) codeActions(ctx context.Context) (tools.Result, error) {
	text, ok := c.writer.Present(c.path)
	if !ok {
		return tools.Result{}, missing(c.path)
	}
	report := c.Bridge.Diagnostics(ctx, c.path)
	r := lspbridge.Range{End: lspbridge.OffsetPosition(text, len(text))}
	about := slices.Clone(report.Items)
	if c.p.Line > 0 {
		at, err := c.position()
		if err != nil {
			return tools.Result{}, err
		}
		r, about = problemsAt(at, report.Items)
	}
	var only []string
	if c.p.Kind != "" {
		only = []string{c.p.Kind}
	}
	// nil would let the bridge choose the diagnostics itself; this list says that there are none.
	if about == nil {
		about = []change.Problem{}
	}
	actions, err := c.lsp.CodeActions(ctx, c.path, r, only, about)
	if err != nil {
		return tools.Result{}, err
	}
	type wireAction struct {
		ID        string  `json:"id"`
		Title     string  `json:"title"`
		Kind      string  `json:"kind,omitempty"`
		Preferred bool    `json:"preferred,omitempty"`
		Disabled  string  `json:"disabled,omitempty"`
		Server    string  `json:"server,omitempty"`
		Effect    *effect `json:"effect,omitempty"`
	}
	effects := c.effects(ctx, actions, wordIn(text, r))
	fixes := c.moduleFixes(ctx, about)
	for _, f := range fixes {
		// No Raw: such an action is never sent to a server. offeredAction.own holds the edit.
		actions = append(actions, lspbridge.Action{Title: f.Title, Kind: "quickfix", Server: "pillion", Path: c.path})
		effects = append(effects, &effect{Fixes: f.Errors, Errors: -f.Errors, Stub: makesStub(fixEdits(&f)), Discards: discards(fixEdits(&f))})
	}
	wire := []wireAction{}
	var out strings.Builder
	// Indices are sorted, not the actions: effects and fixes are found by the same index.
	order := make([]int, len(actions))
	for i := range order {
		order[i] = i
	}
	// The best action first: models take the first.
	slices.SortStableFunc(order, func(i, j int) int { return better(effects[i], effects[j]) })
	for _, i := range order {
		a := actions[i]
		var said []string
		for _, d := range about {
			said = append(said, d.Message)
		}
		o := offeredAction{action: a, text: text, rng: r, only: only, diags: said}
		// The fixes of our own were appended last.
		if own := i - (len(actions) - len(fixes)); own >= 0 {
			o.own = &fixes[own]
		}
		id := c.offered.add(o)
		wire = append(wire, wireAction{id, a.Title, a.Kind, a.IsPreferred, a.Disabled, a.Server, effects[i]})
		fmt.Fprintf(&out, "%s  %s", id, a.Title)
		if a.Kind != "" {
			fmt.Fprintf(&out, " [%s]", a.Kind)
		}
		if a.IsPreferred {
			out.WriteString(" (preferred)")
		}
		if a.Disabled != "" {
			out.WriteString(" (not now: " + a.Disabled + ")")
		}
		if e := effects[i]; e != nil {
			fmt.Fprintf(&out, "  fixes %d, introduces %d", e.Fixes, e.Introduces)
		}
		out.WriteByte('\n')
	}
	res := tools.Result{Output: strings.TrimSuffix(out.String(), "\n"), Metadata: map[string]any{"actions": wire, "state": string(report.Certainty), "reason": report.Reason}}
	if len(actions) == 0 {
		res.Output = "No code actions are offered there."
	}
	if report.Certainty != change.Fresh {
		res.Output += fmt.Sprintf("\n(%s: %s; there may be more)", report.Certainty, report.Reason)
	}
	return res, nil
}

// problemsAt is the range to ask for, with its problems: those at the position, else those of its line,
// else the position alone. Servers offer a fix only for a range that touches the problem.
func problemsAt(at lspbridge.Position, items []change.Problem) (lspbridge.Range, []change.Problem) {
	// LSP's order of positions: by line, then by character.
	before := func(a, b lspbridge.Position) bool {
		return a.Line < b.Line || a.Line == b.Line && a.Character < b.Character
	}
	var here, line []change.Problem
	for _, d := range items {
		if p := lspbridge.ProblemRange(d); p.Start.Line <= at.Line && at.Line <= p.End.Line {
			line = append(line, d)
			if !before(at, p.Start) && !before(p.End, at) {
				here = append(here, d)
			}
		}
	}
	if len(here) > 0 {
		line = here
	}
	r := lspbridge.Range{Start: at, End: at}
	for _, d := range line {
		p := lspbridge.ProblemRange(d)
		if before(p.Start, r.Start) {
			r.Start = p.Start
		}
		if before(r.End, p.End) {
			r.End = p.End
		}
	}
	return r, line
}

// applyAction applies an offered action. When the file has changed since, it asks the server again at the place to which the line moved,
// because positions in the old text would put the edit in the wrong place. It asks for reading the file again, because the call may name
// only the id.
func (c *lspCall) applyAction(ctx, asking context.Context) (tools.Result, error) {
	o, ok := c.offered.get(c.p.Apply)
	if !ok {
		return tools.Result{}, &tools.Error{Kind: "unknown_action", Message: fmt.Sprintf("There is no action %q; list them with operation codeActions, filePath and line.", c.p.Apply)}
	}
	// The id and the path are of different lists, and either may be the mistake.
	if c.path != "" && c.path != o.action.Path {
		return tools.Result{}, &tools.Error{Kind: "unknown_action", Message: fmt.Sprintf("The action %s was offered for %s, not for %s.", c.p.Apply, c.show(o.action.Path), c.show(c.path))}
	}
	c.path = o.action.Path
	at, err := c.place(c.path)
	if err != nil {
		return tools.Result{}, err
	}
	if err := c.askRead(ctx, c.call, at); err != nil {
		return tools.Result{}, err
	}
	if o.own != nil {
		return c.runRemembering(c.p.Apply, slices.Sorted(maps.Keys(o.own.Files)), func() (tools.Result, error) { return c.applyFix(ctx, o.own) })
	}
	a := o.action
	var paths []string
	// Only to learn which files it changes. An action that is a command has no edits before it runs, and cannot be undone by id.
	if edits, err := c.lsp.ResolveAction(asking, a); err == nil {
		for _, e := range edits {
			if e.Kind == "rename" || e.Kind == "delete" {
				paths = nil // undoAction cannot undo a rename or a deletion
				break
			}
			paths = append(paths, e.Path)
		}
	}
	return c.runRemembering(c.p.Apply, paths, func() (tools.Result, error) { return c.runOffered(ctx, asking, o) })
}

// runRemembering runs an action and records the texts of the paths before and after, so that undoAction can undo it. Without paths (an
// action that renames or deletes) it records nothing.
func (c *lspCall) runRemembering(id string, paths []string, run func() (tools.Result, error)) (tools.Result, error) {
	// The texts before, as the person sees them; the ones after are read once it has run, because the person may have accepted only a part.
	edits := make([]lspbridge.FileEdit, len(paths))
	for i, path := range paths {
		text, ok := c.writer.Present(path)
		edits[i] = lspbridge.FileEdit{Path: path, Kind: "edit", Old: text}
		if !ok {
			edits[i].Kind = "create"
		}
	}
	r, err := run()
	if err != nil || len(edits) == 0 {
		return r, err
	}
	for i := range edits {
		edits[i].New, _ = c.writer.Present(edits[i].Path)
	}
	c.offered.mu.Lock()
	defer c.offered.mu.Unlock()
	if c.offered.done == nil {
		c.offered.done = map[string][]lspbridge.FileEdit{}
	}
	c.offered.done[id] = edits
	return r, nil
}

// undoAction undoes an applied action, while the files are as the action left them. It proposes a change like any other, so the person
// sees it first. It refuses a file that has changed since: the old text would remove what was written after the action.
func (c *lspCall) undoAction(ctx context.Context) (tools.Result, error) {
	c.offered.mu.Lock()
	edits := c.offered.done[c.p.Undo]
	c.offered.mu.Unlock()
	if len(edits) == 0 {
		return tools.Result{}, &tools.Error{Kind: "unknown_action", Message: fmt.Sprintf("The action %q was not run in this session, or cannot be undone; change the files with edit.", c.p.Undo)}
	}
	var back []lspbridge.FileEdit
	for _, e := range edits {
		if now, _ := c.writer.Present(e.Path); now != e.New {
			return tools.Result{}, &tools.Error{Kind: "stale", Message: c.show(e.Path) + " has changed since the action was carried out; change it with edit."}
		}
		switch {
		// The action made the file, so going back removes it.
		case e.Kind == "create":
			back = append(back, lspbridge.FileEdit{Path: e.Path, Kind: "delete", Old: e.New})
		case e.Old != e.New:
			back = append(back, lspbridge.FileEdit{Path: e.Path, Kind: "edit", Old: e.New, New: e.Old})
		}
	}
	c.path = edits[0].Path
	return c.change(ctx, "Undo the last fix", func() ([]lspbridge.FileEdit, error) { return back, nil })
}

// runOffered applies what a server offered. Where the text has changed for which it was offered, it asks for the action again, and also on
// ErrMoved, which means that the server's own document has changed: a check of another proposal may have done that.
func (c *lspCall) runOffered(ctx, asking context.Context, o offeredAction) (tools.Result, error) {
	a := o.action
	var err error
	if now, _ := c.writer.Present(c.path); now != o.text {
		if a, err = c.offeredNow(asking, o, now); err != nil {
			return tools.Result{}, err
		}
	}
	r, err := c.runAction(ctx, a)
	if errors.Is(err, lspbridge.ErrMoved) { // the text is the same, but proposals were checked meanwhile
		now, _ := c.writer.Present(c.path)
		if a, err = c.offeredNow(asking, o, now); err != nil {
			return tools.Result{}, err
		}
		return c.runAction(ctx, a)
	}
	return r, err
}

// organizeImports applies the first action of LSP's CodeActionKind.SourceOrganizeImports that a server offers and has not disabled. Having
// nothing to change is a result, not an error.
func (c *lspCall) organizeImports(ctx, asking context.Context) (tools.Result, error) {
	const kind = "source.organizeImports"
	text, ok := c.writer.Present(c.path)
	if !ok {
		return tools.Result{}, missing(c.path)
	}
	list, err := c.lsp.CodeActions(asking, c.path, lspbridge.Range{End: lspbridge.OffsetPosition(text, len(text))}, []string{kind}, []change.Problem{})
	if err != nil {
		return tools.Result{}, err
	}
	for _, a := range list {
		if a.Disabled == "" {
			return c.runAction(ctx, a)
		}
	}
	title := "Organize imports in " + c.rel(c.path)
	return tools.Result{Title: title, Output: title + ": there is nothing to change.", Metadata: map[string]any{"files": []any{}}}, nil
}

// offeredNow finds the same action in the text as it is now: by its title and server, at the place to which
// its line moved. LSP has no identity of actions, so a title is the best there is.
func (c *lspCall) offeredNow(ctx context.Context, o offeredAction, now string) (lspbridge.Action, error) {
	gone := &tools.Error{Kind: "stale", Message: fmt.Sprintf("%s has changed, and %q is no longer offered there; list the actions again", c.show(c.path), o.action.Title)}
	report := c.Bridge.Diagnostics(ctx, c.path)
	r, about := lspbridge.Range{End: lspbridge.OffsetPosition(now, len(now))}, []change.Problem{}
	// An action for the whole file stays one for the whole file, however long that is now.
	whole := o.rng.Start == (lspbridge.Position{}) && o.rng.End == lspbridge.OffsetPosition(o.text, len(o.text))
	if !whole {
		line, ok := nearestEqualLine(o.text, now, o.rng.Start.Line)
		if !ok {
			return lspbridge.Action{}, gone
		}
		shift := line - o.rng.Start.Line
		r = o.rng
		r.Start.Line, r.End.Line = r.Start.Line+shift, r.End.Line+shift
	}
	// The server wants its present diagnostics, whose positions are right for the text now; those that it was asked about then are recognised
	// by their message.
	for _, d := range report.Items {
		if slices.Contains(o.diags, d.Message) && (whole || d.Line-1 >= r.Start.Line && d.Line-1 <= r.End.Line) {
			about = append(about, d)
		}
	}
	list, err := c.lsp.CodeActions(ctx, c.path, r, o.only, about)
	if err != nil {
		return lspbridge.Action{}, err
	}
	for _, a := range list {
		if a.Title == o.action.Title && a.Kind == o.action.Kind && a.Server == o.action.Server {
			return a, nil
		}
	}
	return lspbridge.Action{}, gone
}

// nearestEqualLine maps a line (from 0) of the old text to the nearest equal line of the new one.
func nearestEqualLine(old, now string, line int) (int, bool) {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	if line >= len(a) {
		return 0, false
	}
	// Outwards from the old number: of several equal lines ("}") the nearest one is most likely the same.
	for d := range max(len(a), len(b)) + 1 {
		for _, at := range []int{line - d, line + d} {
			if at >= 0 && at < len(b) && b[at] == a[line] {
				return at, true
			}
		}
	}
	return 0, false
}
