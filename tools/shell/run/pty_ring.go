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
	// lines is set for a stream whose LF readers get as CRLF; offsets and total count what readers get. What was written waits in raw until
	// somebody reads: most of a flood is never read, and converting each of its bytes would take longer than its pipe.
	lines *lineEnds // guarded by mu
	raw   []byte    // not converted yet, at most 2*size; guarded by mu
}

// newRing makes a ring that keeps size bytes. Its memory grows with what is written, up to size.
func newRing(size int) *ring { return &ring{size: size, fresh: make(chan struct{})} }

// Write never fails and never waits for a reader.
func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(p)
	if r.lines == nil {
		r.put(p)
		r.changed()
		return n, nil
	}
	for len(p) > 0 {
		k := min(len(p), 2*r.size-len(r.raw))
		r.raw, p = append(r.raw, p[:k]...), p[k:]
		// What has size bytes behind it would be overwritten at once.
		if len(r.raw) == 2*r.size {
			r.total += int64(r.lines.length(r.raw[:r.size]))
			r.raw = r.raw[:copy(r.raw, r.raw[r.size:])]
		}
	}
	r.changed()
	return n, nil
}

// convert puts what waits in raw into the ring. Called with mu held.
func (r *ring) convert() {
	if len(r.raw) == 0 {
		return
	}
	r.put(r.lines.add(make([]byte, 0, len(r.raw)+len(r.raw)/8), r.raw))
	r.raw = r.raw[:0]
	if cap(r.raw) > 64<<10 {
		r.raw = nil // a flood is rare
	}
}

// put adds bytes as readers get them. Called with mu held.
func (r *ring) put(p []byte) {
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
		r.convert() // frees raw
		r.ended = true
		r.changed()
	}
}

// read waits for bytes from offset on. It returns a copy of at most limit of them, the offset after them, and how many bytes after
// offset were lost, because the ring has overwritten them. The error is io.EOF at the end of the stream, or that of ctx.
func (r *ring) read(ctx context.Context, offset int64, limit int) (data []byte, next, lost int64, err error) {
	for {
		r.mu.Lock()
		r.convert()
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
