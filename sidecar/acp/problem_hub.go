package acp

import (
	"slices"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// liveProblems takes what the language servers say to whoever listens. A slow listener gets the newest word on each
// file, not all of them.
type liveProblems struct {
	mu      sync.Mutex // guards what follows
	listen  func(lspbridge.FileReport)
	waiting map[string]lspbridge.FileReport // by path
	order   []string
	telling bool
}

// put never waits; without a listener what it is told is gone.
func (l *liveProblems) put(r lspbridge.FileReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listen == nil {
		return
	}
	if l.waiting == nil {
		l.waiting = map[string]lspbridge.FileReport{}
	}
	if _, ok := l.waiting[r.Path]; !ok {
		l.order = append(l.order, r.Path)
	}
	l.waiting[r.Path] = r
	if !l.telling {
		l.telling = true
		go l.tell()
	}
}

// tell ends when nothing waits any more.
func (l *liveProblems) tell() {
	for {
		l.mu.Lock()
		if len(l.order) == 0 || l.listen == nil {
			l.telling, l.order, l.waiting = false, nil, nil
			l.mu.Unlock()
			return
		}
		path := l.order[0]
		l.order = l.order[1:]
		r, listen := l.waiting[path], l.listen
		delete(l.waiting, path)
		l.mu.Unlock()
		listen(r)
	}
}

// follow sets who listens; nil ends it.
func (l *liveProblems) follow(f func(lspbridge.FileReport)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listen = f
}

// ProblemHub hands what the language servers say to every connection.
type ProblemHub struct {
	mu  sync.Mutex
	all []*liveProblems // guarded by mu; replaced, never changed in place
}

// Put hands a report of a language server to every connection. It does not wait for their editors.
func (h *ProblemHub) Put(r lspbridge.FileReport) {
	h.mu.Lock()
	all := h.all
	h.mu.Unlock()
	for _, l := range all {
		l.put(r)
	}
}

// join makes a listener of a connection; leave ends it.
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

// tellProblems sends _pillion/diagnostics/updated where it is understood.
func (c *conn) tellProblems(r lspbridge.FileReport) {
	if !c.editor.Client().Does(protocol.MethodPillionDiagnosticsUpdated) {
		return
	}
	place := func(p lspbridge.Position) protocol.Position {
		return protocol.Position{Line: int64(p.Line), Character: int64(p.Character)}
	}
	out := protocol.DiagnosticsUpdated{URI: c.editor.Buffers.URI(r.Path), Certainty: string(r.Certainty), Reason: r.Reason, Diagnostics: []protocol.FileDiagnostic{}}
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
