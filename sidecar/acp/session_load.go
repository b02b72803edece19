package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
)

// SameDir reports whether two paths name one directory, links followed. A session stays usable after its directory was
// moved: a stored directory a that is gone counts as b, the one the person is in.
func SameDir(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return true // it has gone: where the person is now will do
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// loadSession replays the session as updates before it answers.
func (o *openings) loadSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.LoadSessionRequest](r)
	if err != nil {
		return nil, err
	}
	w := o.opening(p.SessionID)
	defer w.done()
	r.Async()
	note := o.trust(p.Cwd, editors.TrustIn(p.Meta), "")
	es, had, err := w.open(ctx, p.Cwd, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	replay := es.view
	if had {
		replay = newView(es) // what was shown before does not count: the editor starts over
	}
	err = es.replay(ctx, replay)
	if !had {
		err = w.settle(err)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s cannot be replayed: %w", p.SessionID, err)
	}
	modes, options := o.opened(r, es, p.Cwd, p.MCPServers, note, !had)
	return &protocol.LoadSessionResponse{Modes: modes, ConfigOptions: options}, nil
}

// opened ends the opening of a stored session, with or without its past: what the editor passed along is taken over,
// and what it must know follows the answer.
func (o *openings) opened(r *rpc.Request, es *editorSession, cwd string, servers []protocol.MCPServer, note string, first bool) (*protocol.SessionModeState, []protocol.SessionConfigOption) {
	note = joinNotes(o.passMCP(cwd, servers), note)
	o.wire.afterAnswer(r, func() { go o.arrived(es, note, first) })
	info := es.Info()
	return o.choices.modes(info), o.choices.configOptions(info)
}

// arrived is what follows the answer that opened a stored session: what the editor must know, and what waits for the
// person. opened: this connection did not have the session before.
func (o *openings) arrived(es *editorSession, note string, opened bool) {
	es.welcome(note)
	o.registry.Offer(es.ID(), o.editor)
	if opened && o.registry.Readers(es.ID()) == 1 {
		again := review.NewReopener(o.rt, es.reviewer(), es.view)
		es.mu.Lock()
		es.again = again
		es.mu.Unlock()
		again.Ask(o.ctx)
	}
}

// resumeSession opens a session without replaying it.
func (o *openings) resumeSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.ResumeSessionRequest](r)
	if err != nil {
		return nil, err
	}
	w := o.opening(p.SessionID)
	defer w.done()
	r.Async()
	note := o.trust(p.Cwd, editors.TrustIn(p.Meta), "")
	es, had, err := w.open(ctx, p.Cwd, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	if !had {
		if err := w.settle(es.remember(ctx)); err != nil {
			return nil, fmt.Errorf("session %s cannot be resumed: %w", p.SessionID, err)
		}
	}
	modes, options := o.opened(r, es, p.Cwd, p.MCPServers, note, !had)
	return &protocol.ResumeSessionResponse{Modes: modes, ConfigOptions: options}, nil
}

// remember takes in what has happened without showing it, and follows the session from there on. Only what a view keeps
// is read; calls and answers, most of a session, are not.
func (es *editorSession) remember(ctx context.Context) error {
	last := es.Last()
	kept := []agent.EventType{agent.EventSession, agent.EventPrompt, agent.EventRestore, agent.EventReview, agent.EventChange}
	err := es.EventsOf(ctx, 0, kept, func(e agent.Event) error {
		if e.Seq <= last { // what comes meanwhile is followed
			es.view.remember(e)
		}
		return ctx.Err()
	})
	if err == nil {
		es.subscribe(last, false)
	}
	return err
}

// pageSize is how many sessions one answer of session/list carries.
const pageSize = 100

// errFound ends a scan of events early.
var errFound = errors.New("found")

// hasPrompt reports whether a session has anything to come back to: a prompt, or the title that a person gave it.
// Editors make a session for every window and panel that they open; those that nobody used would fill the list. A
// session that cannot be read counts as used, so that an error hides nothing.
func (o *openings) hasPrompt(ctx context.Context, info agent.SessionInfo) bool {
	if info.Title != "" { // the first prompt gives it too, so that most sessions need no look at their events
		return true
	}
	return o.rt.StoredOf(ctx, info.ID, 0, []agent.EventType{agent.EventPrompt}, func(agent.Event) error { return errFound }) != nil
}

// listSessions answers session/list with the sessions of a directory ("" is all), those used last first. Sub-agents'
// sessions and those without a prompt are not listed; both can still be loaded by their id.
func (o *openings) listSessions(ctx context.Context, p *protocol.ListSessionsRequest) (*protocol.ListSessionsResponse, error) {
	if p.Cwd != "" && !filepath.IsAbs(p.Cwd) {
		return nil, rpc.InvalidParams("cwd: %q is not an absolute path", p.Cwd)
	}
	all, err := o.rt.List(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i agent.SessionInfo) bool { return i.Parent != "" }) // sub-agents' belong to theirs
	start := 0
	if p.Cursor != "" {
		// The cursor is the id of the last session shown: sessions that come meanwhile shift nothing.
		i := slices.IndexFunc(all, func(i agent.SessionInfo) bool { return i.ID == p.Cursor })
		if i < 0 {
			return nil, rpc.InvalidParams("cursor: unknown cursor %q; start again without one", p.Cursor)
		}
		start = i + 1
	}
	out := &protocol.ListSessionsResponse{Sessions: []protocol.SessionInfo{}}
	for _, info := range all[start:] {
		if !o.hasPrompt(ctx, info) {
			continue
		}
		if n := len(out.Sessions); n == pageSize {
			out.NextCursor = out.Sessions[n-1].SessionID
			break
		}
		one := protocol.SessionInfo{
			SessionID: info.ID, Cwd: info.Cwd, AdditionalDirectories: info.Extra, Title: info.Title, UpdatedAt: info.Updated.UTC().Format(time.RFC3339),
		}
		if info.Diff != nil {
			one.Meta = map[string]any{"pillion": map[string]any{"diff": info.Diff}}
		}
		out.Sessions = append(out.Sessions, one)
	}
	return out, nil
}

// trust passes the editor's word on, the session's before that of initialize, and adds to the note what the person
// must know.
func (o *openings) trust(cwd string, said *bool, note string) string {
	if checkDir("cwd", cwd) != nil {
		return note
	}
	if said == nil {
		said = o.editor.Client().Trusted
	}
	return joinNotes(note, o.folders.Trust(cwd, said))
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
