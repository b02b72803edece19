package acp

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
	*conn
	*shared
	ready chan struct{} // closed when Session is there, or err says why not
	err   error         // set before ready is closed

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

func (o *openings) newSession(ctx context.Context, r *rpc.Request) (any, error) {
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
	if id := o.attached.take(); id != "" {
		return o.attach(ctx, r, id)
	}
	note := o.passMCP(p.Cwd, p.MCPServers)
	note = o.trust(p.Cwd, choice.Trusted, note)
	live, err := o.rt.NewSession(ctx, agent.SessionOptions{
		Cwd: filepath.Clean(p.Cwd), Extra: p.AdditionalDirectories,
		Agent: choice.Agent, Model: choice.Model, Effort: choice.Effort, Title: choice.Title,
	})
	if err != nil {
		return nil, fmt.Errorf("the session could not start: %w", err)
	}
	es := o.newEditorSession()
	es.Session = live
	close(es.ready)
	o.sessions.add(live.ID(), es)
	if !o.registry.Bind(live.ID(), o.editor) {
		live.Close(ctx)
		return nil, errGone
	}
	es.subscribe(0, true)
	o.wire.afterAnswer(r, func() { go es.welcome(note) })
	info := live.Info()
	return &protocol.NewSessionResponse{SessionID: live.ID(), Modes: o.choices.modes(info), ConfigOptions: o.choices.configOptions(info)}, nil
}

// passMCP hands the editor's MCP servers on; what cannot be used becomes a note to the person.
func (o *openings) passMCP(cwd string, servers []protocol.MCPServer) string {
	if len(servers) == 0 {
		return ""
	}
	if err := o.folders.PassMCP(cwd, servers); err != nil {
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
	cmds := es.slash.of(es.Info().Cwd)
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
	_ = es.wire.update(es.ctx, es.ID(), protocol.SessionUpdate{SessionUpdate: kind, Value: value}, meta)
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

// reviewer decides about the session's changes after the fact.
func (es *editorSession) reviewer() *review.Reviewer {
	return es.desk.Reviewer(es.Session, es.view.ledger)
}
