package acp

import (
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// liveProblems passes the problems of language servers to one connection. A slow editor gets the latest report of
// each file and not every one in between. Memory is bounded by the number of files, whatever a language server sends.
type liveProblems struct {
	mu      sync.Mutex // guards what follows
	listen  func(lspbridge.FileReport)
	pending map[string]lspbridge.FileReport // by path
	order   []string                        // paths, oldest report first
	sending bool
}

// put queues a report. It never waits; without a listener the report is dropped.
func (l *liveProblems) put(r lspbridge.FileReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listen == nil {
		return
	}
	if l.pending == nil {
		l.pending = map[string]lspbridge.FileReport{}
	}
	// A newer report takes the place of the older one in the order, so that a file that changes all the time does not
	// starve.
	if _, ok := l.pending[r.Path]; !ok {
		l.order = append(l.order, r.Path)
	}
	l.pending[r.Path] = r
	if !l.sending {
		l.sending = true
		go l.deliver()
	}
}

// deliver calls the listener until the queue is empty. One goroutine runs at a time, so reports stay in order.
func (l *liveProblems) deliver() {
	for {
		l.mu.Lock()
		if len(l.order) == 0 || l.listen == nil {
			l.sending, l.order, l.pending = false, nil, nil
			l.mu.Unlock()
			return
		}
		path := l.order[0]
		l.order = l.order[1:]
		r, listen := l.pending[path], l.listen
		delete(l.pending, path)
		l.mu.Unlock()
		// The lock is free here: the listener writes to a connection, which may wait.
		listen(r)
	}
}

// follow sets the listener; nil removes it.
func (l *liveProblems) follow(f func(lspbridge.FileReport)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listen = f
}

// ProblemHub passes the problems of language servers to every connection. It is shared by all folders of the process:
// an editor gets the problems of files that it has not opened too.
type ProblemHub struct {
	mu  sync.Mutex
	all []*liveProblems // guarded by mu; replaced, never changed in place
}

// Put passes a report on. It does not wait for editors.
func (h *ProblemHub) Put(r lspbridge.FileReport) {
	h.mu.Lock()
	all := h.all
	h.mu.Unlock()
	for _, l := range all {
		l.put(r)
	}
}

// join adds a connection until leave is called.
func (h *ProblemHub) join() (l *liveProblems, leave func()) {
	l = &liveProblems{}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(slices.Clone(h.all), l)
	return l, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = slices.DeleteFunc(slices.Clone(h.all), func(x *liveProblems) bool { return x == l })
	}
}

// sendProblems sends _pillion/diagnostics/updated, if the editor has announced it. Positions count from 0, in UTF-16
// code units.
func (c *conn) sendProblems(r lspbridge.FileReport) {
	if !c.editor.Client().Does(protocol.MethodPillionDiagnosticsUpdated) {
		return
	}
	place := func(p lspbridge.Position) protocol.Position {
		return protocol.Position{Line: int64(p.Line), Character: int64(p.Character)}
	}
	out := protocol.DiagnosticsUpdated{URI: c.editor.Buffers.URI(r.Path), Certainty: string(r.Certainty), Reason: r.Reason, Diagnostics: []protocol.FileDiagnostic{}}
	// 0 means that the document is not open: the report is of the file on disk.
	if r.Version > 0 {
		v := int64(r.Version)
		out.Version = &v
	}
	for _, d := range r.Items {
		at := lspbridge.ProblemRange(d)
		out.Diagnostics = append(out.Diagnostics, protocol.FileDiagnostic{Range: protocol.Range{Start: place(at.Start), End: place(at.End)},
			Severity: int64(d.Severity.Number()), Code: d.Code, Source: d.Source, Message: d.Message})
	}
	c.notify(protocol.MethodPillionDiagnosticsUpdated, out)
}
