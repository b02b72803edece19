package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// Reopen returns a tool that proposes a stored change set again. Its session was cut off while the approval request was open; ask is the id
// of that request. Models are not offered the tool. It runs once: it merges the change set with the files as they are now and then calls
// propose like every other change.
//
// The person is always asked: opening a session must not write files, even if a rule allows the edit now.
func Reopen(env Env, set *change.Set, ask string) tools.Tool {
	id := set.Tool
	if id == "" {
		id = "edit"
	}
	return tools.Tool{ID: id, Permission: "edit", Kind: tools.KindEdit, Description: "A change that waited for the user.", Parameters: json.RawMessage(`{"type":"object"}`),
		Run: func(ctx context.Context, _ json.RawMessage, call *tools.Call) (tools.Result, error) {
			return env.changes().reopen(ctx, call, set, ask)
		}}
}

// reopen proposes a change set again, on the files as they are now. Its hunks keep their ids.
func (c changes) reopen(ctx context.Context, call *tools.Call, set *change.Set, ask string) (tools.Result, error) {
	p := proposal{done: "Change applied successfully.", complete: true, again: set, ask: ask,
		confirm: "the session was cut off while this request was open; the files were compared again"}
	for _, f := range set.Files {
		m, err := c.rebased(f)
		if err != nil {
			return tools.Result{}, &tools.Error{Kind: tools.KindOutdated, Message: err.Error(), Err: err}
		}
		places := []place{{path: f.Path, real: m.base.Real}}
		if m.to != nil {
			places = append(places, *m.to)
		}
		if err := c.askOutside(ctx, call, places...); err != nil {
			return tools.Result{}, err
		}
		p.members = append(p.members, m)
	}
	return c.propose(ctx, call, p)
}

// rebased merges a file of a stored change set with the file as it is now. It fails if the file is gone or both changed the same
// lines; the proposal is then outdated.
func (c changes) rebased(f change.File) (member, error) {
	here, err := c.place(f.Path)
	if err != nil {
		return member{}, err
	}
	base, err := c.openPlace(here)
	if err != nil {
		return member{}, err
	}
	m := member{File: f, base: base}
	if f.NewPath != "" {
		to, err := c.place(f.NewPath)
		if err != nil {
			return member{}, err
		}
		m.to = &to
	}
	there := base.Exists || base.Dirty
	switch {
	case f.Kind == change.Create && !there:
		return m, nil
	case !there:
		return member{}, fmt.Errorf("%s is gone", f.Path)
	}
	m.File, err = f.Rebase(base.Text)
	return m, err
}
