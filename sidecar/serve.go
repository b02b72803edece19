package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/share"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// When memory is returned to the system. An idle sidecar stays open all day beside the editor, so what it does not
// use goes back.
const (
	releaseAfterStart = 250 * time.Millisecond // when an editor's handshake is over and the memory of starting can go
	releaseAfterTurn  = 700 * time.Millisecond // after a turn: when the person reads, and the memory of working can go
)

// releaseMemory returns free heap and the program's clean pages to the system. It forces a garbage collection, so
// it runs when the person reads and not while a turn works.
func releaseMemory() {
	debug.FreeOSMemory()
	dropFilePages()
}

// serveACP serves one editor until it closes the connection. With shared others may attach, and it runs until the
// last of them has left; without, its socket takes only questions of pillion mcp (editor_questions.go). The parts refer
// to each other, so the order of the lines below matters: the host is made first, the app with it, then the host gets
// what the app provides.
func serveACP(ctx context.Context, conn io.ReadWriteCloser, shared bool) error {
	surviveBrokenPipes()
	p := app.NewWorkplace(version)
	log, done := p.Logger()
	defer done()
	x := &service{host: &acp.Host{Editors: editors.NewRegistry(), Problems: &acp.ProblemHub{}, Reported: editors.NewProblems(), Version: version, Log: log}}
	h := x.host
	a := app.New(app.Options{Place: p, Problems: h.Problems.Put, Asker: h.Editors, Questions: h.Editors, Editors: h.Editors, EditorProblems: h.Reported, Log: log})
	x.app = a
	// Deferred calls run in reverse: the finder and the settings watch end before the app that they use.
	defer a.Close()
	a.KeepCatalogue()
	h.Editors.Follow(acp.Sessions(a.Runtime, a.Changes.Blobs.Pack))
	h.Finder = a.Finder()
	defer h.Finder.Close()
	a.MCP.Changed, a.Plugins.Changed, a.External.Changed = h.SettingsChanged, h.SettingsChanged, h.AgentMenuChanged
	settings := &app.SettingsWatch{App: a, Changed: h.SettingsChanged}
	defer settings.Close()
	x.releaseTimer = time.AfterFunc(releaseAfterStart, releaseMemory)
	defer x.releaseTimer.Stop()
	// The fields that methods use are set before the first connection reads a request.
	h.Runtime, h.Desk, h.Grants, h.Auth, h.Listener = a.Runtime, a.Desk, a.Grants, appAuth{a}, x
	h.Project = a
	h.Folders, h.Terminals = folders{ctx, a, settings}, sessionTerminals{a}
	// An untrusted project cannot turn sharing on: the setting is held back there.
	cwd, _ := os.Getwd()
	c, _ := p.Config(cwd)
	shared, err := isShared(c, shared)
	if err != nil {
		return err
	}
	o := share.Options{Version: version, Cwd: cwd, Folder: x.folder}
	if shared {
		o.Sessions = x.describe
	}
	l, err := share.Listen(o)
	switch {
	case err != nil && shared:
		return err
	case err != nil:
		log.Info("pillion mcp cannot ask in this editor", "err", err)
		return x.serve(ctx, conn, "")
	}
	defer l.Close()
	log.Info("sharing", "socket", l.Socket(), "sessions", shared)
	return x.share(ctx, conn, l)
}

// surviveBrokenPipes makes a write to an editor that has ended an ordinary error: by default SIGPIPE on standard
// output ends a Go program, before running turns are stopped and stored. It is never undone, because an answer may
// still be written when the connection is closed. The signal is caught and not ignored: children inherit what is
// ignored, and commands such as `yes | head` rely on SIGPIPE.
func surviveBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// service is a sidecar that serves one or more editors with one app. It implements acp.Listener.
type service struct {
	app          *app.App
	host         *acp.Host
	releaseTimer *time.Timer // calls releaseMemory
}

// Asked implements acp.Listener: the heap may grow for each turn that runs.
func (x *service) Asked() { heapPace.begin() }

// Answered implements acp.Listener: memory is released when the person reads the answer, not while the next turn
// begins.
func (x *service) Answered() {
	heapPace.end()
	x.releaseTimer.Reset(releaseAfterTurn)
}

// folders implements acp.Folders with the app.
type folders struct {
	ctx      context.Context // ends with the sidecar: a listing of models may ask a server
	app      *app.App
	settings *app.SettingsWatch
}

// These methods implement acp.Folders.
func (f folders) Models(cwd string) []models.Choice          { return f.app.Models.Choices(f.ctx, cwd) }
func (f folders) Rules(cwd, agent string) permission.Ruleset { return f.app.Rules(cwd, agent) }
func (f folders) Trust(cwd string, said *bool) (note string) {
	return f.app.Place.EditorTrust(cwd, said)
}
func (f folders) AgentMenu(s agent.SessionInfo) ([]protocol.SessionConfigOption, []protocol.AvailableCommand) {
	return f.app.External.Menu(s)
}
func (f folders) ChooseForAgent(ctx context.Context, s agent.SessionInfo, option, value string) error {
	return f.app.External.Choose(ctx, s, option, value)
}
func (f folders) KeptDraft(s agent.SessionInfo) string { return f.app.Drafts.Kept(s) }
func (f folders) PassMCP(cwd string, list []protocol.MCPServer) error {
	return f.app.MCP.Pass(cwd, list)
}

// Commands implements acp.Folders. A folder whose commands an editor knows must report changes of them, so its
// settings are watched from now on.
func (f folders) Commands(cwd string) []slash.Command {
	f.settings.Follow(cwd)
	return f.app.CommandsOf(cwd)
}

// sessionTerminals implements acp.Terminals with the app: the commands that run in a session.
type sessionTerminals struct{ app *app.App }

func (t sessionTerminals) Terminals(session string) *run.Terminals {
	return t.app.Sessions.Terminals(session)
}

// serve serves one connection. open is the session that an attached editor has asked to join, or "". Each
// connection has its own buffers, since each editor has its own open files.
func (x *service) serve(ctx context.Context, conn io.ReadWriteCloser, open string) error {
	return acp.NewConnection(x.host, conn, editors.NewBuffers(x.app.Servers.Touched), open).Serve(ctx)
}

// isShared reports whether other editors may join: by the flag, or by the setting. Managed settings that say no count against the flag too.
func isShared(c *config.Config, flag bool) (bool, error) {
	if at, managed := c.Managed("attachable"); flag && managed && !c.Attachable {
		return false, fmt.Errorf("--share: the managed settings let no other editor join (attachable is false, %s)", at)
	}
	return flag || c.Attachable, nil
}

// share serves the first editor and those that attach, and returns the first one's error when the last has left. The
// listener is closed before it waits, so that no editor attaches to a sidecar that is ending. A question of another
// program keeps no sidecar running.
func (x *service) share(ctx context.Context, conn io.ReadWriteCloser, l *share.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asking, endQuestions := context.WithCancel(ctx)
	defer endQuestions()
	// mu guards n. A connection is counted before it is served, so empty is closed only when there is none.
	var mu sync.Mutex
	n, empty := 1, make(chan struct{}) // connections; closed when there are none
	leave := func() {
		mu.Lock()
		defer mu.Unlock()
		if n--; n == 0 {
			close(empty)
		}
	}
	var wg sync.WaitGroup
	// Written before the goroutine ends and read after wg.Wait.
	var first error
	wg.Go(func() {
		first = x.serve(ctx, conn, "")
		leave()
	})
	go func() {
		// Accept fails when the listener is closed below; that ends this goroutine.
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			late := n == 0
			if !late {
				wg.Add(1)
				if c.Ask == "" {
					n++
				}
			}
			mu.Unlock()
			if late { // the last editor has left meanwhile; this sidecar is ending
				_ = c.Close()
				return
			}
			if c.Ask != "" {
				go func() {
					defer wg.Done()
					x.answerQuestion(asking, c)
				}()
				continue
			}
			x.host.Log.Info("attached", "session", c.Session)
			go func() {
				defer wg.Done()
				if err := x.serve(ctx, c, c.Session); err != nil {
					x.host.Log.Info("attached editor", "err", err)
				}
				_ = c.Close()
				leave()
			}()
		}
	}()
	// ctx ends with a signal: the connections end by themselves then, and wg waits for them.
	select {
	case <-empty:
	case <-ctx.Done():
	}
	l.Close()
	endQuestions()
	wg.Wait()
	return first
}

// describe lists the open sessions for `pillion attach`; sessions of sub-agents cannot be joined, since only their
// parent talks to them.
func (x *service) describe() []share.Session {
	var out []share.Session
	for _, s := range x.app.Runtime.Live() {
		info := s.Info()
		if info.Parent != "" {
			continue
		}
		state := "idle"
		if st := s.State(); len(st.Waiting) > 0 {
			state = "waiting"
		} else if st.Busy {
			state = "running"
		}
		out = append(out, share.Session{ID: info.ID, Cwd: info.Cwd, Title: info.Title, State: state})
	}
	return out
}
