package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/share"
	"github.com/pillion-dev/pillion/sidecar/slash"
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
	defer survivePipes()()
	p := newWorkplace()
	log, done := p.logger()
	defer done()
	h := &house{editors: editors.NewRegistry(), theirs: editors.NewProblems(), problems: &problemHub{}, log: log}
	h.app = newApp(appOptions{place: p, problems: h.problems.put, asker: h.editors, questions: h.editors, editors: h.editors, theirs: h.theirs, log: log})
	defer h.app.close()
	h.editors.Follow(liveSessions{h.app.runtime, h.app.blobs.Pack})
	h.finder = h.app.finder()
	defer h.finder.Close()
	h.app.mcp.changed = h.settingsChanged
	h.settings = &settingsWatch{app: h.app, changed: h.settingsChanged}
	defer h.settings.close()
	h.settle = time.AfterFunc(startUp, rest)
	defer h.settle.Stop()
	cwd, _ := os.Getwd()
	if c, _ := p.config(cwd); c.Attachable {
		shared = true
	}
	if !shared {
		return h.serve(ctx, conn, "")
	}
	l, err := share.Listen(version, cwd, h.describe)
	if err != nil {
		return err
	}
	defer l.Close()
	log.Info("sharing", "socket", l.Socket())
	return h.host(ctx, conn, l)
}

// survivePipes makes a write to an editor that is gone an error like others: a Go program dies of a broken standard
// output otherwise, and with it what is still to be ended and stored. Ignoring the signal would pass to commands.
func survivePipes() (undo func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// house is what all connections of a sidecar have in common.
type house struct {
	app      *app
	editors  *editors.Registry
	theirs   *editors.Problems
	problems *problemHub
	finder   *mention.Finder
	settings *settingsWatch
	settle   *time.Timer // calls rest
	log      *slog.Logger

	mu      sync.Mutex
	servers []*Server // guarded by mu: those that serve a connection now
}

// settingsChanged tells every editor what is there to be called now.
func (h *house) settingsChanged(cwd string) {
	h.mu.Lock()
	servers := slices.Clone(h.servers)
	h.mu.Unlock()
	for _, s := range servers {
		s.settingsChanged(cwd)
	}
}

// commands are what people can call in a directory; from then on its settings are watched.
func (h *house) commands(cwd string) []slash.Command {
	h.settings.follow(cwd)
	return h.app.commandsOf(cwd)
}

// serve serves one connection; open is the session it was made for, if any.
func (h *house) serve(ctx context.Context, conn io.ReadWriteCloser, open string) error {
	live, leave := h.problems.join()
	defer leave()
	a := h.app
	s := NewServer(ServerOptions{
		Runtime: a.runtime, Conn: conn, Editors: h.editors, Buffers: editors.NewBuffers(a.touched), Live: live, Theirs: h.theirs, Open: open, Version: version, Log: h.log,
		Modes:    a.runtime.Agents,
		Models:   func(cwd string) []models.Choice { return a.models.Choices(ctx, cwd) },
		Commands: h.commands,
		Rested:   func() { h.settle.Reset(resting) },
		Rules:    a.rules, Grants: a.grants, Finder: h.finder, Desk: a.desk, Terminals: a.terminals, MCP: a.mcp.pass, Auth: appAuth{a}, Trust: a.place.editorTrust,
	})
	h.mu.Lock()
	h.servers = append(h.servers, s)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.servers = slices.DeleteFunc(h.servers, func(x *Server) bool { return x == s })
	}()
	return s.Serve(ctx)
}

// host serves the first editor and those that attach. It returns the first one's error when the last has gone.
func (h *house) host(ctx context.Context, conn io.ReadWriteCloser, l *share.Listener) error {
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
		first = h.serve(ctx, conn, "")
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
			h.log.Info("attached", "session", c.Session)
			go func() {
				defer wg.Done()
				if err := h.serve(ctx, c, c.Session); err != nil {
					h.log.Info("attached editor", "err", err)
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
func (h *house) describe() []share.Session {
	var out []share.Session
	for _, s := range h.app.runtime.Live() {
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
