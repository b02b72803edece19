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

// editorSession is a session as one editor has it open. Several connections may have one agent.Session open, each
// with a value of its own.
type editorSession struct {
	*agent.Session
	*conn
	*sessionServices
	ready chan struct{} // closed when Session is there, or err says why not
	err   error         // set before ready is closed

	view *view // what the editor has been shown; owned by the session's event sink

	mu         sync.Mutex
	order      chan struct{}                  // the last request that must keep its place (settings, queue, prompts): closed when it has it; guarded by mu
	turns      chan struct{}                  // the last prompt: closed when it is answered; guarded by mu
	prompts    map[*context.CancelFunc]string // prompts running or queued, with their message id once they have one; guarded by mu
	stop       func()                         // ends the subscription; guarded by mu
	announced  bool                           // the slash commands have been sent; guarded by mu
	own        map[string]bool                // message ids of this connection's prompts, until they are shown; guarded by mu
	reopener   *review.Reopener               // asks again for approvals that were open when the session was cut off; guarded by mu; nil: not yet
	unwatch    func()                         // ends the watch on the session's state; guarded by mu
	stateDirty bool                           // the state may have changed since it was sent; guarded by mu
	sending    bool                           // sendState runs; guarded by mu
	sent       struct{ queue, status string } // what was sent last; owned by sendState

	commandsMu sync.Mutex                  // held while the slash commands are sent: an older list must not follow a newer one
	commands   []protocol.AvailableCommand // guarded by commandsMu: what the editor knows
}

// closedChan is a wait that is over. Chains of waits begin with it, so that the first link needs no special case.
func closedChan() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// checkDir checks that a directory of a request exists and can be read. It fails with InvalidParams, naming the
// parameter. A directory that cannot be listed would fail later, in the middle of a turn and with another error.
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
	// Stat succeeds without the permission to read the directory.
	d, err := os.Open(dir)
	if err != nil {
		return rpc.InvalidParams("%s: %s cannot be read: permission denied", name, dir)
	}
	return d.Close()
}

// checkDirs is checkDir for cwd and the additional directories.
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
	// Trusted is the editor's decision about the folder (workspace trust). Without it the stored decision counts.
	Trusted *bool `json:"trusted,omitempty"`
}

// newSession answers session/new: with a new session, or for `pillion attach` with the live one that was asked for.
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
	// Attaching counts for the first session/new only: an editor that opens another session means a fresh one.
	if id := o.attached.take(); id != "" {
		return o.attach(ctx, r, id)
	}
	note := o.passMCP(p.Cwd, p.MCPServers)
	// Trust is decided before the session starts: it decides which settings of the folder the session gets.
	note = o.trust(p.Cwd, choice.Trusted, note)
	live, err := o.rt.NewSession(ctx, agent.SessionOptions{
		Cwd: filepath.Clean(p.Cwd), Extra: p.AdditionalDirectories,
		Agent: choice.Agent, Model: choice.Model, Effort: choice.Effort, Title: choice.Title,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start a session: %w", err)
	}
	es := o.newEditorSession()
	es.Session = live
	close(es.ready)
	o.sessions.add(live.ID(), es)
	// The editor has disconnected while the session was made; nothing else would close it.
	if !o.registry.Bind(live.ID(), o.editor) {
		live.Close(ctx)
		return nil, errEditorGone
	}
	es.subscribe(0, true)
	// Updates must follow the answer: before it the editor does not know the session's id.
	o.wire.afterAnswer(r, func() { go es.sendInitial(note) })
	info := live.Info()
	return &protocol.NewSessionResponse{SessionID: live.ID(), Modes: o.choices.modes(info), ConfigOptions: o.choices.configOptions(info)}, nil
}

// passMCP passes the editor's MCP servers on. What cannot be used becomes a notice and no error: the session works
// without it.
func (o *openings) passMCP(cwd string, servers []protocol.MCPServer) string {
	if len(servers) == 0 {
		return ""
	}
	if err := o.folders.PassMCP(cwd, servers); err != nil {
		return "MCP servers: " + err.Error()
	}
	return ""
}

// sendInitial sends, once, what could not be part of the answer that opened the session: the slash commands and a
// notice. It is called after the answer and again before the first prompt, since afterAnswer may never run.
func (es *editorSession) sendInitial(note string) {
	es.mu.Lock()
	done := es.announced
	es.announced = true
	es.mu.Unlock()
	if done {
		return
	}
	es.sendCommands()
	if note != "" {
		es.view.notice("warning", note)
	}
}

// sendCommands sends the slash commands, if they differ from what the editor knows.
func (es *editorSession) sendCommands() {
	es.commandsMu.Lock()
	defer es.commandsMu.Unlock()
	cmds := es.input.commands.of(es.Info().Cwd)
	list := make([]protocol.AvailableCommand, len(cmds))
	for i, c := range cmds {
		list[i] = protocol.AvailableCommand{Name: c.Name, Description: c.Description}
		if c.Hint != "" {
			list[i].Input = &protocol.AvailableCommandInput{Hint: c.Hint}
		}
	}
	// A command that is not Pillion's goes to an agent of another maker as a prompt, and that agent runs it.
	_, own := es.choices.folders.AgentMenu(es.Info())
	for _, c := range own {
		if !slices.ContainsFunc(list, func(x protocol.AvailableCommand) bool { return x.Name == c.Name }) {
			list = append(list, c)
		}
	}
	same := slices.EqualFunc(list, es.commands, func(a, b protocol.AvailableCommand) bool { return a.Name == b.Name && a.Description == b.Description })
	es.commands = list
	if !same {
		es.send("available_commands_update", &protocol.AvailableCommandsUpdate{AvailableCommands: list})
	}
}

// send sends an update that belongs to no event.
func (es *editorSession) send(kind string, value any) { es.sendWith(kind, value, nil) }

// sendWith is send with _meta.pillion. An error means that the connection has ended.
func (es *editorSession) sendWith(kind string, value any, meta *protocol.UpdateMeta) {
	_ = es.wire.update(es.ctx, es.ID(), protocol.SessionUpdate{SessionUpdate: kind, Value: value}, meta)
}

// subscribe shows every event after from, as it happens. fresh means that the session is new: none of its events is a
// replay. The watch on queue and status begins with it, and one state is sent at once.
func (es *editorSession) subscribe(from int64, fresh bool) {
	stop := es.Session.Subscribe(from, func(e agent.Event) { es.view.show(e, !fresh && e.Seq <= from) })
	es.mu.Lock()
	es.stop = stop
	es.unwatch = es.Session.Watch(es.stateChanged)
	es.mu.Unlock()
	es.stateChanged()
}

// reviewer decides about the session's changes after they were written.
func (es *editorSession) reviewer() *review.Reviewer {
	return es.desk.Reviewer(es.Session, es.view.ledger)
}
