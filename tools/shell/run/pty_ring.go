package run

import (
	"context"
	"io"
	"sync"
)

// Scrollback is how much of a terminal's output is kept, in bytes. An editor that attaches later gets at most this much.
const Scrollback = 2 << 20

// ring keeps the last bytes of a stream for any number of readers, each with its own offset. The writer never waits for readers: one
// that is too slow loses bytes and gets their number. Invariant: the byte at offset n of the stream is at index n modulo size of buf.
type ring struct {
	size int

	mu    sync.Mutex
	buf   []byte        // grows to size, then wraps; guarded by mu
	total int64         // bytes ever written; guarded by mu
	ended bool          // guarded by mu
	fresh chan struct{} // closed at the next change; guarded by mu
}

// newRing makes a ring that keeps size bytes. Its memory grows with what is written, up to size.
func newRing(size int) *ring { return &ring{size: size, fresh: make(chan struct{})} }

// Write never fails and never waits for a reader.
func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if len(p) > r.size {
		r.total += int64(len(p) - r.size)
		p = p[len(p)-r.size:]
		if len(r.buf) < r.size { // the invariant needs a buffer of full size here
			r.buf = append(r.buf, make([]byte, r.size-len(r.buf))...)
		}
	}
	if grow := int(min(int64(r.size), r.total+int64(len(p)))) - len(r.buf); grow > 0 {
		r.buf = append(r.buf, make([]byte, grow)...)
	}
	for len(p) > 0 {
		at := int(r.total % int64(r.size))
		k := copy(r.buf[at:], p)
		p = p[k:]
		r.total += int64(k)
	}
	r.changed()
	return n, nil
}

// changed wakes the readers that wait. Called with mu held.
func (r *ring) changed() {
	close(r.fresh)
	r.fresh = make(chan struct{})
}

// end ends the stream: readers get the rest, then io.EOF.
func (r *ring) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.ended = true
		r.changed()
	}
}

// read waits for bytes from offset on. It returns a copy of at most limit of them, the offset after them, and how many bytes after
// offset were lost, because the ring has overwritten them. The error is io.EOF at the end of the stream, or that of ctx.
func (r *ring) read(ctx context.Context, offset int64, limit int) (data []byte, next, lost int64, err error) {
	for {
		r.mu.Lock()
		if first := r.total - int64(len(r.buf)); offset < first {
			lost, offset = first-max(offset, 0), first
		}
		if offset < r.total {
			n := int(min(r.total-offset, int64(limit)))
			data = make([]byte, 0, n)
			for len(data) < n {
				at := int((offset + int64(len(data))) % int64(r.size))
				end := min(len(r.buf), at+n-len(data))
				data = append(data, r.buf[at:end]...)
			}
			r.mu.Unlock()
			return data, offset + int64(n), lost, nil
		}
		offset = r.total
		if r.ended {
			r.mu.Unlock()
			return nil, offset, lost, io.EOF
		}
		fresh := r.fresh
		r.mu.Unlock()
		select {
		case <-fresh:
		case <-ctx.Done():
			return nil, offset, lost, ctx.Err()
		}
	}
}
