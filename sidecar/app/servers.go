package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// LanguageServers are the managers of language servers, one a worktree and its trust, shared by the sessions there.
type LanguageServers struct {
	app *App

	mu sync.Mutex
	by map[string]*servers // guarded by mu; by worktree root, and whether it is trusted
}

// of is the language servers' manager of a worktree, nil where they are switched off.
func (l *LanguageServers) of(root string, c *config.Config) *servers {
	if l.app.O.NoLSP || c.LSP.Set && !c.LSP.On {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := root
	if c.Trusted() { // a folder may come to be trusted while we run; servers started before stay as they are
		key += "\x00trusted"
	}
	if m := l.by[key]; m != nil {
		return m
	}
	o := lspbridge.Options{Root: root, Servers: ServerConfigs(c), Log: l.app.O.Log, Trusted: c.Trusted(), Bin: lspbridge.CacheBins(l.app.Place.Servers()), Start: guard.Start}
	if l.app.O.Editors != nil {
		o.Buffer = func(path string) (string, bool) {
			b, ok := l.app.O.Editors.AnyBuffer(path)
			return b.Text, ok
		}
		o.Unsaved = l.app.O.Editors.Unsaved
	}
	o.Diagnostics = l.app.O.Problems
	link := &servers{uses: map[string]func(){}}
	o.Notice = func(_, text string) { l.tell(link, agent.NoticeData{Text: text}) }
	o.Missing = func(server, text string) {
		d := agent.NoticeData{Text: text}
		if _, err := lspbridge.PlanInstall(server, l.app.Place.Servers()); err == nil {
			d.Install = server
		}
		l.tell(link, d)
	}
	o.ApplyEdit = func(ctx context.Context, server, label string, edits []lspbridge.FileEdit) error {
		return l.applyEdit(ctx, link, server, label, edits)
	}
	link.Manager = lspbridge.New(o)
	l.by[key] = link
	return link
}

// Touched says to the language servers that a buffer has changed, so that what is told of its problems follows.
func (l *LanguageServers) Touched(path string) {
	for _, s := range l.all() {
		s.Touched(path)
	}
}

func ServerConfigs(c *config.Config) map[string]lspbridge.ServerConfig {
	out := map[string]lspbridge.ServerConfig{}
	for id, s := range c.LSP.By {
		out[id] = lspbridge.ServerConfig{Command: s.Command, Extensions: s.Extensions, Env: s.Env, Initialization: json.RawMessage(s.Initialization), Settings: json.RawMessage(s.Settings),
			Roots: s.Roots, Share: s.Share, Disabled: s.Disabled,
			Reason: c.Reason("lsp."+id+".command", "lsp."+id+".env", "lsp."+id+".initialization", "lsp."+id+".settings")}
	}
	return out
}

// Problems is what is still wrong in a project, for the end of a turn. ok is false when no server has been asked.
func (l *LanguageServers) Problems(ctx context.Context, cwd string) (left []change.Problem, ok bool) {
	m := l.of(paths.Worktree(cwd), l.app.ConfigOf(cwd))
	left = []change.Problem{}
	if m == nil || !m.Running() { // what was not needed for the turn is not started for its last line
		return left, false
	}
	for _, f := range m.ProjectDiagnostics(ctx) {
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
	return left, ok
}

func (l *LanguageServers) all() []*servers {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.by))
}

// release lets go of every server that a session used.
func (l *LanguageServers) release(session string) {
	for _, s := range l.all() {
		s.release(session)
	}
}

// close ends them all, each in a goroutine of wait.
func (l *LanguageServers) close(ctx context.Context, wait *sync.WaitGroup) {
	l.mu.Lock()
	all := l.by
	l.by = map[string]*servers{}
	l.mu.Unlock()
	for _, s := range all {
		wait.Go(func() { s.Close(ctx) })
	}
}

// servers is a worktree's language servers and the sessions that use them: what the servers have to say of their own
// accord reaches a person through one of these.
type servers struct {
	*lspbridge.Manager

	mu     sync.Mutex // guards what follows
	uses   map[string]func()
	unheld []agent.NoticeData // notices from before the first session
}

// errNobody: there is no session that could ask.
var errNobody = errors.New("this needs approval, but no session is open for this project; nothing was changed")

// hold keeps the servers for a session. What was to be told before there was one is told now.
func (s *servers) hold(session string) (before []agent.NoticeData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses[session] == nil {
		s.uses[session] = s.Use()
	}
	before, s.unheld = s.unheld, nil
	return before
}

// release lets go of them; with their last session they end soon.
func (s *servers) release(session string) {
	s.mu.Lock()
	done := s.uses[session]
	delete(s.uses, session)
	s.mu.Unlock()
	if done != nil {
		done()
	}
}

func (s *servers) sessions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.uses))
	for id := range s.uses {
		out = append(out, id)
	}
	return out
}

// maxUnheld bounds what waits for a first session.
const maxUnheld = 20

// tell shows a person what became of a server: in every session that uses it.
func (l *LanguageServers) tell(s *servers, d agent.NoticeData) {
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
	if len(s.unheld) < maxUnheld {
		s.unheld = append(s.unheld, d)
	}
}

// applyEdit takes an edit that a server asks for of its own accord to the person, in the session that was busy last.
func (l *LanguageServers) applyEdit(ctx context.Context, s *servers, server, label string, edits []lspbridge.FileEdit) error {
	var best *agent.Session
	for _, id := range s.sessions() {
		session, ok := l.app.Runtime.Session(id)
		if ok && (best == nil || session.Info().Updated.After(best.Info().Updated)) {
			best = session
		}
	}
	if best == nil {
		return errNobody
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
