package replay

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Table counts verdicts by kind of case and peer.
type Table struct {
	Counts map[string]map[string][3]int // by kind, by peer
	Peers  []string
}

// Score judges all cases.
func Score(cases []Case, peers []Peer) *Table {
	t := &Table{Counts: map[string]map[string][3]int{}}
	for _, p := range peers {
		t.Peers = append(t.Peers, p.Name)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	work := make(chan Case)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for c := range work {
				for _, p := range peers {
					v, _ := p.Judge(c)
					mu.Lock()
					if t.Counts[c.Kind] == nil {
						t.Counts[c.Kind] = map[string][3]int{}
					}
					n := t.Counts[c.Kind][p.Name]
					n[v]++
					t.Counts[c.Kind][p.Name] = n
					mu.Unlock()
				}
			}
		})
	}
	for _, c := range cases {
		work <- c
	}
	close(work)
	all.Wait()
	return t
}

// Total is a peer's right, refused and wrong over all kinds.
func (t *Table) Total(peer string) (n [3]int) {
	for _, by := range t.Counts {
		for i, k := range by[peer] {
			n[i] += k
		}
	}
	return n
}

// String is a Markdown table: right/refused/wrong.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| quotation or file | cases | %s |\n|---|---|%s\n", strings.Join(t.Peers, " | "), strings.Repeat("---|", len(t.Peers)))
	row := func(name string, of func(peer string) [3]int) {
		n := of(t.Peers[0])
		fmt.Fprintf(&b, "| %s | %d |", name, n[0]+n[1]+n[2])
		for _, p := range t.Peers {
			n := of(p)
			fmt.Fprintf(&b, " %d / %d / %d |", n[0], n[1], n[2])
		}
		b.WriteByte('\n')
	}
	for _, kind := range allKinds() {
		if t.Counts[kind] != nil {
			row(kind, func(p string) [3]int { return t.Counts[kind][p] })
		}
	}
	row("**all**", t.Total)
	return b.String()
}

// allKinds are those of Cases, of Stories, of Chains, of Attacks and of Symbols, each once.
func allKinds() []string {
	all := slices.Clone(Kinds)
	for _, kind := range slices.Concat(StoryKinds, ChainKinds, AttackKinds, SymbolKinds) {
		if !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	return all
}
