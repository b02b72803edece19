package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools/permission"
)

// ErrNoSession means that a session is neither open in this process nor in the store.
var ErrNoSession = errors.New("no such session; `pillion sessions list` shows those there are")

// ErrNoAgent means that the directory has no agent of that name.
var ErrNoAgent = errors.New("no such agent")

// ErrClosed means that the session or the runtime was closed.
var ErrClosed = errors.New("the session is closed")

// Runtime creates sessions and keeps the live ones. A process has at most one Session for a session id.
type Runtime struct {
	directories
	st     *store.Store
	grants permission.Grants
	// backoff is a field so that tests need not wait.
	backoff func(attempt int, err *provider.Error) time.Duration
	hearing hearing
	specs   toolSpecs

	mu   sync.Mutex
	live map[string]*Session // guarded by mu
	// Concurrent loads of one session must return one Session: two would give different events the same number.
	loading map[string]chan struct{} // guarded by mu; by session id; closed when the load is over
	closed  bool                     // guarded by mu
}

// New makes a runtime. Nothing is opened or started before the first session.
func New(o Options) *Runtime {
	o.complete()
	r := &Runtime{directories: directories{o}, st: o.Store, grants: o.Grants, backoff: provider.Backoff,
		live: map[string]*Session{}, loading: map[string]chan struct{}{}}
	if r.grants == nil {
		r.grants = storeGrants{o.Store}
	}
	// OnProblem also reports a problem from before this call, such as a salvaged file.
	o.Store.OnProblem(r.storeProblem)
	return r
}

// storeProblem tells every live session that saving fails, with the reason, or that it works again (nil). The store's goroutine calls it,
// so it must only emit.
func (r *Runtime) storeProblem(problem error) {
	n := NoticeData{Level: "info", Text: "The session is being saved again; nothing was lost."}
	if problem != nil {
		r.o.Log.Warn("store", "err", problem)
		n = storeNotice(problem)
	}
	for _, s := range r.Live() {
		s.emit(EventNotice, n)
	}
}

// storeNotice returns the warning that a session shows while its events are in memory only.
func storeNotice(problem error) NoticeData {
	var p *store.Problem
	switch {
	case errors.As(problem, &p) && p.Kind == store.ProblemSalvaged:
		return NoticeData{Level: "warning", Text: p.Message + "."}
	case errors.As(problem, &p) && p.Kept != "":
		return NoticeData{Level: "warning", Text: p.Message + ". Until then this session is saved on this machine, in " + p.Kept + "; Pillion stores it on the server once that answers, also after a restart."}
	}
	return NoticeData{Level: "warning", Text: "This session is not being saved: " + problem.Error() + ". It continues in memory, is saved once that is possible, and is lost if Pillion ends before."}
}

// Live returns the sessions that are open in this process.
func (r *Runtime) Live() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Session, 0, len(r.live))
	for _, s := range r.live {
		all = append(all, s)
	}
	return all
}

// NewSession starts a session in a directory. The error says what is wrong with the directory, the agent or the model. A default model that
// cannot be resolved is an error only at the first prompt.
func (r *Runtime) NewSession(ctx context.Context, o SessionOptions) (*Session, error) {
	return r.newSessionOf(ctx, o, lineage{})
}

// newSessionOf is NewSession for a person's session (the zero lineage) or a sub-agent's. The session is live before its head is stored,
// because it must also start while the store cannot write.
func (r *Runtime) newSessionOf(ctx context.Context, o SessionOptions, of lineage) (*Session, error) {
	if err := checkDir(o.Cwd); err != nil {
		return nil, err
	}
	at := now()
	info := SessionInfo{ID: newID("ses_"), Cwd: filepath.Clean(o.Cwd), Extra: o.Extra, Title: o.Title, Agent: o.Agent,
		Model: o.Model, Effort: o.Effort, Parent: o.Parent, Review: o.Review, Created: at, Updated: at}
	if of.parent == nil {
		r.o.Plugins.Configure(ctx, info.Cwd)
	}
	// The default agent is stored with the session, so that a changed default affects later sessions only.
	if info.Agent == "" {
		info.Agent = r.DefaultAgentOf(info.Cwd)
	}
	a, ok := r.agent(info.Cwd, info.Agent)
	if !ok {
		return nil, r.noAgent(info.Cwd, info.Agent)
	}
	// A named model must resolve here; a default one may be missing until the first prompt.
	explicit := info.Model
	if info.Model == "" {
		info.Model = a.Model
	}
	if r.o.Models != nil {
		_, m, err := r.o.Models.Resolve(ctx, info.Cwd, info.Model)
		switch {
		case err == nil:
			info.Model = m.String()
		case explicit != "":
			return nil, err
		}
	}
	s := r.newSession(info, 0, of)
	r.mu.Lock()
	// Close has listed the live sessions already, and would not close this one.
	if r.closed {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	r.live[info.ID] = s
	r.mu.Unlock()
	s.saveHead(info)
	s.emit(EventSession, info)
	// This session started after the problem was reported to all live ones.
	if problem := r.st.Problem(); problem != nil {
		s.emit(EventNotice, storeNotice(problem))
	}
	return s, nil
}

// checkDir returns what is wrong with a session directory; nil when it can be used.
func checkDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("the session directory %q is not an absolute path", dir)
	}
	// Open it, because an existing directory may be unreadable.
	f, err := os.Open(dir)
	if err != nil {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("the session directory %s does not exist", dir)
		case errors.Is(err, os.ErrPermission):
			return fmt.Errorf("the session directory %s cannot be read: permission denied", dir)
		}
		return fmt.Errorf("the session directory cannot be opened: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.IsDir() {
		return fmt.Errorf("%s is not a directory; a session needs one", dir)
	}
	return nil
}

// LoadSession opens a stored session. A live session is returned as it is, and concurrent callers share one load. A turn that a crash cut
// off is closed: every call gets a result, and partial text is kept. ErrNoSession when there is no such session.
func (r *Runtime) LoadSession(ctx context.Context, id string) (*Session, error) {
	return r.ReadSession(ctx, id, nil)
}

// Reader is called while a session is read from the store, so that an editor shows the first messages of a long session before the last
// were read.
type Reader struct {
	// Begin is called before the first event. s is not live yet: only its ID, Info, Hidden and Past may be used. An error ends the reading.
	Begin func(s *Session) error
	// Event is called with each stored event, in order; hidden is set for what a restore has hidden. It must not block: others that open the
	// session wait meanwhile.
	Event func(e Event, hidden bool)
}

// ReadSession is LoadSession with a reader; nil is none. The reader of a session that is live already, or that somebody else is loading, is
// not called.
func (r *Runtime) ReadSession(ctx context.Context, id string, with *Reader) (*Session, error) {
	for {
		r.mu.Lock()
		if s, ok := r.live[id]; ok || r.closed {
			r.mu.Unlock()
			if !ok {
				return nil, ErrClosed
			}
			return s, nil
		}
		wait, busy := r.loading[id]
		if !busy {
			r.loading[id] = make(chan struct{})
		}
		r.mu.Unlock()
		if !busy {
			break
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s, err := r.loadOf(ctx, id, lineage{}, with)
	r.mu.Lock()
	close(r.loading[id])
	delete(r.loading, id)
	// Close has listed the live sessions already, and would not close this one.
	if err == nil && r.closed {
		err = ErrClosed
	}
	if err == nil {
		r.live[id] = s
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// loadOf reads a session from the store and repairs it after a crash. The session's lock tells what an open turn means: if another process
// holds the lock, it is running the turn and the session is only read; if the lock is free, that process has crashed.
func (r *Runtime) loadOf(ctx context.Context, id string, of lineage, with *Reader) (*Session, error) {
	head, err := r.st.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%q: %w", id, ErrNoSession)
	}
	if err != nil {
		return nil, err
	}
	// A sub-agent's session that a person opens by itself keeps the limits of its parents.
	if of.parent == nil {
		of.heads = r.headsAbove(ctx, head.Parent)
		r.o.Plugins.Configure(ctx, head.Cwd)
	}
	s := r.newSession(infoOf(head), 0, of)
	read, err := s.read(ctx, with)
	if err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx, read); err != nil {
		return nil, err
	}
	s.adopt()
	// A restore changed the conversation: read it again without the hidden events.
	if s.hist.stale {
		if err := s.rebuild(ctx); err != nil {
			return nil, err
		}
	}
	if !s.hist.open() {
		return s, nil
	}
	// A turn is open: either another process is running it, or that process crashed. The lock tells which, and is held until the repair is
	// stored.
	unlock, err := r.st.Lock(ctx, id)
	if err != nil {
		var locked *store.LockedError
		if errors.As(err, &locked) {
			return s, nil
		}
		return nil, err
	}
	defer unlock()
	if err := s.catchUp(ctx, read); err != nil {
		return nil, err
	}
	s.adopt()
	s.recovery().run()
	s.flush()
	if s.hist.stale {
		if err := s.rebuild(ctx); err != nil {
			return nil, err
		}
	}
	_ = r.st.Sync(ctx) // a failure is reported through OnProblem
	return s, nil
}

// read begins to read the stored events and returns what to call with each: it adds the event to the history and passes it to the reader.
func (s *Session) read(ctx context.Context, with *Reader) (func(Event) error, error) {
	if with == nil {
		return func(e Event) error { s.hist.apply(e); return nil }, nil
	}
	if err := with.Begin(s); err != nil {
		return nil, err
	}
	// Known before the first event: a restore at the end hides events at the beginning.
	hidden, err := s.Hidden(ctx)
	if err != nil {
		return nil, err
	}
	return func(e Event) error {
		e = e.decoded()
		s.hist.apply(e)
		with.Event(e, hidden.Has(e))
		return ctx.Err()
	}, nil
}

// infoOf returns a stored head. The columns of the table override Info, of which parts may be unreadable.
func infoOf(h store.Session) SessionInfo {
	var info SessionInfo
	_ = json.Unmarshal(h.Info, &info)
	info.ID, info.Cwd, info.Title, info.Parent = h.ID, h.Cwd, h.Title, h.Parent
	info.Created, info.Updated = h.Created, h.Updated
	if info.Agent == "" {
		info.Agent = DefaultAgent
	}
	return info
}

// Session returns a live session.
func (r *Runtime) Session(id string) (*Session, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.live[id]
	return s, ok
}

// Stored yields the events of a session after from, without opening the session.
func (r *Runtime) Stored(ctx context.Context, id string, from int64, yield func(Event) error) error {
	return r.StoredOf(ctx, id, from, nil, yield)
}

// StoredOf is Stored for some types only; nil means all.
func (r *Runtime) StoredOf(ctx context.Context, id string, from int64, types []EventType, yield func(Event) error) error {
	if s, ok := r.Session(id); ok {
		// Pass events that wait for the pump to the store first, so that they are yielded too.
		s.flush()
	}
	return r.st.EventsOf(ctx, id, from, names(types), func(e store.Event) error { return yield(fromStore(e)) })
}

// names converts types for the store; nil stays nil, which means all types.
func names(types []EventType) (out []string) {
	for _, t := range types {
		out = append(out, string(t))
	}
	return out
}

// List returns the sessions of a directory ("" means all), the last used first. It includes sub-agents' sessions, whose Parent is set.
func (r *Runtime) List(ctx context.Context, cwd string) ([]SessionInfo, error) {
	if cwd != "" {
		cwd = filepath.Clean(cwd)
	}
	heads, err := r.st.Sessions(ctx, cwd)
	if err != nil {
		return nil, err
	}
	out := make([]SessionInfo, len(heads))
	for i, h := range heads {
		out[i] = infoOf(h)
	}
	return out, nil
}

// Each is List one by one, for a caller that shows one page: reading the heads is most of the cost of a list of thousands, so only those
// that are asked for are read. The sequence begins behind the session with the id after, "" means at the first. It ends with its first error:
// ErrNoSession when that session is not in the list.
func (r *Runtime) Each(ctx context.Context, cwd, after string) iter.Seq2[SessionInfo, error] {
	if cwd != "" {
		cwd = filepath.Clean(cwd)
	}
	return func(yield func(SessionInfo, error) bool) {
		for h, err := range r.st.EachSession(ctx, cwd, after) {
			if errors.Is(err, store.ErrNotFound) {
				err = fmt.Errorf("%q: %w", after, ErrNoSession)
			}
			if err != nil {
				yield(SessionInfo{}, err)
				return
			}
			if !yield(infoOf(h), nil) {
				return
			}
		}
	}
}

// Delete closes a session and removes it with its events and its sub-agents' sessions. ErrNoSession when there is none; *store.LockedError
// while another process runs a turn in it.
func (r *Runtime) Delete(ctx context.Context, id string) error {
	for _, s := range r.Live() {
		// Close the sub-agents' sessions too, because their events are deleted with it.
		if s.ID() == id || s.Info().Parent == id {
			s.Close(ctx)
		}
	}
	// Without the lock, another process could still be writing to the deleted session.
	unlock, err := r.st.Lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	err = r.st.Delete(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%q: %w", id, ErrNoSession)
	}
	return err
}

// Close ends every turn, closes the sessions and waits until the store has written everything. The store stays open.
func (r *Runtime) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	all := r.Live()
	for _, s := range all {
		// Cancel all first: turns take a moment to end, and one after the other these moments add up.
		s.Cancel() // Close then only waits
	}
	for _, s := range all {
		s.Close(ctx)
	}
	// Plugins have one second to receive the last events.
	r.hearing.waitIdle(time.Second)
	return r.st.Sync(ctx)
}
