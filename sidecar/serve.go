package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/share"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

const (
	startUp = 250 * time.Millisecond // when an editor's handshake is over and the memory of starting can go
	resting = 700 * time.Millisecond // after a turn: when the person reads, and the memory of working can go
)

// rest gives the system what work has left behind: memory that is free, and the program's pages.
func rest() {
	debug.FreeOSMemory()
	giveBack()
}

// serveACP serves one editor until it goes away. With shared others may attach, and it goes on until the last has gone.
func serveACP(ctx context.Context, conn io.ReadWriteCloser, shared bool) error {
	survivePipes()
	p := app.NewWorkplace(version)
	log, done := p.Logger()
	defer done()
	x := &service{host: &acp.Host{Editors: editors.NewRegistry(), Problems: &acp.ProblemHub{}, Reported: editors.NewProblems(), Version: version, Log: log}}
	h := x.host
	a := app.New(app.Options{Place: p, Problems: h.Problems.Put, Asker: h.Editors, Questions: h.Editors, Editors: h.Editors, Theirs: h.Reported, Log: log})
	x.app = a
	defer a.Close()
	h.Editors.Follow(acp.Sessions(a.Runtime, a.Changes.Blobs.Pack))
	h.Finder = a.Finder()
	defer h.Finder.Close()
	a.MCP.Changed = h.SettingsChanged
	settings := &app.SettingsWatch{App: a, Changed: h.SettingsChanged}
	defer settings.Close()
	x.settle = time.AfterFunc(startUp, rest)
	defer x.settle.Stop()
	h.Runtime, h.Desk, h.Grants, h.Auth, h.Listener = a.Runtime, a.Desk, a.Grants, appAuth{a}, x
	h.Folders, h.Terminals = folders{ctx, a, settings}, sessionTerminals{a}
	cwd, _ := os.Getwd()
	if c, _ := p.Config(cwd); c.Attachable {
		shared = true
	}
	if !shared {
		return x.serve(ctx, conn, "")
	}
	l, err := share.Listen(version, cwd, x.describe)
	if err != nil {
		return err
	}
	defer l.Close()
	log.Info("sharing", "socket", l.Socket())
	return x.share(ctx, conn, l)
}

// survivePipes makes a write to an editor that is gone an error like others: a Go program dies of a broken standard
// output otherwise, and with it what is still to be ended and stored. It lasts until the process ends, because an answer
// may still be on its way when the connection has been closed. Ignoring the signal instead would pass to commands.
func survivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// service is a sidecar that serves editors.
type service struct {
	app    *app.App
	host   *acp.Host
	settle *time.Timer // calls rest
}

// Answered implements Listener.
func (x *service) Answered() { x.settle.Reset(resting) }

// folders are the app's, as the connections ask for them.
type folders struct {
	ctx      context.Context // ends with the sidecar: a listing of models may ask a server
	app      *app.App
	settings *app.SettingsWatch
}

func (f folders) Models(cwd string) []models.Choice          { return f.app.Models.Choices(f.ctx, cwd) }
func (f folders) Rules(cwd, agent string) permission.Ruleset { return f.app.Rules(cwd, agent) }
func (f folders) Trust(cwd string, said *bool) (note string) {
	return f.app.Place.EditorTrust(cwd, said)
}
func (f folders) PassMCP(cwd string, list []protocol.MCPServer) error {
	return f.app.MCP.Pass(cwd, list)
}

// Commands implements Folders. From then on the folder's settings are watched.
func (f folders) Commands(cwd string) []slash.Command {
	f.settings.Follow(cwd)
	return f.app.CommandsOf(cwd)
}

// sessionTerminals are the terminals of the app's sessions.
type sessionTerminals struct{ app *app.App }

func (t sessionTerminals) Terminals(session string) *run.Terminals {
	return t.app.Sessions.Terminals(session)
}

// serve serves one connection; open is the session it was made for, if any.
func (x *service) serve(ctx context.Context, conn io.ReadWriteCloser, open string) error {
	return acp.NewConnection(x.host, conn, editors.NewBuffers(x.app.Servers.Touched), open).Serve(ctx)
}

// share serves the first editor and those that attach. It returns the first one's error when the last has gone.
func (x *service) share(ctx context.Context, conn io.ReadWriteCloser, l *share.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
	var first error
	wg.Go(func() {
		first = x.serve(ctx, conn, "")
		leave()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			late := n == 0
			if !late {
				n++
				wg.Add(1)
			}
			mu.Unlock()
			if late { // the last has just gone
				_ = c.Close()
				return
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
	select {
	case <-empty:
	case <-ctx.Done():
	}
	l.Close()
	wg.Wait()
	return first
}

// describe says what sessions are open, to who looks for one.
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
