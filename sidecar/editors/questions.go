package editors

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/tools/permission"
)

// openAsk is a question that waits for the person, in every editor that has its session open, those that open it
// later included. The first answer counts, and the other editors withdraw the question.
type openAsk struct {
	session string           // as its editors know it: of a sub-agent's question, the session that a person started
	put     func(ed *Editor) // asks one editor and returns at once

	mu    sync.Mutex
	asked []*Editor // guarded by mu; every editor that has got the question, also those that have gone since
}

// offer puts the question to an editor, once: askAll and Registry.Offer may both find an editor that opens the session just now. put runs
// without the lock.
func (q *openAsk) offer(ed *Editor) {
	q.mu.Lock()
	again := slices.Contains(q.asked, ed)
	if !again {
		q.asked = append(q.asked, ed)
	}
	q.mu.Unlock()
	if !again {
		q.put(ed)
	}
}

// questions are those that wait for a person now, of all sessions, so that an editor that opens a session later can be asked too.
type questions struct {
	mu   sync.Mutex
	open []*openAsk // guarded by mu
}

// add, remove and of keep the list; nobody is called under mu, since an editor may answer at once.
func (x *questions) add(q *openAsk) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open = append(x.open, q)
}

func (x *questions) remove(q *openAsk) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open = slices.DeleteFunc(x.open, func(o *openAsk) bool { return o == q })
}

func (x *questions) of(session string) (waiting []*openAsk) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.open {
		if q.session == session {
			waiting = append(waiting, q)
		}
	}
	return waiting
}

// Offer puts the open questions of a session to an editor that has just opened it: without it a person who comes back could not answer what
// the turn waits for. An editor is asked each question only once.
func (r *Registry) Offer(session string, ed *Editor) {
	for _, q := range r.questions.of(session) {
		q.offer(ed)
	}
}

// askAll puts a question to every editor of a session by ask and returns the first answer; verdict words it for the other editors. An editor
// that disconnects, or cannot ask, leaves the question to the rest. It fails with ErrNoEditor where the session has none at the beginning,
// with context.Canceled when the last one has gone, else with the error of the last editor that could not ask or with that of ctx.
func askAll[T any](ctx context.Context, r *Registry, session string, ask func(ctx context.Context, ed *Editor, session string) (T, error), verdict func(T) string) (T, error) {
	type answer struct {
		from *Editor
		v    T
		err  error
	}
	var none T
	all, known := r.all(session)
	if len(all) == 0 {
		return none, ErrNoEditor
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Not buffered: after the first answer nobody reads on, and the goroutines of put end with ctx.
	answers := make(chan answer)
	q := &openAsk{session: known, put: func(ed *Editor) {
		go func() {
			v, err := ask(ctx, ed, known)
			select {
			case answers <- answer{ed, v, err}:
			case <-ctx.Done():
			}
		}()
	}}
	r.questions.add(q)
	defer r.questions.remove(q)
	all, _ = r.all(session) // again: one that came meanwhile has not seen it among those that wait
	for _, ed := range all {
		q.offer(ed)
	}
	var out []*Editor // who has given up
	for {
		var a answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		var cannot *permission.RejectedError
		gone := a.from.Gone()
		if gone || errors.As(a.err, &cannot) || errors.Is(a.err, ErrCannotAsk) {
			out = append(out, a.from)
			if r.others(q, out) {
				continue
			}
			if gone {
				return none, context.Canceled // the last editor is gone: the turn ends with it
			}
			return a.v, a.err
		}
		if a.err == nil {
			q.mu.Lock()
			others := slices.DeleteFunc(slices.Clone(q.asked), func(ed *Editor) bool { return ed == a.from || slices.Contains(out, ed) })
			q.mu.Unlock()
			cancel() // before they are told: the request is withdrawn first
			for _, ed := range others {
				ed.Person.AnsweredElsewhere(known, verdict(a.v))
			}
		}
		return a.v, a.err
	}
}

// others reports whether an editor besides those in out still has the question, or gets it as soon as it has opened the session. The locks
// are taken one after the other, never both.
func (r *Registry) others(q *openAsk, out []*Editor) bool {
	left := func(ed *Editor) bool { return !slices.Contains(out, ed) && !ed.Gone() }
	q.mu.Lock()
	asked := slices.ContainsFunc(q.asked, left)
	q.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return asked || r.coming[q.session] > 0 || slices.ContainsFunc(r.bound[q.session], left)
}

// ErrCannotAsk says that this editor cannot put a question to the person; the session's other editors still can.
var ErrCannotAsk = errors.New("the editor could not ask")
