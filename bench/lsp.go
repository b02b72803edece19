package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

const howLSP = `A generated project for each server, the edited file of 1,000 lines. Each change puts a new, numbered error into its last line; the time
is from the change to an answer that names exactly this error and that the bridge calls fresh. Raw is a minimal client
on a second process of the same server: it sends the one line that changed and waits for what ends first (gopls: the end of the
diagnosis of the whole workspace, or a pull of the one file; TypeScript 5: tsserver's own requests; TypeScript 7 and pyright: pull; clangd:
the push of the version, asked for at once). An answer without the error, or with an older one, ends the measurement: nothing stale was seen. The check
before approval proposes a text, compares the problems, and takes it back.`

// language is a server and a project it can be measured on.
type language struct {
	id, file string // what the page calls the server; the edited file
	bin      string // where it is below .cache/servers; "" is node_modules/.bin
	command  []string
	files    func() map[string]string
	error    string // the last line with a mistake; %s is its name
	way      func(*rawServer, int) error
	ways     string
}

func (b *bench) lsp() {
	for _, l := range languages() {
		b.language(l)
	}
}

func (b *bench) language(l language) {
	if l.program() == "" {
		fmt.Printf("  %s: %s is not installed\n", l.id, l.command[0])
		return
	}
	base := l.files()[l.file]
	text := func(i int) string { return base + fmt.Sprintf(l.error, name(i)) + "\n" }

	// Two copies, so that neither server profits from what the other has cached.
	ours, raw := b.project(l.id+"-ours"), b.project(l.id+"-raw")
	for _, dir := range []string{ours, raw} {
		for f, t := range l.files() {
			b.write(filepath.Join(dir, f), t)
		}
	}
	var mu sync.Mutex
	current := base
	path := filepath.Join(ours, l.file)
	m := lspbridge.New(lspbridge.Options{Root: ours, Bin: l.bins(), Idle: -1, Buffer: func(p string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		return current, p == path
	}})
	defer m.Close(context.Background())
	s := b.rawServer(l, raw, base)
	defer s.close()

	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Minute)
	defer cancel()
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh {
		failf("%s: the first diagnostics are %s: %s", l.id, r.Certainty, r.Reason)
	}
	check(s.warm(l.ways == "pull"))

	i := 0
	bridged := func() float64 {
		i++
		mu.Lock()
		current = text(i)
		mu.Unlock()
		began := time.Now()
		r := m.Diagnostics(ctx, path)
		took := ms(time.Since(began))
		if r.Certainty != change.Fresh || !names(r.Items, i) {
			failf("%s, change %d: %s %s, %d problems without %s", l.id, i, r.Certainty, r.Reason, len(r.Items), name(i))
		}
		return took
	}
	j := 0
	direct := func() float64 {
		j++
		began := time.Now()
		check(s.change(fmt.Sprintf(l.error, name(j)) + "\n"))
		check(l.way(s, j))
		return ms(time.Since(began))
	}
	// A bridge that answers at once lets the server do more work behind the answer; a pause would hide it.
	n := b.rounds(100)
	got := inTurns(n, bridged, direct)
	b.add(Row{What: l.id + ": change → fresh diagnostics", Unit: "ms", Ours: got[0], Beside: got[1], BesideName: "raw, " + l.ways, Target: Target{Ratio: 1.10}, Note: fmt.Sprintf("%d changes, none stale", i)})

	if l.id == "gopls" {
		got = inTurns(n/2, bridged, func() float64 {
			j++
			began := time.Now()
			check(s.change(fmt.Sprintf(l.error, name(j)) + "\n"))
			check(s.pull(j))
			took := ms(time.Since(began))
			check(s.ended(j)) // not counted: the rest of the workspace
			return took
		})
		b.add(Row{What: "gopls: the same", Unit: "ms", Ours: got[0], Beside: got[1], BesideName: "raw, pull of one file", Note: "the bridge's answer is of the whole workspace"})
	}

	mu.Lock()
	current = base
	mu.Unlock()
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh {
		failf("%s: %s %s", l.id, r.Certainty, r.Reason)
	}
	got = inTurns(b.rounds(40), func() float64 {
		i++
		began := time.Now()
		d := m.Check(ctx, []lspbridge.Proposal{{Path: path, Text: text(i)}})
		took := ms(time.Since(began))
		if d.Certainty != change.Fresh || !names(d.Introduced, i) {
			failf("%s, check %d: %s %s", l.id, i, d.Certainty, d.Reason)
		}
		return took
	}, direct)
	b.add(Row{What: l.id + ": check before approval", Unit: "ms", Ours: got[0], Beside: got[1], BesideName: "raw change, " + l.ways, Target: Target{Over: 300}})
}

// name is the numbered mistake; the end keeps missing1 out of missing12.
func name(i int) string { return fmt.Sprintf("missing%dx", i) }

func names(items []change.Problem, i int) bool {
	found := false
	for _, d := range items {
		if strings.Contains(d.Message, name(i)) {
			found = true
		} else if strings.Contains(d.Message, "missing") {
			return false // an older one
		}
	}
	return found
}
