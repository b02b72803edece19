package lspbridge

import (
	"slices"
	"strings"
	"sync"
)

// notices tell the person about servers, each text once: every edit would repeat it.
type notices struct {
	o *Options

	mu      sync.Mutex
	noticed map[string]bool // guarded by mu; server and text of what has been said
}

// notice reports a text about a server.
func (n *notices) notice(server, text string) { n.once(n.o.Notice, server, text) }

// missing reports that a server's program is not installed. Linters are left out: a project works without them.
func (n *notices) missing(row Server, why error) {
	if row.Extra {
		return
	}
	tell := n.o.Missing
	if tell == nil {
		tell = n.o.Notice
	}
	n.once(tell, row.ID, why.Error()+". Edits to "+strings.Join(append(slices.Clone(row.Extensions), row.Filenames...), ", ")+" files are not checked by it.")
}

// once calls tell, without the lock, unless the same text has been reported before.
func (n *notices) once(tell func(server, text string), server, text string) {
	n.mu.Lock()
	if n.noticed == nil {
		n.noticed = map[string]bool{}
	}
	first := !n.noticed[server+text]
	n.noticed[server+text] = true
	n.mu.Unlock()
	if first && tell != nil {
		tell(server, text)
	}
}
