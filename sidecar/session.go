package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
)

// editorSession is a session as one editor has it open.
type editorSession struct {
	*agent.Session
	server *Server
	ready  chan struct{} // closed when Session is there, or err says why not
	err    error         // set before ready is closed

	view *view // what the editor has been shown; owned by the session's event sink

	mu        sync.Mutex
	order     chan struct{}                  // the last request that must keep its place (settings, queue, prompts): closed when it has it; guarded by mu
	turns     chan struct{}                  // the last prompt: closed when it is answered; guarded by mu
	prompts   map[*context.CancelFunc]string // prompts running or queued, with their message id once they have one; guarded by mu
	stop      func()                         // ends the subscription; guarded by mu
	announced bool                           // the slash commands have been sent; guarded by mu
	own       map[string]bool                // message ids of this connection's prompts, until they are shown; guarded by mu
	again     *review.Reopener               // asks again what waited when the session was cut off; guarded by mu; nil: not yet
	unwatch   func()                         // ends the watch on the session's state; guarded by mu
	moved     bool                           // the state may be another than was told; guarded by mu
	telling   bool                           // tell runs; guarded by mu
	told      struct{ queue, status string } // what the editor was told last; owned by tell

	listing  sync.Mutex                  // held while the slash commands are told: an older list never follows a newer one
	commands []protocol.AvailableCommand // guarded by listing: what the editor was told
}

func closedChan() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (s *Server) newEditorSession() *editorSession {
	es := &editorSession{server: s, ready: make(chan struct{}), order: closedChan(), turns: closedChan(), prompts: map[*context.CancelFunc]string{}, own: map[string]bool{}}
	es.view = newView(es)
	return es
}

// find waits for a session that is being opened.
func (s *Server) find(ctx context.Context, id string) (*editorSession, error) {
	_, found := s.seek(id)
	return found(ctx)
}

// seek finds a session as it is now, nil without one; found waits until it has been opened. What the editor asks after
// this, to close the session for one, does not count.
func (s *Server) seek(id string) (es *editorSession, found func(context.Context) (*editorSession, error)) {
	es = s.lookup(id)
	return es, func(ctx context.Context) (*editorSession, error) {
		if es == nil {
			return nil, protocol.NotFound("no session %q on this connection; start one with session/new, or open a stored one with session/load or session/resume", id)
		}
		select {
		case <-es.ready:
			return es, es.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
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
	if tree := p.Meta["pillion"]; tree != nil {
		if err := protocol.Assign(tree, &choice); err != nil {
			return nil, rpc.InvalidParams("_meta.pillion.%v", err)
		}
	}
	if id := s.attachTo(); id != "" {
		return s.attach(ctx, r, id)
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
	if !s.o.Editors.Bind(live.ID(), s.editor) {
		live.Close(ctx)
		return nil, errGone
	}
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
	es.tellCommands()
	if note != "" {
		es.view.notice("warning", note)
	}
}

// tellCommands sends the slash commands where they are others than the editor knows: servers come up, files change.
func (es *editorSession) tellCommands() {
	es.listing.Lock()
	defer es.listing.Unlock()
	cmds := es.server.commands(es.Info().Cwd)
	list := make([]protocol.AvailableCommand, len(cmds))
	for i, c := range cmds {
		list[i] = protocol.AvailableCommand{Name: c.Name, Description: c.Description}
		if c.Hint != "" {
			list[i].Input = &protocol.AvailableCommandInput{Hint: c.Hint}
		}
	}
	same := slices.EqualFunc(list, es.commands, func(a, b protocol.AvailableCommand) bool { return a.Name == b.Name && a.Description == b.Description })
	es.commands = list
	if !same {
		es.send("available_commands_update", &protocol.AvailableCommandsUpdate{AvailableCommands: list})
	}
}

// send sends an update that no event stands behind.
func (es *editorSession) send(kind string, value any) { es.sendWith(kind, value, nil) }

func (es *editorSession) sendWith(kind string, value any, meta *protocol.UpdateMeta) {
	_ = es.server.wire.update(es.server.ctx, es.ID(), protocol.SessionUpdate{SessionUpdate: kind, Value: value}, meta)
}

// subscribe shows every event after from, as it happens. fresh means that no event has been shown yet.
func (es *editorSession) subscribe(from int64, fresh bool) {
	stop := es.Session.Subscribe(from, func(e agent.Event) { es.view.show(e, !fresh && e.Seq <= from) })
	es.mu.Lock()
	es.stop = stop
	es.unwatch = es.Session.Watch(es.poke)
	es.mu.Unlock()
	es.poke()
}

// settingsChanged: what is configured for a directory may be something else now.
func (s *Server) settingsChanged(cwd string) {
	s.mu.Lock()
	var all []*editorSession
	for _, es := range s.sessions {
		all = append(all, es)
	}
	s.mu.Unlock()
	for _, es := range all {
		select {
		case <-es.ready:
		default:
			continue // it reads them when it is opened
		}
		es.mu.Lock()
		known := es.announced // before, its editor has not heard of the session
		es.mu.Unlock()
		if es.err == nil && known && es.Info().Cwd == cwd {
			es.tellCommands()
		}
	}
}
