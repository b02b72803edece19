package lspbridge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// slot manages one server for one root. It outlives the server's runs: it starts the server on demand, restarts it after a crash, and stops
// it when it is idle.
type slot struct {
	fleet *fleet
	// The row as configured; launch may complete it for this root.
	spec Server
	root string

	mu          sync.Mutex    // guards what follows
	changed     chan struct{} // closed and replaced by set, to wake the waiters in get
	state       slotState
	cur         *client       // nil unless running
	err         error         // why there is no client, for a person
	initialized bool          // a run was initialised once, so the command works
	crashes     []time.Time   // times of the crashes within crashWindow
	used        time.Time     // time of the last get
	idle        *time.Timer   // calls checkIdle; nil while no run needs it
	abort       func()        // cancels the running start
	started     chan struct{} // closed when the running start has ended
	run         int           // number of the latest start; the end of an older run must be ignored
	program     string        // fingerprint of the last started program; "" when none was found
	looked      time.Time     // when a missing program was last searched
	objects     bool          // an earlier run ended after it got null for a settings section, which may have crashed it
}

// slotState is the state of a slot. start acts only on absent; a timer ends waiting.
type slotState int

const (
	absent   slotState = iota // not started, or stopped on purpose
	starting                  // being started and initialised
	running
	waiting // crashed; a timer will restart it
	off     // not found, or crashed too often; see revive
)

// Restart policy. A server that crashes is restarted after growing pauses, so that it does not occupy the processor; too many crashes turn
// it off.
const (
	initTimeout  = 30 * time.Second // limit for the start and initialize; servers load large projects after that
	lookAgain    = time.Second      // between two searches for a missing program, which read many folders
	maxCrashes   = 5                // crashes within crashWindow that turn a server off
	maxStarts    = 2                // starts of a server that was never initialised: waiting does not repair a broken command
	crashWindow  = 10 * time.Minute
	firstBackoff = 500 * time.Millisecond // four times as long after each crash, 8 s at most
)

// ErrUnavailable means that the server for the file is not installed, not trusted, or turned off. Asking again does not help. Test for it
// with errors.Is.
var ErrUnavailable = errors.New("the language server is not available")

// unavailable is an error that waiting does not end. For errors.Is it is ErrUnavailable. supervise turns the server off for it instead of
// counting a crash.
type unavailable struct{ error }

// Is lets errors.Is find ErrUnavailable.
func (unavailable) Is(target error) bool { return target == ErrUnavailable }

// name returns the server's id, as a person knows it.
func (s *slot) name() string { return s.spec.ID }

// get returns the running client and starts the server if necessary, again when it is stopped meanwhile. It waits until ctx ends, and then
// returns why there is no client yet. After a crash it waits for the restart. The client may end at any moment; its calls then fail with errGone.
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
			// The run has ended, so its calls would fail; wait until supervise has set the next state.
			case <-c.gone:
			default:
				return c, nil
			}
		case off:
			return nil, unavailable{err}
		case absent: // stopped on purpose since, but needed now
			if !s.start() {
				return nil, unavailable{errors.New(s.name() + " was stopped")}
			}
			continue
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

// current returns the running client; nil when there is none. It starts nothing.
func (s *slot) current() *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != running {
		return nil
	}
	return s.cur
}

// set changes the state and wakes those who wait for it. The caller holds s.mu. Every change must go through set: else a caller of get
// waits until its context ends.
func (s *slot) set(st slotState, c *client, err error) {
	s.state, s.cur, s.err = st, c, err
	close(s.changed)
	s.changed = make(chan struct{})
}

// revive makes a server that is off startable again (absent) when its program has appeared or was replaced: the person has installed it
// meanwhile, and should not have to restart Pillion.
func (s *slot) revive() {
	s.mu.Lock()
	due := s.state == off && s.fleet.o.Dial == nil && time.Since(s.looked) >= lookAgain
	if due {
		s.looked = time.Now()
	}
	before := s.program
	s.mu.Unlock()
	if !due {
		return
	}
	// Not under mu, because it searches folders.
	_, argv, err := s.fleet.programs.launch(s.spec, s.root)
	if err != nil || fingerprint(argv[0]) == before {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == off {
		s.crashes, s.initialized = nil, false
		s.set(absent, nil, nil)
	}
}

// fingerprint identifies the version of a program by its size and modification time; a path that cannot be read is its own fingerprint.
func fingerprint(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, " ", fi.Size(), " ", fi.ModTime().UnixNano())
}

// start starts the server in the background, unless it runs, waits for a restart or is off. It reports false when no server starts any more,
// after Close.
func (s *slot) start() bool {
	s.revive()
	s.fleet.mu.Lock()
	closed := s.fleet.closed
	s.fleet.mu.Unlock()
	if !closed {
		s.fleet.watchSoon() // scans the files while the server starts
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !closed && s.state == absent {
		s.set(starting, nil, nil)
		s.run++
		s.startRun(s.run, nil)
	}
	return !closed
}

// startRun starts a run in the background, with initTimeout for the whole start. The caller holds s.mu. supervise closes started in every
// case, because stop waits for it.
func (s *slot) startRun(run int, reopen []string) {
	ctx, abort := context.WithTimeout(context.Background(), initTimeout)
	s.abort, s.started = abort, make(chan struct{})
	started := s.started
	go func() {
		c, err := s.launch(ctx)
		abort()
		s.supervise(run, reopen, c, err, started)
	}()
}

// supervise makes a started run the slot's client, waits for its end and schedules the next run. err is the error of the start. reopen are
// the documents that the previous run had open: without them a restarted server would publish nothing.
func (s *slot) supervise(run int, reopen []string, c *client, err error, started chan struct{}) {
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
		// Must precede giveUp; see there.
		s.fleet.notices.reportMissing(s.spec, gone.error)
		s.giveUp(run, gone.error)
		return
	case err != nil:
		s.mu.Unlock()
		s.crashed(run, err, reopen)
		return
	}
	s.set(running, c, nil)
	s.initialized = true
	s.used = time.Now()
	if s.fleet.o.Idle > 0 && s.idle == nil {
		s.idle = time.AfterFunc(min(s.fleet.o.Idle, memoryEvery), s.checkIdle)
	}
	s.mu.Unlock()
	// Not awaited: it may stop another server, which takes a while.
	go s.fleet.stopOverBudget()
	if len(reopen) > 0 {
		c.sync(reopen)
	}
	<-c.gone
	open := c.docs.paths()
	err = errGone
	if c.proc != nil {
		select {
		case <-c.proc.exited:
			err = c.proc.endReason()
		// Kill it, or the next run would be a second process beside it.
		case <-time.After(exitWait):
			c.proc.kill() // it has closed its pipes but has not exited
			<-c.proc.exited
		}
	}
	_ = c.peer.Close()
	s.keepLessons(c)
	s.crashed(run, err, open)
}

// launch starts one run and performs the handshake. It fails with unavailable when the program is missing or must not run in an untrusted
// folder. With Options.Dial there is no process.
func (s *slot) launch(ctx context.Context) (*client, error) {
	if s.fleet.o.Dial != nil {
		r, w, err := s.fleet.o.Dial(s.spec, s.root)
		if err != nil {
			return nil, err
		}
		c := s.newClient(s.spec)
		c.connect(r, w, c.handle)
		return c, s.handshake(ctx, c)
	}
	row, argv, err := s.fleet.programs.launch(s.spec, s.root)
	if err != nil {
		return nil, unavailable{err}
	}
	s.mu.Lock()
	s.program = fingerprint(argv[0])
	s.mu.Unlock()
	proc, err := startProcess(row.reason, argv, s.root, row.Env, s.fleet.o.Start)
	if err != nil {
		return nil, err
	}
	c := s.newClient(row)
	c.proc = proc
	c.connect(proc.stdout, proc.stdin, c.handle)
	return c, s.handshake(ctx, c)
}

// newClient makes the client of the next run, with what keepLessons has kept of earlier runs.
func (s *slot) newClient(row Server) *client {
	c := newClient(row, s.root, s.fleet.host(), s.fleet.log)
	s.mu.Lock()
	c.objects = s.objects
	s.mu.Unlock()
	return c
}

// keepLessons keeps what the next run must know about the one that has ended: a null for a settings section may have crashed it.
func (s *slot) keepLessons(c *client) {
	s.mu.Lock()
	s.objects = s.objects || c.noSettings.Load()
	s.mu.Unlock()
}

// handshake initialises a run. On failure it ends the process, and explains the failure as far as it can tell.
func (s *slot) handshake(ctx context.Context, c *client) error {
	err := c.initialize(ctx)
	if err == nil {
		return nil
	}
	s.keepLessons(c)
	garbage := c.garbage()
	if c.proc != nil {
		c.proc.kill()
		<-c.proc.exited
		if errors.Is(err, errGone) {
			err = c.proc.endReason()
		}
	}
	_ = c.peer.Close()
	// Restarting the same program helps in neither case.
	switch {
	case garbage != "":
		err = unavailable{fmt.Errorf("%s prints %q instead of LSP messages; set lsp.%s.command to the command line of a language server", s.name(), garbage, s.spec.ID)}
	case errors.Is(err, context.DeadlineExceeded):
		err = unavailable{fmt.Errorf("%s did not answer within %v of its start; run pillion doctor, or set lsp.%s.command", s.name(), initTimeout, s.spec.ID)}
	}
	return err
}

// giveUp turns a run's server off. Call notice or reportMissing first: giveUp wakes the waiters in get, and by then the person must know
// the reason.
func (s *slot) giveUp(run int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run == s.run && s.state != absent {
		s.set(off, nil, err)
	}
}

// crashed schedules the next start after a run has ended by itself, or turns the server off. It does nothing when the run was stopped on
// purpose.
func (s *slot) crashed(run int, err error, reopen []string) {
	s.mu.Lock()
	if run != s.run || s.state == absent {
		s.mu.Unlock()
		return // stopped on purpose
	}
	now := time.Now()
	// Only crashes within the window count: a server that crashes once a day is always restarted.
	recent := s.crashes[:0]
	for _, t := range s.crashes {
		if now.Sub(t) < crashWindow {
			recent = append(recent, t)
		}
	}
	s.crashes = append(recent, now)
	n := len(s.crashes)
	if n >= maxCrashes || n >= maxStarts && !s.initialized {
		if s.initialized {
			err = fmt.Errorf("%s crashed %d times in %d minutes and is not started again:  %w", s.name(), n, int(crashWindow.Minutes()), err)
		} else {
			err = fmt.Errorf("%s does not start: %w; run pillion doctor, or set lsp.%s.command", s.name(), err, s.spec.ID)
		}
		s.mu.Unlock()
		s.fleet.notices.notice(s.name(), err.Error())
		s.giveUp(run, err)
		return
	}
	// n is 1 to maxCrashes-1 here; the waits are 0.5, 2, 8 and 8 seconds.
	wait := min(firstBackoff<<(2*(n-1)), 8*time.Second)
	s.set(waiting, nil, fmt.Errorf("%s stopped (%w) and restarts in %v", s.name(), err, wait))
	s.run++
	next := s.run
	s.mu.Unlock()
	s.fleet.log.Warn("server crashed", "server", s.name(), "err", err, "again", wait)
	time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if next == s.run && s.state == waiting { // not stopped meanwhile
			s.startRun(next, reopen)
		}
	})
}

// checkIdle stops the server when it has not been used for Options.Idle; otherwise it sets the timer again.
func (s *slot) checkIdle() {
	s.fleet.stopOverBudget()
	s.stopIfUnused(s.fleet.idleTime(), "idle")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil { // else it is stopped
		// The timer also checks the memory, so it fires more often than Idle requires.
		s.idle.Reset(min(max(s.fleet.o.Idle-time.Since(s.used), time.Second), memoryEvery))
	}
}

// stopIfUnused stops the server if it has not been used for so long, and reports whether it did. A question that still waits is a use, however
// long ago it was asked: a large project takes minutes to load.
func (s *slot) stopIfUnused(since time.Duration, why string) bool {
	s.mu.Lock()
	if s.state != running {
		s.mu.Unlock()
		return false
	}
	if s.cur.exclusive.taken() {
		s.used = time.Now()
	}
	// The documents are taken for good: get gives nobody else this client.
	if time.Since(s.used) < since || !s.cur.exclusive.tryAcquire() {
		s.mu.Unlock()
		return false
	}
	end := s.detach()
	s.mu.Unlock()
	end(context.Background(), why)
	return true
}

// outdate stops the server if it does not read one of the changed files again, as Quirks.ReadOnce says; the next use starts it again. It does not wait.
func (s *slot) outdate(events []fileEvent) bool {
	for _, e := range events {
		if base := filepath.Base(e.path); slices.Contains(s.spec.Quirks.ReadOnce, base) {
			go s.stop(context.Background(), base+" has changed")
			return true
		}
	}
	return false
}

// stop stops the server and waits for its end; the next use starts it again. why is for the log.
func (s *slot) stop(ctx context.Context, why string) {
	s.mu.Lock()
	end := s.detach()
	s.mu.Unlock()
	end(ctx, why)
}

// detach makes the server absent, so that the next use starts another run. The caller holds s.mu, and then calls end, which stops the run and waits
// for its end.
func (s *slot) detach() (end func(ctx context.Context, why string)) {
	c, abort, started := s.cur, s.abort, s.started
	// From here on, the end of the old run is not a crash.
	s.run++
	if s.idle != nil {
		s.idle.Stop()
		s.idle = nil
	}
	s.set(absent, nil, nil)
	return func(ctx context.Context, why string) {
		if abort != nil {
			abort()
			<-started
		}
		if c != nil {
			s.fleet.log.Info("stopping server", "server", s.name(), "why", why)
			c.stop(ctx)
		}
	}
}
