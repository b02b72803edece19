package acp

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strings"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Ids of the options of a permission request. Their kinds are ACP's closed set, so the scope of "always" is in the
// id.
const (
	optionAllowOnce = "once"
	optionSession   = "always-session"
	optionProject   = "always-project"
	optionAlways    = "always-everywhere"
	optionReject    = "reject"
)

// person is the user of this editor. It implements editors.Person: approval requests and questions are shown in the
// sessions that the editor has open. The registry asks every editor of a session at once, and the first answer
// counts.
type person struct {
	*conn
	sessions *sessionTable
	rt       *agent.Runtime
	// texts keeps the set of an open request, whose long texts the editor fetches by themselves.
	texts *review.Texts
}

// AskPermission implements permission.Asker for one editor. It waits without a limit: it ends with the turn, or with
// the connection. Every failure means no: an error never writes anything.
func (who *person) AskPermission(ctx context.Context, session string, r permission.Request) (permission.Reply, error) {
	set := r.Change
	if err := who.waitUntilShown(ctx, session); err != nil {
		return permission.Reply{}, err
	}
	kid, err := who.waitUntilChildShown(ctx, session, r.SessionID, r.CallID)
	if err != nil {
		return permission.Reply{}, err
	}
	// session is the one that the editor has open; r.SessionID may be that of a sub-agent, which the editor does not
	// know, and is empty where another program asks (editors.Registry.AskForOther).
	request := protocol.RequestPermissionRequest{SessionID: session, ToolCall: who.permissionCall(session, kid, r, set), Options: permissionOptions(r)}
	if c := who.editor.Client(); !c.ShowsHunks() {
		cwd := ""
		if es := who.sessions.lookup(session); es != nil {
			cwd = es.Info().Cwd
		}
		genericCall(&request.ToolCall, r, set, cwd, c.Profile)
		request.Options = genericOptions(r)
		who.showRequest(session, kid, r, request.ToolCall, c.Profile, cwd)
	}
	defer who.texts.Hold(session, set)()
	var answer protocol.RequestPermissionResponse
	if err := who.editor.Call(ctx, protocol.MethodSessionRequestPermission, request, &answer); err != nil {
		if ctx.Err() != nil {
			return permission.Reply{}, ctx.Err()
		}
		if who.ctx.Err() != nil {
			return permission.Reply{}, context.Canceled // the connection has ended, and the turn with it
		}
		// An editor that answers with an error has not asked the person. The turn continues, and the model reads the reason.
		return permission.Reply{}, &permission.RejectedError{Message: "the editor could not ask the user: " + err.Error()}
	}
	selected, ok := answer.Outcome.Value.(*protocol.SelectedPermissionOutcome)
	if !ok && r.SessionID == "" {
		if ctx.Err() != nil || who.ctx.Err() != nil { // withdrawn, or the editor has gone
			return permission.Reply{}, context.Canceled
		}
		// The person has cancelled a turn of this session, which is not the other program's: that goes on without approval.
		return permission.Reply{Kind: permission.Reject, Message: "The user did not approve this.", Asked: true}, nil
	}
	if !ok { // cancelled: nothing is written and the turn ends
		if es := who.sessions.lookup(session); es != nil {
			es.cancelAll()
		}
		select {
		case <-ctx.Done():
		case <-who.ctx.Done():
		}
		return permission.Reply{}, context.Canceled
	}
	// Editors put _meta beside the outcome or into it; the inner one is read last and counts.
	var meta protocol.DecisionMeta
	for _, m := range []map[string]any{answer.Meta, selected.Meta} {
		if tree := m["pillion"]; tree != nil {
			if err := protocol.Assign(tree, &meta); err != nil {
				return permission.Reply{}, fmt.Errorf("the editor's decision is malformed (_meta.pillion.%v); nothing was written", err)
			}
		}
	}
	// The decisions name hunks of a text that is gone. The editor has seen that before the gate could.
	if meta.Stale {
		return permission.Reply{}, &tools.Error{Kind: "stale", Message: "the text changed in the editor while the change was under review; nothing was written. Read it again, then propose the change again"}
	}
	return replyOf(selected.OptionID, meta, set)
}

// showRequest shows a generic client in the conversation what it is about to be asked. Some clients draw the card of
// the tool call and nothing of the request; some print messages and the title alone.
func (who *person) showRequest(session string, kid *view, r permission.Request, call protocol.ToolCallUpdate, p editors.Profile, cwd string) {
	es := who.sessions.lookup(session)
	if es == nil {
		return
	}
	from := es.view
	if kid != nil {
		from = kid
	}
	from.noteAsked(r.CallID, r.Change)
	if p.TitleOnly {
		if text := proposalMessage(r.Change, cwd); text != "" {
			es.send("agent_message_chunk", &protocol.ContentChunk{Content: protocol.TextBlock(text)})
		}
		return
	}
	// A card that is not there cannot be updated. The request shows its own tool call then.
	if _, ok := from.call(r.CallID); ok {
		es.send("tool_call_update", &protocol.ToolCallUpdate{ToolCallID: call.ToolCallID, Title: call.Title, Content: call.Content})
	}
}

// waitUntilShown waits until the editor has been sent everything that happened in a session so far. Otherwise a
// request could arrive before the tool call that it is about, and some editors drop it then. Delivering may wait for
// an editor that does not read, so it runs beside the wait for ctx.
func (who *person) waitUntilShown(ctx context.Context, session string) error {
	es := who.sessions.lookup(session)
	if es == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = es.Events(ctx, math.MaxInt64-1, func(agent.Event) error { return nil }) // Events delivers what is queued before it reads the log; nothing has this number
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replyOf translates the editor's answer for the gate. It fails for options and hunks that were not offered: an
// answer that is not understood must not write. "reject" with some accepted hunks means: write only those.
func replyOf(option string, meta protocol.DecisionMeta, set *change.Set) (permission.Reply, error) {
	reply := permission.Reply{Asked: true, Message: meta.Comment}
	verdict := change.Accept
	switch option {
	case optionAllowOnce:
		reply.Kind = permission.Once
	case optionSession:
		reply.Kind, reply.Scope = permission.Always, permission.ScopeSession
	case optionProject:
		reply.Kind, reply.Scope = permission.Always, permission.ScopeProject
	case optionAlways:
		reply.Kind, reply.Scope = permission.Always, permission.ScopeEverywhere
	case optionReject:
		reply.Kind, verdict = permission.Reject, change.Reject
	default:
		return permission.Reply{}, fmt.Errorf("the editor chose an option that was not offered (%q); nothing was done", option)
	}
	// The option alone decides: the answer of an editor that knows no hunks.
	if len(meta.Hunks) == 0 && meta.Comment == "" || set == nil {
		return reply, nil
	}
	d := change.Decisions{Default: verdict, Hunks: map[string]change.Decision{}, Comment: meta.Comment}
	// Every hunk of the answer must be one that was shown: a decision about another one means that the editor
	// reviewed another text.
	known := map[string]bool{}
	for _, f := range set.Files {
		for _, h := range f.Hunks {
			known[h.ID] = true
		}
	}
	accepted := false
	for id, h := range meta.Hunks {
		if !known[id] {
			return permission.Reply{}, fmt.Errorf("the editor sent a decision on hunk %q, which change %s does not have; nothing was written", id, set.ID)
		}
		x, err := decisionOf(id, h)
		if err != nil {
			return permission.Reply{}, err
		}
		accepted = accepted || x.Kind != change.Reject
		d.Hunks[id] = x
	}
	if reply.Kind == permission.Reject {
		// Nothing is left to write; the comments become the reason that the model reads.
		if !accepted {
			reply.Message = rejection(d)
			return reply, nil
		}
		reply.Kind = permission.Once // some hunks were accepted
	}
	reply.Decisions = &d
	return reply, nil
}

// decisionOf translates an editor's decision about one hunk. newLines are lines without their line ends.
func decisionOf(id string, h protocol.HunkDecision) (change.Decision, error) {
	x := change.Decision{Kind: change.DecisionKind(h.Decision), Comment: h.Comment}
	switch x.Kind {
	case change.Accept, change.Reject:
	case change.Replace:
		if h.NewLines == nil { // [] deletes the hunk; a missing list is a mistake
			return x, fmt.Errorf("the editor's decision on hunk %q is edit, but it has no newLines; nothing was written", id)
		}
		if len(h.NewLines) > 0 {
			x.NewText = strings.Join(h.NewLines, "\n") + "\n"
		}
	default:
		return x, fmt.Errorf("the editor's decision on hunk %q is %q, not accept, reject or edit; nothing was written", id, h.Decision)
	}
	return x, nil
}

// rejection joins the person's comments on a rejected change; the model reads them. The order of the hunks' comments
// is that of a map; each is complete in itself.
func rejection(d change.Decisions) string {
	var parts []string
	if d.Comment != "" {
		parts = append(parts, d.Comment)
	}
	for _, h := range d.Hunks {
		if h.Comment != "" {
			parts = append(parts, h.Comment)
		}
	}
	return strings.Join(parts, "\n")
}

// permissionCall is the tool call of a permission request, complete in itself: some editors show the request and not
// the card of the call. kid is the view of the sub-agent that asks, nil for the session itself.
func (who *person) permissionCall(session string, kid *view, r permission.Request, set *change.Set) protocol.ToolCallUpdate {
	u := protocol.ToolCallUpdate{ToolCallID: r.CallID, Title: r.Title, Name: r.Tool, Kind: permissionKind(r), Status: protocol.ToolCallStatusPending}
	// A request outside of a call, which has no card, gets the id of the request: ACP requires one.
	if u.ToolCallID == "" {
		u.ToolCallID = r.ID
	}
	if u.Title == "" {
		u.Title = strings.TrimSpace(r.Permission + " " + strings.Join(r.Patterns, ", "))
	}
	if es := who.sessions.lookup(session); es != nil {
		from := es.view
		if kid != nil {
			from = kid
		}
		if d, ok := from.call(r.CallID); ok {
			u.Locations = locations(d.Locations)
			if len(d.Input) <= maxUpdate { // as in the card of the call, which is shrunk
				u.RawInput = d.Input
			}
			if d.Kind != "" {
				u.Kind = toolKind(d.Kind)
			}
		}
	}
	// Without a card, the request is all that an editor can show as the input.
	if len(u.RawInput) == 0 {
		u.RawInput = rawJSON(map[string]any{"permission": r.Permission, "patterns": r.Patterns, "metadata": r.Metadata})
	}
	meta := protocol.ToolCallMeta{Permission: r.Permission, Patterns: r.Patterns, Always: r.Always, Why: r.Why}
	if set != nil {
		u.Content = review.Diffs(set)
		u.Locations = nil
		for _, f := range set.Files {
			u.Locations = append(u.Locations, changeLocations(f)...)
		}
		if text := review.VerdictText(set); text != "" {
			u.Content = append(u.Content, protocol.TextOfCall(text))
		}
		meta.ChangeSet, meta.Files, meta.Diagnostics, meta.Evidence = set.ID, review.FileChanges(set), set.Verdict, set.Evidence
	} else if r.Permission == "bash" || r.Permission == "bash_input" {
		u.Content = append(u.Content, protocol.TextOfCall(fenced(commandOf(r))))
	} else if len(r.Patterns) > 0 {
		u.Content = append(u.Content, protocol.TextOfCall(r.Permission+": "+strings.Join(r.Patterns, ", ")))
	}
	if r.Why != "" {
		u.Content = append(u.Content, protocol.TextOfCall("Asked because "+r.Why))
	}
	u.Meta = map[string]any{"pillion": meta}
	return u
}

// changeLocations are the places that an editor opens for a change; lines count from 1. A rename has two; the new
// place has no line, since it does not exist yet.
func changeLocations(f change.File) []protocol.ToolCallLocation {
	at := func(path string, line int) protocol.ToolCallLocation {
		l := protocol.ToolCallLocation{Path: path}
		if line > 0 {
			n := int64(line)
			l.Line = &n
		}
		return l
	}
	line := 0
	if len(f.Hunks) > 0 {
		// OldStart is 0 for an insertion at the start of a file.
		line = max(f.Hunks[0].OldStart, 1)
	}
	out := []protocol.ToolCallLocation{at(f.Path, line)}
	if f.NewPath != "" {
		out = append(out, at(f.NewPath, 0))
	}
	return out
}

// permissionKind is ACP's kind of a tool call, by the permission that it asks for; editors choose an icon by it.
func permissionKind(r permission.Request) protocol.ToolKind {
	switch r.Permission {
	case "edit":
		return protocol.ToolKindEdit
	case "bash", "bash_input":
		return protocol.ToolKindExecute
	case "read", "external_directory", "list":
		return protocol.ToolKindRead
	case "glob", "grep", "codesearch":
		return protocol.ToolKindSearch
	case "webfetch", "websearch":
		return protocol.ToolKindFetch
	case "task", "todowrite", "skill":
		return protocol.ToolKindThink
	}
	return protocol.ToolKindOther
}

// permissionOptions are the options for an editor that knows Pillion. "Every project" is not offered for edits: a
// diff should be read where it is made.
func permissionOptions(r permission.Request) []protocol.PermissionOption {
	out := []protocol.PermissionOption{{OptionID: optionAllowOnce, Name: "Allow", Kind: protocol.PermissionOptionKindAllowOnce}}
	if len(r.Always) > 0 {
		what := remembered(r)
		out = append(out,
			protocol.PermissionOption{OptionID: optionSession, Name: "Always allow " + what + " in this session", Kind: protocol.PermissionOptionKindAllowAlways},
			protocol.PermissionOption{OptionID: optionProject, Name: "Always allow " + what + " in this project", Kind: protocol.PermissionOptionKindAllowAlways})
		if r.Permission != "edit" {
			out = append(out, protocol.PermissionOption{OptionID: optionAlways, Name: "Always allow " + what + " in every project", Kind: protocol.PermissionOptionKindAllowAlways})
		}
	}
	return append(out, protocol.PermissionOption{OptionID: optionReject, Name: "Reject", Kind: protocol.PermissionOptionKindRejectOnce})
}

// encodeBase64 is the encoding of binary data in ACP's content blocks (RFC 4648, with padding).
func encodeBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
