package rpc

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// OutboxOptions configures NewOutbox. The zero value is ready for use.
type OutboxOptions struct {
	// MaxBytes is how much may wait before Post makes its caller wait; 0 is 1 MiB. Write never waits: the goroutine
	// that reads a connection answers through it, and two peers that both wait to write would stop for ever.
	MaxBytes int
}

// Note is a notification that the writer encodes only when it sends it, so that later notes can still be
// merged into it. A model streams a few characters at a time; merging sends fewer, larger updates to a
// slow editor.
type Note struct {
	Method string
	// Params is anything encoding/json accepts. The output of a json.Marshaler is sent as it is.
	Params any
	// Key groups notes, e.g. by session. A note may be merged into one that was queued before notes of
	// other keys. It is never merged across anything without a key (an answer, a call, a plain
	// notification), because the peer may rely on that order.
	Key string
	// Merge adds next.Params to n.Params and reports whether it did. It is called, with the Outbox locked,
	// for the last waiting note of the same Key, while nothing without a key waits behind it. nil never
	// merges.
	Merge func(n, next *Note) bool
}

// Outbox is the only writer of a connection: a queue and one goroutine that writes it in order. Because
// all messages pass through it, two frames never mix and an answer never overtakes an update that was
// queued before it.
type Outbox struct {
	w    io.Writer
	max  int
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex       // guards what follows
	queue  []item           // in the order in which it is sent
	size   int              // bytes waiting, encoded; notes count as noteWeight
	tails  map[string]*Note // the last waiting note of each key; cleared by whatever has no key
	wake   *sync.Cond       // signalled when queue or closed changes
	room   chan struct{}    // closed and replaced when queued bytes have been taken to be written
	err    error            // of w; nothing is accepted after it
	closed bool             // Close has been called: the rest of queue is still written
}

// item is either an encoded frame, or a note that is not encoded yet.
type item struct {
	frame []byte
	note  *Note
}

// noteWeight is what a note counts against MaxBytes before it is encoded, in bytes. Encoding it to know
// its size would end its chance to be merged.
const noteWeight = 256

// NewOutbox starts the writer goroutine. The goroutine ends after Close, when everything queued has been
// written, or at w's first error.
func NewOutbox(w io.Writer, o OutboxOptions) *Outbox {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 20
	}
	q := &Outbox{w: w, max: o.MaxBytes, done: make(chan struct{}), tails: map[string]*Note{}, room: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write queues a copy of one whole frame. It never waits. It fails with w's error, or with
// io.ErrClosedPipe after Close.
func (q *Outbox) Write(frame []byte) (int, error) {
	return len(frame), q.Put(append([]byte(nil), frame...))
}

// Put is Write without the copy: it takes ownership of frame.
func (q *Outbox) Put(frame []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.dead(); err != nil {
		return err
	}
	// An answer or a call: no later note may be merged into one that was queued before it.
	clear(q.tails)
	q.push(item{frame: frame}, len(frame))
	return nil
}

// Post queues n for a newline-delimited connection, or merges it into a waiting note. It waits while more
// than MaxBytes are queued, until ctx ends; that slows down a producer whose editor does not read.
func (q *Outbox) Post(ctx context.Context, n *Note) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if err := q.dead(); err != nil {
			return err
		}
		if t := q.tails[n.Key]; t != nil && t.Merge != nil && t.Merge(t, n) {
			return nil
		}
		if q.size <= q.max {
			break
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			q.mu.Lock()
			return ctx.Err()
		}
		q.mu.Lock()
	}
	if n.Key != "" {
		q.tails[n.Key] = n
	} else {
		clear(q.tails)
	}
	q.push(item{note: n}, noteWeight)
	return nil
}

// dead is why nothing can be queued any more; nil when it can. q.mu is held.
func (q *Outbox) dead() error {
	if q.err != nil {
		return q.err
	}
	if q.closed {
		return io.ErrClosedPipe
	}
	return nil
}

// push appends an item that counts n bytes. q.mu is held.
func (q *Outbox) push(i item, n int) {
	q.queue = append(q.queue, i)
	q.size += n
	q.wake.Signal()
}

// Flush waits until everything queued so far has been written. It returns w's error when the writer ended
// before that, nil when it ended with everything written, or ctx's error.
func (q *Outbox) Flush(ctx context.Context) error {
	mark := make(chan struct{})
	q.mu.Lock()
	if err := q.dead(); err != nil {
		q.mu.Unlock()
		return err
	}
	q.push(item{note: &Note{Params: mark}}, 0)
	q.mu.Unlock()
	select {
	case <-mark:
		return nil
	case <-q.done:
		return q.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Err returns w's error; nil when there was none.
func (q *Outbox) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Close stops accepting frames. The goroutine writes what is queued, then closes w if it implements
// io.Closer. Close does not wait for that; use Done.
func (q *Outbox) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
	return nil
}

// Done is closed when the writer goroutine has ended.
func (q *Outbox) Done() <-chan struct{} { return q.done }

// run writes batches until the Outbox is closed and empty, or w fails.
func (q *Outbox) run() {
	defer close(q.done)
	defer func() {
		if c, ok := q.w.(io.Closer); ok {
			_ = c.Close()
		}
	}()
	var spare []item // the batch before, whose memory the next queue reuses
	var buf []byte
	for {
		q.mu.Lock()
		for len(q.queue) == 0 && !q.closed {
			q.wake.Wait()
		}
		if len(q.queue) == 0 {
			q.mu.Unlock()
			return
		}
		batch := q.queue
		q.queue, spare = spare[:0], nil
		q.size = 0
		clear(q.tails) // from here on nothing may join: the notes are being encoded
		close(q.room)
		q.room = make(chan struct{})
		q.mu.Unlock()

		err := q.write(batch, &buf)
		// Drop the references: the array is reused, and must not keep the frames it held alive.
		clear(batch)
		if cap(batch) <= 1<<12 {
			spare = batch
		}
		if err != nil {
			q.mu.Lock()
			q.err, q.queue = err, nil
			close(q.room)
			q.room = make(chan struct{})
			q.mu.Unlock()
			return
		}
	}
}

// write sends a batch. Small frames are collected and leave in one system call; a large one is written by
// itself, without a copy.
func (q *Outbox) write(batch []item, buf *[]byte) error {
	const together = 64 << 10 // bytes
	b := (*buf)[:0]
	flush := func() error {
		if len(b) == 0 {
			return nil
		}
		_, err := q.w.Write(b)
		b = b[:0]
		return err
	}
	for _, i := range batch {
		frame := i.frame
		if i.note != nil {
			if mark, ok := i.note.Params.(chan struct{}); ok {
				if err := flush(); err != nil {
					return err
				}
				close(mark)
				continue
			}
			frame = i.note.encode()
		}
		if len(b)+len(frame) > together {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(frame) > together {
			if _, err := q.w.Write(frame); err != nil {
				return err
			}
			continue
		}
		b = append(b, frame...)
	}
	err := flush()
	if cap(b) <= 2*together {
		*buf = b
	}
	return err
}

// encode returns the notification as one line, newline included; nil when its parameters cannot be
// encoded.
func (n *Note) encode() []byte {
	var params []byte
	var err error
	if m, ok := n.Params.(json.Marshaler); ok { // not JSON.Marshal, which would parse and check its output again
		params, err = m.MarshalJSON()
	} else {
		params, err = JSON.Marshal(n.Params)
	}
	if err != nil {
		return nil // the types we post always encode; a line of rubbish would be worse than none
	}
	if params == nil {
		params = json.RawMessage("null")
	}
	b := jsonrpc2.AppendNotification(make([]byte, 0, len(params)+len(n.Method)+48), n.Method, params)
	oneLine(b)
	return append(b, '\n')
}
