package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// slot is the place of one server for one root over its restarts.
type slot struct {
	m    *Manager
	spec Server
	root string

	mu      sync.Mutex // guards what follows
	changed chan struct{}
	state   slotState
	cur     *client
	err     error // why there is none, for a person
	ran     bool  // it has been initialised at least once
	crashes []time.Time
	used    time.Time
	idle    *time.Timer
	abort   func()        // ends a start that is under way
	started chan struct{} // closed when the start under way has come to its end
	run     int           // counts starts, so that an old run's end is told from the present one's
	program string        // what was started last, as it lay on disk; "" when none was found
	looked  time.Time     // when it was looked for last while off
	objects bool          // a run before asked for settings that there are none of, and ended: null may have killed it
}

type slotState int

const (
	absent   slotState = iota
	starting           // being started and initialised
	running
	waiting // crashed, to be started again
	off     // not found, or crashed too often
)

// A server that crashes is started again after longer and longer waits; too many crashes turn it off.
const (
	initTimeout  = 30 * time.Second
	lookAgain    = time.Second // between looks for a program that was missing or broken
	maxCrashes   = 5
	maxStarts    = 2 // of a server that was never initialised: waiting does not cure a broken command
	crashWindow  = 10 * time.Minute
	firstBackoff = 500 * time.Millisecond
)

// ErrUnavailable: the language server for the file is not installed, or is off.
var ErrUnavailable = errors.New("the language server is not available")

// unavailable is an error that waiting does not cure.
type unavailable struct{ error }

// Is lets errors.Is find ErrUnavailable.
func (unavailable) Is(target error) bool { return target == ErrUnavailable }

func (s *slot) name() string { return s.spec.ID }

// get is the running client, started if need be. It waits as long as ctx.
func (s *slot) get(ctx context.Context) (*client, error) {
	s.start()
	for {
		s.mu.Lock()
		state, c, err, ch := s.state, s.cur, s.err, s.changed
		s.used = time.Now()
		s.mu.Unlock()
		switch state {
		case running:
			select {
			case <-c.gone: // it is just being noticed
			default:
				return c, nil
			}
		case off:
			return nil, unavailable{err}
		case absent:
			return nil, unavailable{errors.New(s.name() + " was stopped")}
		}
		select {
		case <-ch:
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("%s is starting", s.name())
			}
			return nil, err
		}
	}
}

// current is the running client without starting one.
func (s *slot) current() *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != running {
		return nil
	}
	return s.cur
}

// set changes the state. s.mu is held.
func (s *slot) set(st slotState, c *client, err error) {
	s.state, s.cur, s.err = st, c, err
	close(s.changed)
	s.changed = make(chan struct{})
}

// revive gives a server that is off another chance when its program has come, or is another one now: somebody has
// installed it meanwhile.
func (s *slot) revive() {
	s.mu.Lock()
	due := s.state == off && s.m.o.Dial == nil && time.Since(s.looked) >= lookAgain
	if due {
		s.looked = time.Now()
	}
	before := s.program
	s.mu.Unlock()
	if !due {
		return
	}
	_, argv, err := s.m.programs.launch(s.spec, s.root)
	if err != nil || fingerprint(argv[0]) == before {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == off {
		s.crashes, s.ran = nil, false
		s.set(absent, nil, nil)
	}
}

// fingerprint tells a program from the one that lay there before.
func fingerprint(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, " ", fi.Size(), " ", fi.ModTime().UnixNano())
}

// start starts the server in the background when it does not run.
func (s *slot) start() {
	s.revive()
	s.m.mu.Lock()
	closed := s.m.closed
	s.m.mu.Unlock()
	if !closed {
		s.m.watchSoon() // looks at the files while the server starts
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed || s.state != absent {
		return
	}
	s.set(starting, nil, nil)
	s.run++
	s.begin(s.run, nil)
}

// begin starts a run in the background. s.mu is held.
func (s *slot) begin(run int, reopen []string) {
	ctx, abort := context.WithTimeout(context.Background(), initTimeout)
	s.abort, s.started = abort, make(chan struct{})
	started := s.started
	go func() {
		c, err := s.launch(ctx)
		abort()
		s.bring(run, reopen, c, err, started)
	}()
}

// bring takes a run over when it has started (or not), and stays with it to its end; reopen are the documents of the
// run before.
func (s *slot) bring(run int, reopen []string, c *client, err error, started chan struct{}) {
	s.mu.Lock()
	if run != s.run || s.state != starting && s.state != waiting { // stopped meanwhile
		s.mu.Unlock()
		if err == nil {
			c.stop(context.Background())
		}
		close(started)
		return
	}
	close(started)
	var gone unavailable
	switch {
	case errors.As(err, &gone):
		s.looked = time.Now()
		s.mu.Unlock()
		s.m.missing(s.spec, gone.error)
		s.giveUp(run, gone.error)
		return
	case err != nil:
		s.mu.Unlock()
		s.crashed(run, err, reopen)
		return
	}
	s.set(running, c, nil)
	s.ran = true
	s.used = time.Now()
	if s.m.o.Idle > 0 && s.idle == nil {
		s.idle = time.AfterFunc(min(s.m.o.Idle, memoryEvery), s.checkIdle)
	}
	s.mu.Unlock()
	go s.m.weigh()
	if len(reopen) > 0 {
		c.sync(reopen)
	}
	<-c.gone
	open := c.docs.paths()
	err = errGone
	if c.proc != nil {
		select {
		case <-c.proc.exited:
			err = c.proc.death()
		case <-time.After(exitWait):
			c.proc.kill() // it closed its pipes and lives on
			<-c.proc.exited
		}
	}
	_ = c.peer.Close()
	s.remember(c)
	s.crashed(run, err, open)
}

// launch starts one run and does the handshake.
func (s *slot) launch(ctx context.Context) (*client, error) {
	if s.m.o.Dial != nil {
		r, w, err := s.m.o.Dial(s.spec, s.root)
		if err != nil {
			return nil, err
		}
		c := s.newClient(s.spec)
		c.connect(r, w, c.handle)
		return c, s.handshake(ctx, c)
	}
	row, argv, err := s.m.programs.launch(s.spec, s.root)
	if err != nil {
		return nil, unavailable{err}
	}
	s.mu.Lock()
	s.program = fingerprint(argv[0])
	s.mu.Unlock()
	proc, err := startProcess(argv, s.root, row.Env, s.m.o.Start)
	if err != nil {
		return nil, err
	}
	c := s.newClient(row)
	c.proc = proc
	c.connect(proc.stdout, proc.stdin, c.handle)
	return c, s.handshake(ctx, c)
}

func (s *slot) newClient(row Server) *client {
	c := newClient(row, s.root, s.m.host(), s.m.log)
	s.mu.Lock()
	c.objects = s.objects
	s.mu.Unlock()
	return c
}

// remember takes from a run that has ended what the next one must know.
func (s *slot) remember(c *client) {
	s.mu.Lock()
	s.objects = s.objects || c.noSettings.Load()
	s.mu.Unlock()
}

func (s *slot) handshake(ctx context.Context, c *client) error {
	err := c.initialize(ctx)
	if err == nil {
		return nil
	}
	s.remember(c)
	garbage := c.garbage()
	if c.proc != nil {
		c.proc.kill()
		<-c.proc.exited
		if errors.Is(err, errGone) {
			err = c.proc.death()
		}
	}
	_ = c.peer.Close()
	switch { // trying again cures neither
	case garbage != "":
		err = unavailable{fmt.Errorf("%s prints %q where a language server speaks its protocol; set lsp.%s.command to one that does", s.name(), garbage, s.spec.ID)}
	case errors.Is(err, context.DeadlineExceeded):
		err = unavailable{fmt.Errorf("%s did not answer within %v of its start; run pillion doctor, or set lsp.%s.command", s.name(), initTimeout, s.spec.ID)}
	}
	return err
}

// giveUp turns a run's server off. The person has been told by then, before anybody is answered: who hears that it is
// off has been told why.
func (s *slot) giveUp(run int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run == s.run && s.state != absent {
		s.set(off, nil, err)
	}
}

// crashed plans the next start, or turns the server off.
func (s *slot) crashed(run int, err error, reopen []string) {
	s.mu.Lock()
	if run != s.run || s.state == absent {
		s.mu.Unlock()
		return // it was stopped on purpose
	}
	now := time.Now()
	recent := s.crashes[:0]
	for _, t := range s.crashes {
		if now.Sub(t) < crashWindow {
			recent = append(recent, t)
		}
	}
	s.crashes = append(recent, now)
	n := len(s.crashes)
	if n >= maxCrashes || n >= maxStarts && !s.ran {
		if s.ran {
			err = fmt.Errorf("%s crashed %d times in %d minutes and is off now: %w", s.name(), n, int(crashWindow.Minutes()), err)
		} else {
			err = fmt.Errorf("%s does not start: %w; run pillion doctor, or set lsp.%s.command", s.name(), err, s.spec.ID)
		}
		s.mu.Unlock()
		s.m.notice(s.name(), err.Error())
		s.giveUp(run, err)
		return
	}
	wait := min(firstBackoff<<(2*(n-1)), 8*time.Second)
	s.set(waiting, nil, fmt.Errorf("%s stopped (%w) and is started again in %v", s.name(), err, wait))
	s.run++
	next := s.run
	s.mu.Unlock()
	s.m.log.Warn("server crashed", "server", s.name(), "err", err, "again", wait)
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if next == s.run && s.state == waiting { // not stopped meanwhile
			s.begin(next, reopen)
		}
	})
}

// checkIdle stops the server when nobody used it for long, or looks again later.
func (s *slot) checkIdle() {
	s.m.weigh()
	s.mu.Lock()
	if s.idle == nil { // stopped meanwhile
		s.mu.Unlock()
		return
	}
	rest := s.m.o.Idle - time.Since(s.used)
	if rest > 0 || s.state != running {
		s.idle.Reset(min(max(rest, time.Second), memoryEvery))
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.stop(context.Background(), "idle")
}

// stop ends the server; the next use starts it again.
func (s *slot) stop(ctx context.Context, why string) {
	s.mu.Lock()
	c, abort, started := s.cur, s.abort, s.started
	s.run++
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	s.set(absent, nil, nil)
	s.mu.Unlock()
	if abort != nil {
		abort()
		<-started
	}
	if c != nil {
		s.m.log.Info("stopping server", "server", s.name(), "why", why)
		c.stop(ctx)
	}
}
