package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/tools/permission"
)

// openAsk is a question that waits for the person, in every editor that has its session open, those that open it
// later included. The first answer counts; the others are told.
type openAsk struct {
	session string
	put     func(s *Server) // asks one editor

	mu    sync.Mutex
	asked []*Server // guarded by mu
}

// offer puts the question to an editor, once.
func (q *openAsk) offer(s *Server) {
	q.mu.Lock()
	again := slices.Contains(q.asked, s)
	if !again {
		q.asked = append(q.asked, s)
	}
	q.mu.Unlock()
	if !again {
		q.put(s)
	}
}

// offer puts what waits for the person in a session to an editor that has just opened it.
func (e *Editors) offer(session string, s *Server) {
	e.mu.Lock()
	var waiting []*openAsk
	for _, q := range e.asks {
		if q.session == session {
			waiting = append(waiting, q)
		}
	}
	e.mu.Unlock()
	for _, q := range waiting {
		q.offer(s)
	}
}

func (e *Editors) closeAsk(q *openAsk) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asks = slices.DeleteFunc(slices.Clone(e.asks), func(x *openAsk) bool { return x == q })
}

// askAll asks every editor of a session by ask and takes the first answer; verdict says it to the others. An editor
// that goes away, or cannot ask, leaves the question to the rest.
func askAll[T any](ctx context.Context, e *Editors, session string, ask func(ctx context.Context, s *Server, session string) (T, error), verdict func(T) string) (T, error) {
	type answer struct {
		from *Server
		v    T
		err  error
	}
	var none T
	all, known := e.all(session)
	if len(all) == 0 {
		return none, errNoEditor
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer)
	q := &openAsk{session: known, put: func(s *Server) {
		go func() {
			v, err := ask(ctx, s, known)
			select {
			case answers <- answer{s, v, err}:
			case <-ctx.Done():
			}
		}()
	}}
	e.mu.Lock()
	e.asks = append(slices.Clone(e.asks), q)
	e.mu.Unlock()
	defer e.closeAsk(q)
	all, _ = e.all(session) // anew: one that came meanwhile has not seen it among those that wait
	for _, s := range all {
		q.offer(s)
	}
	var out []*Server // who has given up
	for {
		var a answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			return none, ctx.Err()
		}
		var cannot *permission.RejectedError
		gone := a.from.ctx.Err() != nil
		if gone || errors.As(a.err, &cannot) || errors.Is(a.err, errCannotAsk) {
			out = append(out, a.from)
			if e.others(q, out) {
				continue
			}
			if gone {
				return none, context.Canceled // the last editor is gone: the turn ends with it
			}
			return a.v, a.err
		}
		if a.err == nil {
			q.mu.Lock()
			others := slices.DeleteFunc(slices.Clone(q.asked), func(s *Server) bool { return s == a.from || slices.Contains(out, s) })
			q.mu.Unlock()
			cancel() // before they are told: the request is withdrawn first
			for _, s := range others {
				s.tellDecided(known, verdict(a.v))
			}
		}
		return a.v, a.err
	}
}

// others reports whether an editor still has the question, or gets it as soon as it has opened the session.
func (e *Editors) others(q *openAsk, out []*Server) bool {
	left := func(s *Server) bool { return !slices.Contains(out, s) && s.ctx.Err() == nil }
	q.mu.Lock()
	asked := slices.ContainsFunc(q.asked, left)
	q.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return asked || e.coming[q.session] > 0 || slices.ContainsFunc(e.bound[q.session], left)
}

// tellDecided says to an editor that another one was first.
func (s *Server) tellDecided(session, verdict string) {
	if es := s.lookup(session); es != nil {
		es.view.notice("info", "Another window of this session decided first: "+verdict+". A decision made here at the same moment does not count.")
	}
}

// errCannotAsk: an editor cannot put a question to the person.
var errCannotAsk = errors.New("the editor could not ask")
