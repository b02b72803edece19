package lspbridge

import (
	"slices"
	"strings"
	"sync"
)

// notices shows the person texts about servers, each once: else every edit would repeat them.
type notices struct {
	o *Options

	mu      sync.Mutex
	noticed map[string]bool // guarded by mu; server and text of each notice shown
	// concerned holds the ids of the servers whose notices are shown: a question was about a file of their language, or much of the project
	// is in it. held keeps the notices of the others: a question about a whole project also starts the server for its one YAML file, and a
	// notice that this server is not installed would only disturb.
	concerned map[string]bool     // guarded by mu
	held      map[string][]func() // guarded by mu; by server id
}

// concern marks these servers as concerned, and shows their held notices.
func (n *notices) concern(slots []*slot) {
	n.mu.Lock()
	if n.concerned == nil {
		n.concerned, n.held = map[string]bool{}, map[string][]func(){}
	}
	var say []func()
	for _, s := range slots {
		id := s.name()
		n.concerned[id] = true
		say = append(say, n.held[id]...)
		delete(n.held, id)
	}
	n.mu.Unlock()
	for _, f := range say {
		f()
	}
}

// notice shows a text about a server, once.
func (n *notices) notice(server, text string) { n.reportOnce(n.o.Notice, server, text) }

// reportMissing tells the person that a server's program is not installed. Linters are left out: a project works without them.
func (n *notices) reportMissing(row Server, why error) {
	if row.Extra {
		return
	}
	tell := n.o.Missing
	if tell == nil {
		tell = n.o.Notice
	}
	// The first line is a notice's title in editors that have notices; they offer to install the server, and need the rest less.
	what, how, more := strings.Cut(why.Error(), "; ")
	text := what + ". Edits to " + strings.Join(append(slices.Clone(row.Extensions), row.Filenames...), ", ") + " files are not checked by it."
	if more {
		text += "\n" + strings.ToUpper(how[:1]) + how[1:] + "."
	}
	n.reportOnce(tell, row.ID, text)
}

// reportOnce calls tell, without holding the lock, unless the same text was reported before. For a server that is not concerned yet, the
// call is held until concern names it.
func (n *notices) reportOnce(tell func(server, text string), server, text string) {
	n.mu.Lock()
	if n.noticed == nil {
		n.noticed = map[string]bool{}
	}
	first := !n.noticed[server+text]
	n.noticed[server+text] = true
	if first && tell != nil && !n.concerned[server] {
		if n.held == nil {
			n.concerned, n.held = map[string]bool{}, map[string][]func(){}
		}
		n.held[server] = append(n.held[server], func() { tell(server, text) })
		first = false
	}
	n.mu.Unlock()
	if first && tell != nil {
		tell(server, text)
	}
}
