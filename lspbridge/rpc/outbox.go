package rpc

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// OutboxOptions of NewOutbox.
type OutboxOptions struct {
	// MaxBytes is how much may wait before Post makes its caller wait; 0 is 1 MiB. Write never waits: the goroutine
	// that reads a connection answers through it, and two peers that both wait to write would stop for ever.
	MaxBytes int
}

// Note is a notification that is encoded only when its turn to leave comes, so that what follows can still join it.
type Note struct {
	Method string
	Params any // anything encoding/json takes; a json.Marshaler's words go out as they are
	// Key says which notes belong together, e.g. a session. A note of another key may be overtaken by a merge, anything
	// without a key (an answer, a call, a plain notification) never.
	Key string
	// Merge adds next.Params to n.Params and reports whether it did. It is asked of the last waiting note of the same
	// Key, while nothing without a key waits behind it. nil never merges.
	Merge func(n, next *Note) bool
}

// Outbox is the one writer of a connection: a queue with one goroutine behind it. What is queued first leaves first.
type Outbox struct {
	w    io.Writer
	max  int
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // guards what follows
	queue  []item
	size   int // bytes waiting, encoded; notes count as noteWeight
	tails  map[string]*Note
	wake   *sync.Cond // queue or closed changed
	room   chan struct{}
	err    error
	closed bool
}

type item struct {
	frame []byte
	note  *Note
}

// noteWeight is what an unencoded note counts, in bytes.
const noteWeight = 256

// NewOutbox starts the writer goroutine; it ends with Close, after what waits has left, or with w's first error.
func NewOutbox(w io.Writer, o OutboxOptions) *Outbox {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 20
	}
	q := &Outbox{w: w, max: o.MaxBytes, done: make(chan struct{}), tails: map[string]*Note{}, room: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// Write queues a copy of one whole frame. It never waits.
func (q *Outbox) Write(frame []byte) (int, error) {
	return len(frame), q.put(append([]byte(nil), frame...))
}

func (q *Outbox) put(frame []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.dead(); err != nil {
		return err
	}
	clear(q.tails)
	q.push(item{frame: frame}, len(frame))
	return nil
}

// Post queues n for a newline-delimited connection, or merges it into what waits. It waits while more than MaxBytes
// are queued, until ctx ends.
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

func (q *Outbox) dead() error {
	if q.err != nil {
		return q.err
	}
	if q.closed {
		return io.ErrClosedPipe
	}
	return nil
}

func (q *Outbox) push(i item, n int) {
	q.queue = append(q.queue, i)
	q.size += n
	q.wake.Signal()
}

// Flush waits until everything queued so far has been written.
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

// Err is w's error, if it had one.
func (q *Outbox) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Close lets what waits leave, then closes w if it can be closed. It does not wait for that; Done does.
func (q *Outbox) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
	return nil
}

// Done is closed when the writer goroutine has ended.
func (q *Outbox) Done() <-chan struct{} { return q.done }

func (q *Outbox) run() {
	defer close(q.done)
	defer func() {
		if c, ok := q.w.(io.Closer); ok {
			_ = c.Close()
		}
	}()
	var spare []item
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

// write sends a batch, small frames together in one system call.
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

func (n *Note) encode() []byte {
	var params []byte
	var err error
	if m, ok := n.Params.(json.Marshaler); ok { // what it writes needs no second reading, which JSON.Marshal would do
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
