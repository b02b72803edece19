package lspbridge

import (
	"encoding/json"

	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/protocol"
)

// syncOptions are what a server wants to be told of texts.
type syncOptions struct {
	open   bool // didOpen and didClose
	change int  // 0 none, 1 full, 2 incremental
	save   bool // didSave
	text   bool // … with the text
}

// readSync reads textDocumentSync: a number or an object. A server that says nothing of it (small ones forget to) is
// told everything; one that says "none" is told nothing.
func readSync(raw json.RawMessage) syncOptions {
	if !has(raw) {
		return syncOptions{open: true, change: 1}
	}
	var n int
	if json.Unmarshal(raw, &n) == nil {
		return syncOptions{open: n > 0, change: n, save: n > 0}
	}
	var o struct {
		OpenClose *bool           `json:"openClose"`
		Change    int             `json:"change"`
		Save      json.RawMessage `json:"save"`
	}
	_ = json.Unmarshal(raw, &o)
	out := syncOptions{open: o.Change > 0, change: o.Change, save: has(o.Save)}
	if o.OpenClose != nil {
		out.open = out.open || *o.OpenClose // changes of what was never opened say nothing
	}
	var save struct{ IncludeText bool }
	_ = json.Unmarshal(o.Save, &save)
	out.text = save.IncludeText
	return out
}

// wishes are what the server wants to be told now: what it announced, and what it registered since, for whatever
// documents: more than it asked for does no harm. c.mu is held.
func (c *client) wishes() syncOptions {
	w := c.caps.texts
	for _, r := range c.regs {
		switch r.Method {
		case protocol.MethodTextDocumentDidOpen:
			w.open = true
		case protocol.MethodTextDocumentDidChange:
			w.open = true
			if w.change == 0 {
				w.change = r.SyncKind
			}
		case protocol.MethodTextDocumentDidSave:
			w.save, w.text = true, w.text || r.IncludeText
		}
	}
	return w
}

// readsDisk reports a server that takes no texts: it sees what has been written, and nothing that is proposed.
func (c *client) readsDisk() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.wishes().open
}

// ofDisk is the answer of a server that takes no texts, with what it has said by itself.
func (c *client) ofDisk() serverVerdict {
	return serverVerdict{state: change.Unavailable, mute: true, reason: c.spec.ID + " takes no texts: it reads written files, and says of them what it likes when it likes", files: c.snapshot()}
}
