package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		return true // the directory was moved or deleted
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// stored is what session/load and session/resume say alike.
type stored struct {
	id, cwd string
	extra   []string // additional directories
	meta    map[string]any
	servers []protocol.MCPServer
	shows   bool // the past is shown
}

// openStored opens a stored session for an editor and answers r. past brings the session's events to the editor's view;
// had reports that this connection had the session open already. What the editor passes along is used after that, and what
// it must know besides follows the answer.
func (o *openings) openStored(ctx context.Context, r *rpc.Request, q stored, past func(es *editorSession, had bool) error) (*protocol.SessionModeState, []protocol.SessionConfigOption, error) {
	w := o.opening(q.id)
	w.shows = q.shows
	defer w.done()
	r.Async()
	note := o.trust(q.cwd, editors.TrustIn(q.meta), "")
	es, had, err := w.open(ctx, q.cwd, q.extra)
	if err != nil {
		return nil, nil, err
	}
	err = past(es, had)
	if !had {
		err = w.finish(err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("session %s cannot be opened: %w", q.id, err)
	}
	note = joinNotes(o.passMCP(q.cwd, q.servers), note)
	o.wire.afterAnswer(r, func() { go o.afterOpened(es, note, !had) })
	info := es.Info()
	return o.choices.modes(info), o.choices.configOptions(info), nil
}

// loadSession answers session/load: the session is replayed as updates before the answer.
func (o *openings) loadSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.LoadSessionRequest](r)
	if err != nil {
		return nil, err
	}
	modes, options, err := o.openStored(ctx, r, stored{p.SessionID, p.Cwd, p.AdditionalDirectories, p.Meta, p.MCPServers, true}, func(es *editorSession, had bool) error {
		if had {
			return es.replay(ctx, newView(es)) // the editor starts over: what it was shown before does not count
		}
		return es.replay(ctx, es.view)
	})
	if err != nil {
		return nil, err
	}
	return &protocol.LoadSessionResponse{Modes: modes, ConfigOptions: options}, nil
}

// resumeSession answers session/resume: the editor has kept the conversation, so nothing is replayed.
func (o *openings) resumeSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.ResumeSessionRequest](r)
	if err != nil {
		return nil, err
	}
	modes, options, err := o.openStored(ctx, r, stored{p.SessionID, p.Cwd, p.AdditionalDirectories, p.Meta, p.MCPServers, false}, func(es *editorSession, had bool) error {
		if had {
			return nil
		}
		return es.remember(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &protocol.ResumeSessionResponse{Modes: modes, ConfigOptions: options}, nil
}

// afterOpened runs after the answer that opened a stored session: it sends what the editor must know and offers open
// approval requests. opened means that this connection did not have the session before; the first editor of a session
// asks again for approvals that a crash has cut off.
func (o *openings) afterOpened(es *editorSession, note string, opened bool) {
	if opened {
		note = joinNotes(note, o.folders.KeptDraft(es.Info()))
	}
	es.sendInitial(note)
	// A request that is open in another editor is shown in this one too.
	o.registry.Offer(es.ID(), o.editor)
	// With other editors the session was not cut off, or one of them asks already.
	if opened && o.registry.Readers(es.ID()) == 1 {
		again := review.NewReopener(o.rt, es.reviewer(), es.view)
		es.mu.Lock()
		es.reopener = again
		es.mu.Unlock()
		again.Ask(o.ctx)
	}
}

// remember reads the past without showing it, and then shows later events. Only what a view needs is read; tool calls
// and answers, most of a session, are not.
func (es *editorSession) remember(ctx context.Context) error {
	// Events after this number reach the view through the subscription; taken both ways they would count twice.
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

// pageSize is how many sessions one answer of session/list carries at most; NextCursor says that there are more.
const pageSize = 100

// errFound ends a scan of events early.
var errFound = errors.New("found")

// hasPrompt reports whether a session has anything to come back to: a prompt, or the title that a person gave it.
// Editors make a session for every window and panel that they open; unused ones would fill the list. A
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
	// The cursor is the id of the last session shown: sessions that come meanwhile shift nothing.
	out := &protocol.ListSessionsResponse{Sessions: []protocol.SessionInfo{}}
	for info, err := range o.rt.Each(ctx, p.Cwd, p.Cursor) {
		if errors.Is(err, agent.ErrNoSession) {
			return nil, rpc.InvalidParams("cursor: unknown cursor %q; start again without one", p.Cursor)
		}
		if err != nil {
			return nil, err
		}
		if info.Parent != "" || !o.hasPrompt(ctx, info) { // sub-agents' belong to theirs
			continue
		}
		// The page is full only when another session would follow, so the last page has no cursor.
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

// trust passes on the editor's decision about a folder, that of the session before that of initialize, and adds the
// notice for the person.
func (o *openings) trust(cwd string, said *bool, note string) string {
	// The request fails for this folder anyway; nothing must be stored about it.
	if checkDir("cwd", cwd) != nil {
		return note
	}
	if said == nil {
		said = o.editor.Client().Trusted
	}
	return joinNotes(note, o.folders.Trust(cwd, said))
}

// joinNotes joins notices, one a line.
func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
