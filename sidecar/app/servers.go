package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// LanguageServers holds the managers of language servers: one for each worktree and its trust, shared by the sessions in it.
type LanguageServers struct {
	app *App

	mu sync.Mutex
	by map[string]*servers // guarded by mu; by worktree root, and whether it is trusted
}

// of returns the manager for a worktree; nil when language servers are turned off. It starts no server. A manager keeps the settings with
// which it was made.
func (l *LanguageServers) of(root string, c *config.Config) *servers {
	if l.app.O.NoLSP || c.LSP.Set && !c.LSP.On {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := root
	if c.Trusted() { // a folder may become trusted while this process runs; its servers must then be restarted without Restraint
		key += "\x00trusted"
	}
	if m := l.by[key]; m != nil {
		return m
	}
	o := l.options(root, c)
	// Servers get unsaved text, as from an editor, so that positions and problems match what the person sees.
	if l.app.O.Editors != nil {
		o.Buffer = func(path string) (string, bool) {
			b, ok := l.app.O.Editors.AnyBuffer(path)
			return b.Text, ok
		}
		o.Unsaved = l.app.O.Editors.Unsaved
	}
	// link is made before its Manager, because the functions below refer to it; servers, which start later, call them.
	o.Diagnostics = l.app.O.Problems
	link := &servers{uses: map[string]func(){}}
	o.Notice = func(_, text string) { l.notify(link, agent.NoticeData{Text: text}) }
	o.Missing = func(server, text string) {
		d := agent.NoticeData{Text: text}
		if _, err := lspbridge.PlanInstall(server, l.app.Place.Servers()); err == nil {
			d.Install = server
		}
		l.notify(link, d)
	}
	o.ApplyEdit = func(ctx context.Context, server, label string, edits []lspbridge.FileEdit) error {
		return l.applyEdit(ctx, link, server, label, edits)
	}
	link.Manager = lspbridge.New(o)
	l.by[key] = link
	return link
}

// options returns the options of every manager, without its connection to editors and sessions.
func (l *LanguageServers) options(root string, c *config.Config) lspbridge.Options {
	return lspbridge.Options{Root: root, Servers: ServerConfigs(c), Log: l.app.O.Log, Trusted: c.Trusted(), Bin: lspbridge.CacheBins(l.app.Place.Servers()), Start: guard.Start, Idle: idleTimeout(c.LSPIdle)}
}

// idleTimeout returns the setting lsp_idle_timeout as lspbridge.Options.Idle.
func idleTimeout(ms *int) time.Duration {
	switch {
	case ms == nil:
		return 0 // lspbridge's default
	case *ms <= 0:
		return -1
	}
	return time.Duration(*ms) * time.Millisecond
}

// Touched tells the language servers that an editor's buffer has changed.
func (l *LanguageServers) Touched(path string) {
	for _, s := range l.all() {
		s.Touched(path)
	}
}

// ServerConfigs returns the settings lsp.<id>. Reason names where each was set: guard checks it when a server starts, and a person reads it
// when an untrusted folder would start a program.
func ServerConfigs(c *config.Config) map[string]lspbridge.ServerConfig {
	out := map[string]lspbridge.ServerConfig{}
	for id, s := range c.LSP.By {
		out[id] = lspbridge.ServerConfig{Command: s.Command, Extensions: s.Extensions, Env: s.Env, Initialization: json.RawMessage(s.Initialization), Settings: json.RawMessage(s.Settings),
			Roots: s.Roots, Share: s.Share, Disabled: s.Disabled,
			Reason: c.Reason("lsp."+id+".command", "lsp."+id+".env", "lsp."+id+".initialization", "lsp."+id+".settings")}
	}
	return out
}

// Problems returns the errors that are left in a project at the end of a turn. ok is false when no server has answered; no server is
// started for this. Pending and unavailable reports do not count: "not checked" must never read as "no problems". So gaps says what was not
// checked, in part or at all: "12 .py files", "typescript checked 200 of 300 files".
func (l *LanguageServers) Problems(ctx context.Context, cwd string) (left []change.Problem, gaps []string, ok bool) {
	m := l.of(paths.Worktree(cwd), l.app.ConfigOf(cwd))
	left = []change.Problem{}
	if m == nil || !m.Running() { // do not start a server that the turn did not need
		return left, nil, false
	}
	for _, f := range m.RunningDiagnostics(ctx) {
		switch gap := cmp.Or(f.Reason, f.Of); {
		case f.Of == "" || f.Certainty == change.Fresh:
		case f.Certainty == change.Partial:
			gaps = append(gaps, gap)
		case !slices.Contains(gaps, f.Of): // of several servers, none may have looked at a file
			gaps = append(gaps, f.Of)
		}
		if f.Certainty != change.Fresh && f.Certainty != change.Partial {
			continue
		}
		ok = true
		for _, p := range f.Items {
			if p.IsError() && paths.Within(cwd, p.Path) {
				left = append(left, p)
			}
		}
	}
	return left, gaps, ok
}

// all returns the managers that exist.
func (l *LanguageServers) all() []*servers {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.by))
}

// release ends a session's use of the servers.
func (l *LanguageServers) release(session string) {
	for _, s := range l.all() {
		s.release(session)
	}
}

// close ends all servers, each in a goroutine of wait.
func (l *LanguageServers) close(ctx context.Context, wait *sync.WaitGroup) {
	l.mu.Lock()
	all := l.by
	l.by = map[string]*servers{}
	l.mu.Unlock()
	for _, s := range all {
		wait.Go(func() { s.Close(ctx) })
	}
}

// servers are a worktree's language servers and the sessions that use them. A message or an edit that a server sends on its own reaches a
// person through one of these sessions. Nothing is called while mu is held.
type servers struct {
	*lspbridge.Manager

	mu          sync.Mutex         // guards what follows
	uses        map[string]func()  // by session id; ends the use by this session
	undelivered []agent.NoticeData // notices from before the first session
}

// errNoSession is the answer to an edit that a server requests while no session is open in which a person could approve it.
var errNoSession = errors.New("this needs approval, but no session is open for this project; nothing was changed")

// use keeps the servers running for a session. It returns the notices from before the first session.
func (s *servers) use(session string) (before []agent.NoticeData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[session] == nil {
		s.uses[session] = s.Use()
	}
	before, s.undelivered = s.undelivered, nil
	return before
}

// release ends a session's use; some time after the last one, the servers stop (lspbridge.Options.Linger).
func (s *servers) release(session string) {
	s.mu.Lock()
	done := s.uses[session]
	delete(s.uses, session)
	s.mu.Unlock()
	if done != nil {
		done()
	}
}

// sessions returns the ids of the sessions that use the servers.
func (s *servers) sessions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.uses))
	for id := range s.uses {
		out = append(out, id)
	}
	return out
}

// maxUndelivered limits the notices that are kept for the first session, because servers can fail in a loop before anybody reads them.
const maxUndelivered = 20

// notify shows a notice in every session that uses the servers, or keeps it for the first one: servers often fail at their start, before a
// session has used them.
func (l *LanguageServers) notify(s *servers, d agent.NoticeData) {
	d.Level = "warning"
	told := false
	for _, id := range s.sessions() {
		if session, ok := l.app.Runtime.Session(id); ok {
			session.Notify(d)
			told = true
		}
	}
	if told {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.undelivered) < maxUndelivered {
		s.undelivered = append(s.undelivered, d)
	}
}

// applyEdit asks for approval of an edit that a server requests on its own (LSP workspace/applyEdit), in the session that was used last,
// and writes it. It is a tool call like others, so it passes the gate and is recorded. The error is the answer to the server.
func (l *LanguageServers) applyEdit(ctx context.Context, s *servers, server, label string, edits []lspbridge.FileEdit) error {
	var best *agent.Session
	for _, id := range s.sessions() {
		session, ok := l.app.Runtime.Session(id)
		if ok && (best == nil || session.Info().Updated.After(best.Info().Updated)) {
			best = session
		}
	}
	if best == nil {
		return errNoSession
	}
	tool, answer := builtin.ServerEdit(l.app.Sessions.Env(best.Info()), server, label, edits)
	data, err := best.ToolBeside(ctx, tool, json.RawMessage(`{}`))
	switch {
	case err != nil:
		return err
	case answer() != nil:
		return answer()
	case data.Status != agent.ToolCompleted:
		return fmt.Errorf("nothing was changed: %s", data.Error)
	}
	return nil
}
