package lspbridge

import (
	"context"
	"fmt"
)

// exclusive lets one operation at a time change the documents of a run. Every check, question and write must acquire it: else a question
// could be answered about the texts of a proposal. It is a channel instead of a mutex, because waiting for it must end with the caller's
// context.
type exclusive struct {
	conn      *connection
	interrupt func()        // makes background work release the documents
	token     chan struct{} // holds one token; the operation that has the documents has taken it
}

// newExclusive returns a free one; interrupt must not block.
func newExclusive(conn *connection, interrupt func()) *exclusive {
	e := &exclusive{conn: conn, interrupt: interrupt, token: make(chan struct{}, 1)}
	e.token <- struct{}{}
	return e
}

// acquire blocks until only the caller may change documents, and interrupts background work for that. The caller must call release once. It
// fails with errGone, or with a reason for a person when ctx ends first.
func (e *exclusive) acquire(ctx context.Context) (release func(), err error) {
	release = func() { e.token <- struct{}{} }
	select {
	case <-e.token:
		return release, nil
	default:
	}
	e.interrupt()
	select {
	case <-e.token:
		return release, nil
	case <-e.conn.gone:
		return nil, errGone
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is checking another proposal", e.conn.id)
	}
}

// taken reports whether an operation has the documents now.
func (e *exclusive) taken() bool { return len(e.token) == 0 }

// tryAcquire takes the documents if no operation has them, and reports whether it did. They are not given back: it is for a run that is to end.
func (e *exclusive) tryAcquire() bool {
	select {
	case <-e.token:
		return true
	default:
		return false
	}
}
