package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// editorSession is a session as one editor has it open.
type editorSession struct {
	*agent.Session
	server *Server
	ready  chan struct{} // closed when Session is there, or err says why not
	err    error         // set before ready is closed

	view *view // what the editor has been shown; owned by the session's event sink

	mu        sync.Mutex
	settings  chan struct{}                // the last request that changes a setting: closed when it is done; guarded by mu
	turns     chan struct{}                // the last prompt: closed when it is answered; guarded by mu
	prompts   map[*context.CancelFunc]bool // prompts running or queued; guarded by mu
	stop      func()                       // ends the subscription; guarded by mu
	announced bool                         // the slash commands have been sent; guarded by mu
}

func closedChan() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (s *Server) newEditorSession() *editorSession {
	es := &editorSession{server: s, ready: make(chan struct{}), settings: closedChan(), turns: closedChan(), prompts: map[*context.CancelFunc]bool{}}
	es.view = newView(es)
	return es
}

// find waits for a session that is being opened.
func (s *Server) find(ctx context.Context, id string) (*editorSession, error) {
	es := s.lookup(id)
	if es == nil {
		return nil, errNotFound{fmt.Sprintf("no session %q on this connection; start one with session/new, or open a stored one with session/load or session/resume", id)}
	}
	select {
	case <-es.ready:
		return es, es.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) lookup(id string) *editorSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// checkDir says what is wrong with a directory from the editor, in words a person can act on.
func checkDir(name, dir string) error {
	if dir == "" || !filepath.IsAbs(dir) {
		return rpc.InvalidParams("%s: %q is not an absolute path", name, dir)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return rpc.InvalidParams("%s: %s does not exist", name, dir)
	case errors.Is(err, os.ErrPermission):
		return rpc.InvalidParams("%s: %s cannot be read: permission denied", name, dir)
	case err != nil:
		return rpc.InvalidParams("%s: %v", name, err)
	case !info.IsDir():
		return rpc.InvalidParams("%s: %s is not a directory", name, dir)
	}
	d, err := os.Open(dir)
	if err != nil {
		return rpc.InvalidParams("%s: %s cannot be read: permission denied", name, dir)
	}
	return d.Close()
}

func checkDirs(cwd string, extra []string) error {
	if err := checkDir("cwd", cwd); err != nil {
		return err
	}
	for i, d := range extra {
		if err := checkDir("additionalDirectories["+strconv.Itoa(i)+"]", d); err != nil {
			return err
		}
	}
	return nil
}

// sessionChoice is _meta.pillion of session/new: what to start with instead of the defaults.
type sessionChoice struct {
	Agent  string `json:"agent,omitempty"`
	Model  string `json:"model,omitempty"`
	Effort string `json:"effort,omitempty"`
	Title  string `json:"title,omitempty"`
	// Trusted is the editor's word on the folder (workspace trust); without it what the person stored counts.
	Trusted *bool `json:"trusted,omitempty"`
}

func (s *Server) newSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.NewSessionRequest](r)
	if err != nil {
		return nil, err
	}
	r.Async()
	if err := checkDirs(p.Cwd, p.AdditionalDirectories); err != nil {
		return nil, err
	}
	var choice sessionChoice
	if tree, ok := p.Meta["pillion"]; ok {
		if err := protocol.Assign(tree, &choice); err != nil {
			return nil, rpc.InvalidParams("_meta.pillion.%v", err)
		}
	}
	note := s.passMCP(p.Cwd, p.MCPServers)
	note = s.trust(p.Cwd, choice.Trusted, note)
	live, err := s.o.Runtime.NewSession(ctx, agent.SessionOptions{
		Cwd: filepath.Clean(p.Cwd), Extra: p.AdditionalDirectories,
		Agent: choice.Agent, Model: choice.Model, Effort: choice.Effort, Title: choice.Title,
	})
	if err != nil {
		return nil, fmt.Errorf("the session could not start: %w", err)
	}
	es := s.newEditorSession()
	es.Session = live
	close(es.ready)
	s.mu.Lock()
	s.sessions[live.ID()] = es
	s.mu.Unlock()
	s.o.Editors.bind(live.ID(), s)
	es.subscribe(0, true)
	s.wire.afterAnswer(r, func() { go es.welcome(note) })
	info := live.Info()
	return &protocol.NewSessionResponse{SessionID: live.ID(), Modes: s.modes(info), ConfigOptions: s.configOptions(info)}, nil
}

// passMCP hands the editor's MCP servers on; what cannot be used becomes a note to the person.
func (s *Server) passMCP(cwd string, servers []protocol.MCPServer) string {
	if len(servers) == 0 {
		return ""
	}
	if s.o.MCP == nil {
		return fmt.Sprintf("The editor passed %d MCP servers; this version does not use them.", len(servers))
	}
	if err := s.o.MCP(cwd, servers); err != nil {
		return "MCP servers: " + err.Error()
	}
	return ""
}

// welcome tells the editor once what it could not be told in the answer that made the session.
func (es *editorSession) welcome(note string) {
	es.mu.Lock()
	done := es.announced
	es.announced = true
	es.mu.Unlock()
	if done {
		return
	}
	if cmds := es.server.commands(es.Info().Cwd); len(cmds) > 0 {
		list := make([]protocol.AvailableCommand, len(cmds))
		for i, c := range cmds {
			list[i] = protocol.AvailableCommand{Name: c.Name, Description: c.Description}
			if c.Hint != "" {
				list[i].Input = &protocol.AvailableCommandInput{Hint: c.Hint}
			}
		}
		es.send("available_commands_update", &protocol.AvailableCommandsUpdate{AvailableCommands: list})
	}
	if note != "" {
		es.view.notice("warning", note)
	}
}

func (es *editorSession) send(kind string, value any) {
	_ = es.server.wire.update(es.server.ctx, es.ID(), protocol.SessionUpdate{SessionUpdate: kind, Value: value})
}

// subscribe shows every event after from, as it happens. fresh means that no event has been shown yet.
func (es *editorSession) subscribe(from int64, fresh bool) {
	stop := es.Session.Subscribe(from, func(e agent.Event) { es.view.show(e, !fresh && e.Seq <= from) })
	es.mu.Lock()
	es.stop = stop
	es.mu.Unlock()
}

// open loads a stored session, or takes the one this connection has open already.
func (s *Server) open(ctx context.Context, id, cwd string, extra []string) (*editorSession, bool, error) {
	s.mu.Lock()
	es, had := s.sessions[id]
	if !had {
		es = s.newEditorSession()
		s.sessions[id] = es
	}
	s.mu.Unlock()
	if had {
		es, err := s.find(ctx, id)
		return es, true, err
	}
	fail := func(err error) (*editorSession, bool, error) {
		es.err = err
		s.mu.Lock()
		delete(s.sessions, id)
		s.mu.Unlock()
		close(es.ready)
		return nil, false, err
	}
	if err := checkDirs(cwd, extra); err != nil {
		return fail(err)
	}
	live, err := s.o.Runtime.LoadSession(ctx, id)
	if err != nil {
		return fail(errNotFound{fmt.Sprintf("session %q cannot be opened: %v; session/list shows the stored ones", id, err)})
	}
	if have := live.Info().Cwd; !sameDir(have, cwd) {
		live.Close(ctx)
		return fail(rpc.InvalidParams("cwd: session %s belongs to %s, not to %s", id, have, cwd))
	}
	es.Session = live
	s.o.Editors.bind(id, s)
	return es, false, nil
}

func sameDir(a, b string) bool {
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
func (s *Server) loadSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.LoadSessionRequest](r)
	if err != nil {
		return nil, err
	}
	r.Async()
	note := s.trust(p.Cwd, trustIn(p.Meta), "")
	es, had, err := s.open(ctx, p.SessionID, p.Cwd, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	replay := es.view
	if had {
		replay = newView(es) // what was shown before does not count: the editor starts over
	}
	var last int64
	err = es.Events(ctx, 0, func(e agent.Event) error {
		last = e.Seq
		replay.show(e, true)
		return ctx.Err()
	})
	if !had {
		if err == nil {
			es.subscribe(last, false)
		}
		es.err = err
		close(es.ready)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s cannot be replayed: %w", p.SessionID, err)
	}
	go es.welcome(joinNotes(s.passMCP(p.Cwd, p.MCPServers), note))
	info := es.Info()
	return &protocol.LoadSessionResponse{Modes: s.modes(info), ConfigOptions: s.configOptions(info)}, nil
}

// resumeSession opens a session without replaying it.
func (s *Server) resumeSession(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.ResumeSessionRequest](r)
	if err != nil {
		return nil, err
	}
	r.Async()
	note := s.trust(p.Cwd, trustIn(p.Meta), "")
	es, had, err := s.open(ctx, p.SessionID, p.Cwd, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	if !had {
		var last int64
		err := es.Events(ctx, 0, func(e agent.Event) error {
			last = e.Seq
			es.view.remember(e)
			return ctx.Err()
		})
		if err == nil {
			es.subscribe(last, false)
		}
		es.err = err
		close(es.ready)
		if err != nil {
			return nil, fmt.Errorf("session %s cannot be resumed: %w", p.SessionID, err)
		}
	}
	go es.welcome(joinNotes(s.passMCP(p.Cwd, p.MCPServers), note))
	info := es.Info()
	return &protocol.ResumeSessionResponse{Modes: s.modes(info), ConfigOptions: s.configOptions(info)}, nil
}

// pageSize is how many sessions one answer of session/list carries.
const pageSize = 100

func (s *Server) listSessions(ctx context.Context, p *protocol.ListSessionsRequest) (*protocol.ListSessionsResponse, error) {
	if p.Cwd != "" && !filepath.IsAbs(p.Cwd) {
		return nil, rpc.InvalidParams("cwd: %q is not an absolute path", p.Cwd)
	}
	all, err := s.o.Runtime.List(ctx, p.Cwd)
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
	for i, info := range all[start:] {
		if i == pageSize {
			out.NextCursor = out.Sessions[i-1].SessionID
			break
		}
		out.Sessions = append(out.Sessions, protocol.SessionInfo{
			SessionID: info.ID, Cwd: info.Cwd, AdditionalDirectories: info.Extra, Title: info.Title, UpdatedAt: info.Updated.UTC().Format(time.RFC3339),
		})
	}
	return out, nil
}

// detach takes a session off this connection and ends it.
func (s *Server) detach(ctx context.Context, id string) error {
	es, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.sessions, id)
	s.mu.Unlock()
	s.o.Editors.unbind(id, s)
	return es.end(ctx)
}

func (s *Server) closeSession(ctx context.Context, p *protocol.CloseSessionRequest) (*protocol.CloseSessionResponse, error) {
	if err := s.detach(ctx, p.SessionID); err != nil {
		return nil, err
	}
	return &protocol.CloseSessionResponse{}, nil
}

func (s *Server) deleteSession(ctx context.Context, p *protocol.DeleteSessionRequest) (*protocol.DeleteSessionResponse, error) {
	if s.lookup(p.SessionID) != nil {
		if err := s.detach(ctx, p.SessionID); err != nil {
			return nil, err
		}
	}
	if err := s.o.Runtime.Delete(ctx, p.SessionID); err != nil {
		return nil, errNotFound{fmt.Sprintf("session %q cannot be deleted: %v", p.SessionID, err)}
	}
	return &protocol.DeleteSessionResponse{}, nil
}

// end cancels what runs, waits for it, and closes the session.
func (es *editorSession) end(ctx context.Context) error {
	select {
	case <-es.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if es.Session == nil {
		return nil
	}
	es.cancelAll()
	es.mu.Lock()
	turns := es.turns
	es.mu.Unlock()
	select {
	case <-turns:
	case <-ctx.Done():
	}
	es.Session.Close(ctx)
	es.mu.Lock()
	stop := es.stop
	es.stop = nil
	es.mu.Unlock()
	if stop != nil {
		stop()
	}
	return ctx.Err()
}

// cancelAll ends the running turn and every queued prompt.
func (es *editorSession) cancelAll() {
	es.mu.Lock()
	var cancels []context.CancelFunc
	for c := range es.prompts {
		cancels = append(cancels, *c)
	}
	es.mu.Unlock()
	for _, c := range cancels {
		c()
	}
	es.Session.Cancel()
}

func (s *Server) cancel(p *protocol.CancelNotification) (any, error) {
	es := s.lookup(p.SessionID)
	if es == nil {
		return nil, errNotFound{fmt.Sprintf("session/cancel: no session %q", p.SessionID)}
	}
	select {
	case <-es.ready:
		if es.Session != nil {
			// The prompts that are queued by now are marked here, in order; the rest must not hold up the reader.
			es.mu.Lock()
			for c := range es.prompts {
				(*c)()
			}
			es.mu.Unlock()
			go es.Session.Cancel()
		}
	default:
	}
	return nil, nil
}

// prompt takes its place in the session's queue in the order of the wire, then waits for its turn and its end.
func (s *Server) prompt(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.PromptRequest](r)
	if err != nil {
		return nil, err
	}
	es := s.lookup(p.SessionID)
	if es == nil {
		_, err := s.find(ctx, p.SessionID)
		return nil, err
	}
	parts, err := promptParts(p.Prompt)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	key := &cancel
	mine := make(chan struct{})
	es.mu.Lock()
	before, settings := es.turns, es.settings
	es.turns = mine
	es.prompts[key] = true
	es.mu.Unlock()
	r.Async()
	defer func() {
		es.mu.Lock()
		delete(es.prompts, key)
		es.mu.Unlock()
		go func() { // at once, unless this prompt was cancelled while it waited: those behind it wait on
			<-before
			close(mine)
		}()
	}()
	for _, c := range []chan struct{}{es.ready, settings, before} {
		select {
		case <-c:
		case <-ctx.Done():
			return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
	}
	if es.err != nil {
		return nil, es.err
	}
	es.welcome("")
	parts = es.expandCommand(parts)
	turn, err := es.Session.Prompt(ctx, agent.Prompt{Parts: parts})
	es.view.settle()
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
		return nil, err
	}
	if turn.Stop == agent.TurnError {
		return nil, errors.New(turn.Error)
	}
	return promptResponse(turn), nil
}

func promptResponse(t agent.TurnData) *protocol.PromptResponse {
	return &protocol.PromptResponse{StopReason: protocol.StopReason(t.Stop), Meta: map[string]any{"pillion": map[string]any{
		"usage": t.Usage, "cost": t.Cost, "steps": t.Steps, "error": t.Error,
	}}}
}

// steer puts words into the running turn. Without one the editor is told to send a prompt.
func (s *Server) steer(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.SteeringRequest](r)
	if err != nil {
		return nil, err
	}
	parts, err := promptParts(p.Prompt)
	if err != nil {
		return nil, err
	}
	r.Async()
	es, err := s.find(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	if st, ok := any(es.Session).(steerer); ok {
		injected, err := st.Steer(ctx, agent.Prompt{Parts: parts})
		if err != nil {
			return nil, err
		}
		if injected {
			return &protocol.SteeringResponse{Outcome: "injected"}, nil
		}
	}
	return &protocol.SteeringResponse{Outcome: "promptRequired", Reason: "noRunningTurn"}, nil
}

// steerer is a session that takes words while a turn runs.
type steerer interface {
	Steer(ctx context.Context, p agent.Prompt) (injected bool, err error)
}

// inOrder answers a request that changes a session's settings: one after the other, and before prompts that follow.
func inOrder[P, R any](ctx context.Context, s *Server, r *rpc.Request, id func(*P) string, f func(context.Context, *editorSession, *P) (R, error)) (any, error) {
	p, err := decode[P](r)
	if err != nil {
		return nil, err
	}
	es := s.lookup(id(p))
	if es == nil {
		_, err := s.find(ctx, id(p))
		return nil, err
	}
	mine := make(chan struct{})
	defer close(mine)
	es.mu.Lock()
	before := es.settings
	es.settings = mine
	es.mu.Unlock()
	r.Async()
	<-before
	if _, err := s.find(ctx, id(p)); err != nil {
		return nil, err
	}
	return result(f(ctx, es, p))
}

func (s *Server) setMode(ctx context.Context, es *editorSession, p *protocol.SetSessionModeRequest) (*protocol.SetSessionModeResponse, error) {
	if err := s.setAgent(ctx, es, "modeId", p.ModeID); err != nil {
		return nil, err
	}
	return &protocol.SetSessionModeResponse{}, nil
}

func (s *Server) setAgent(ctx context.Context, es *editorSession, param, name string) error {
	if names := s.modeNames(es.Info().Cwd); len(names) > 0 && !slices.Contains(names, name) {
		return rpc.InvalidParams("%s: unknown mode %q; known are %s", param, name, strings.Join(names, ", "))
	}
	return es.SetAgent(name)
}

func (s *Server) setConfigOption(ctx context.Context, es *editorSession, p *protocol.SetSessionConfigOptionRequest) (*protocol.SetSessionConfigOptionResponse, error) {
	var value string
	if err := json.Unmarshal(p.Value, &value); err != nil {
		return nil, rpc.InvalidParams("value: want one of the option's value ids, a string")
	}
	var err error
	switch p.ConfigID {
	case optionMode:
		err = s.setAgent(ctx, es, "value", value)
	case optionModel:
		if err = s.knownModel(es.Info(), value); err == nil {
			err = es.SetModel(value)
		}
	case optionEffort:
		if value == effortDefault {
			value = ""
		} else if !slices.Contains(s.efforts(es.Info()), value) {
			return nil, rpc.InvalidParams("value: unknown thought level %q", value)
		}
		err = es.SetEffort(value)
	default:
		return nil, rpc.InvalidParams("configId: unknown option %q; known are %s, %s, %s", p.ConfigID, optionMode, optionModel, optionEffort)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.SetSessionConfigOptionResponse{ConfigOptions: s.configOptions(es.Info())}, nil
}
