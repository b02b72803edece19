package builtin

import (
	"context"
	"errors"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// A command that only reads runs without a question. That it only reads is what an analysis says, which can be wrong; so
// it runs contained, where it cannot do more than read. Where the system cannot contain commands, fewer run unasked.

// readOnlyPrograms have no option that writes a file, runs a program or connects, although their records do not list every
// option (Complete): whatever the analysis makes of their arguments, they read. Programs with a language of their own (sed,
// awk, jq, find, git) are not among them. It counts only where the system cannot contain commands. A program whose record
// becomes complete leaves the list; a test says so.
var readOnlyPrograms = map[string]bool{
	":": true, "test": true, "[": true, "rev": true, "fold": true, "expand": true, "paste": true, "join": true, "cmp": true, "diff": true, "stat": true, "du": true,
	"df": true, "md5sum": true, "sha1sum": true, "sha256sum": true, "sha512sum": true, "cksum": true, "groups": true, "sleep": true, "which": true,
}

// containable reports whether this system can contain commands, and why not.
func (e commands) containable() (ok bool, why string) {
	if e.Shell.Containable != nil {
		return e.Shell.Containable()
	}
	return sandbox.CanContain()
}

// unasked reports whether a call that only reads may run without a question on this system: contained,
// or with a program whose record names all of its options.
func (e commands) unasked(c scan.Call) bool {
	if !c.ReadOnly {
		return false
	}
	ok, _ := e.containable()
	return ok || c.Complete || readOnlyPrograms[c.Program]
}

// contained is the containment of a command that only reads and that no person was asked about; nil: it
// runs without one. A command that a person has seen and allowed runs as they expect, uncontained.
func (e commands) contained(ctx context.Context, call *tools.Call, a *scan.Analysis, p bashParams, dir string, asked bool) *sandbox.ContainOptions {
	if asked || !a.ReadOnly || p.unsandboxed {
		return nil
	}
	if ok, _ := e.containable(); !ok {
		return nil
	}
	quiet, rules := e.quiet(call.Host.Gate)
	return &sandbox.ContainOptions{
		Root: e.root(), Dir: dir, Extra: append([]string{e.Cwd}, e.Extra...), Read: []string{e.spillDir()}, Home: e.Home,
		Hidden: e.hidden(ctx, call.Host.Gate, call.SessionID), Quiet: quiet, Rules: rules, Files: e.Shell.Hidden,
	}
}

// unread is what a command may not read that no person was asked about; nil: it may read everything. A command that a person has
// seen and allowed reads what it names.
func (e commands) unread(ctx context.Context, call *tools.Call, asked bool) *sandbox.HiddenOptions {
	if asked {
		return nil
	}
	quiet, rules := e.quiet(call.Host.Gate)
	return &sandbox.HiddenOptions{Hidden: e.hidden(ctx, call.Host.Gate, call.SessionID), Quiet: quiet, Rules: rules, Files: e.Shell.Hidden, State: e.StateDir}
}

// askUncontained asks whether to run a command again without containment, after it failed at a place that containment hides. The rules
// judge it like any other command: ReadOnly and "always" are removed from the request, because "it only reads" has just proved wrong.
func (e commands) askUncontained(ctx context.Context, call *tools.Call, a *scan.Analysis, p bashParams, dir, place string) (bool, error) {
	r := e.callsRequest(a)
	r.ReadOnly, r.Always = nil, nil
	r.Title = "Run again with access to " + visible.Text(place) + ": " + visible.Text(p.Command)
	r.Why = "commands that run without a question are contained: they read the project and the system only, and this one failed at " + place
	if r.Metadata == nil {
		r.Metadata = map[string]any{}
	}
	r.Metadata["command"], r.Metadata["workdir"], r.Metadata["contained"] = p.Command, dir, place
	_, err := askReply(ctx, call, r)
	if errors.Is(err, permission.ErrRejected) || errors.Is(err, permission.ErrDenied) {
		return false, nil // the first run's result stands
	}
	return err == nil, err
}

// keptNote tells the model that the failure is containment's, so that it does not debug its command.
func keptNote(place string) string {
	return "This command ran contained because it needed no approval: it could only read the project and the system, and failed at " + place + ". The user was asked whether it may read more and did not agree."
}
