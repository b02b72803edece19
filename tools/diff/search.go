package diff

import (
	"hash/maphash"
	"sort"
	"time"
	"unicode/utf8"

	dmp "github.com/sergi/go-diff/diffmatchpatch"
)

const (
	budget   = 250 * time.Millisecond // for the library in one comparison; after that, the remaining gaps count as replaced
	maxRunes = 1_000_000              // distinct lines one search can number as runes (the library panics above 1,112,058)
)

// Strings compares two sequences (lines, words) and returns the edits that turn a into b, in the form of Script.Edits. It
// finishes within the budget; two runs on slow machines may differ in how fine the edits are, never in being correct.
func Strings(a, b []string) []Edit {
	// Most edits touch a few lines of a large text. The common beginning and end cost one comparison for each line, and without
	// them the hash table below is small.
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	suf := 0
	for suf < len(a)-pre && suf < len(b)-pre && a[len(a)-1-suf] == b[len(b)-1-suf] {
		suf++
	}
	ma, mb := a[pre:len(a)-suf], b[pre:len(b)-suf]
	if len(ma) == 0 && len(mb) == 0 {
		return nil
	}
	var pairs []pair
	if len(ma) > 0 && len(mb) > 0 {
		s := number(ma, mb)
		s.deadline = time.Now().Add(budget)
		pairs = s.match()
	}
	edits := make([]Edit, 0, 8)
	i, j := 0, 0 // in ma and mb: all before is matched or in an edit
	emit := func(p, q int) {
		if p > i || q > j {
			edits = append(edits, Edit{pre + i, pre + p, pre + j, pre + q})
		}
	}
	for _, p := range pairs {
		emit(p.a, p.b)
		i, j = p.a+p.n, p.b+p.n
	}
	emit(len(ma), len(mb))
	return slide(a, b, edits)
}

// pair is a run of n common lines, at a in the old and b in the new sequence.
type pair struct{ a, b, n int }

// search holds the lines that occur on both sides, as numbers (ids). Lines of one side only are left out, so neighbours in fa need not
// be neighbours in the text; xa and xb lead back to it.
type search struct {
	fa, fb   []int32   // ids of the lines of each side, in order
	xa, xb   []int32   // index in the sequence that is compared, for each entry of fa and fb
	ca, cb   []int32   // by id: how often it occurs on each side
	deadline time.Time // when the budget is used up
}

// number gives equal lines equal ids and leaves out those that only one side has, as they cannot match. The hash table uses open
// addressing and is at most half full; its seed is new in each call, so that no file can be crafted to make it slow.
func number(a, b []string) *search {
	size := 16
	for size < 2*(len(a)+len(b)) {
		size *= 2
	}
	seed := maphash.MakeSeed()
	table := make([]int32, size) // id+1
	var text []string
	var hash []uint64
	ids := make([]int32, len(a)+len(b))
	put := func(s string) int32 {
		h := maphash.String(seed, s)
		for i := h & uint64(size-1); ; i = (i + 1) & uint64(size-1) {
			switch id := table[i]; {
			case id == 0:
				text = append(text, s)
				hash = append(hash, h)
				table[i] = int32(len(text))
				return int32(len(text) - 1)
			case hash[id-1] == h && text[id-1] == s:
				return id - 1
			}
		}
	}
	for i, s := range a {
		ids[i] = put(s)
	}
	for i, s := range b {
		ids[len(a)+i] = put(s)
	}
	r := &search{ca: make([]int32, len(text)), cb: make([]int32, len(text))}
	for _, id := range ids[:len(a)] {
		r.ca[id]++
	}
	for _, id := range ids[len(a):] {
		r.cb[id]++
	}
	for i, id := range ids[:len(a)] {
		if r.cb[id] > 0 {
			r.fa, r.xa = append(r.fa, id), append(r.xa, int32(i))
		}
	}
	for i, id := range ids[len(a):] {
		if r.ca[id] > 0 {
			r.fb, r.xb = append(r.fb, id), append(r.xb, int32(i))
		}
	}
	return r
}

// match finds the common lines: anchors first, then the gaps between them by the library. The result is in order, with adjacent pairs
// joined, so that a long common part is one pair.
func (s *search) match() []pair {
	var out []pair
	add := func(i, j int) { // in filtered indices
		a, b := int(s.xa[i]), int(s.xb[j])
		if k := len(out) - 1; k >= 0 && out[k].a+out[k].n == a && out[k].b+out[k].n == b {
			out[k].n++
			return
		}
		out = append(out, pair{a, b, 1})
	}
	i, j := 0, 0
	// The pair of length 0 is the end of both sides: it closes the last gap.
	for _, p := range append(s.anchors(), pair{len(s.fa), len(s.fb), 0}) {
		if p.a < i || p.b < j {
			continue // already part of the run that follows an earlier anchor
		}
		s.gap(i, p.a, j, p.b, add)
		if p.n == 0 {
			break
		}
		i, j = p.a, p.b
		for i < len(s.fa) && j < len(s.fb) && s.fa[i] == s.fb[j] {
			add(i, j)
			i++
			j++
		}
	}
	return out
}

// anchors are lines that occur exactly once on each side, as many of them as are in the same order on both: the longest increasing
// subsequence of their places, with a binary search for each line (patience diff).
func (s *search) anchors() []pair {
	// The place of each id in fb. For ids that occur more than once it is the last place, which the loop below does not use.
	at := make([]int32, len(s.cb))
	for j, id := range s.fb {
		at[id] = int32(j)
	}
	type node struct{ a, b, prev int32 } // a place in fa and fb; the node before it in the run, -1 for none
	var nodes []node
	var tails []int32 // tails[k]: node that ends the best run of length k+1
	for i, id := range s.fa {
		if s.ca[id] != 1 || s.cb[id] != 1 {
			continue
		}
		j := at[id]
		k := len(tails)
		if k > 0 && nodes[tails[k-1]].b > j {
			k = sort.Search(len(tails), func(x int) bool { return nodes[tails[x]].b > j })
		}
		prev := int32(-1)
		if k > 0 {
			prev = tails[k-1]
		}
		nodes = append(nodes, node{int32(i), j, prev})
		if k == len(tails) {
			tails = append(tails, 0)
		}
		tails[k] = int32(len(nodes) - 1)
	}
	out := make([]pair, len(tails))
	if len(tails) > 0 {
		for k, n := len(tails)-1, tails[len(tails)-1]; k >= 0; k-- {
			out[k] = pair{int(nodes[n].a), int(nodes[n].b), 1}
			n = nodes[n].prev
		}
	}
	return out
}

// gap matches fa[i:p] with fb[j:q], between two anchors. Equal lines at both ends are paired here, so that the library,
// which costs most, sees only what is left.
func (s *search) gap(i, p, j, q int, add func(i, j int)) {
	for i < p && j < q && s.fa[i] == s.fb[j] {
		add(i, j)
		i++
		j++
	}
	tail := 0
	for p > i && q > j && s.fa[p-1] == s.fb[q-1] {
		p--
		q--
		tail++
	}
	if i < p && j < q {
		s.library(i, p, j, q, add)
	}
	// Added last, as pairs must come in order.
	for k := range tail {
		add(p+k, q+k)
	}
}

// library runs go-diff over a gap. The library compares runes, so the lines of the gap get numbers of their own, from 1: a gap has few
// distinct lines, while the whole text may have more than there are runes. Without time left, or with too many distinct lines, nothing
// is matched and the gap counts as replaced.
func (s *search) library(i, p, j, q int, add func(i, j int)) {
	left := time.Until(s.deadline)
	if left <= 0 {
		return
	}
	local := make(map[int32]rune, p-i)
	runes := func(ids []int32) []rune {
		r := make([]rune, len(ids))
		for k, id := range ids {
			n, ok := local[id]
			if !ok {
				n = rune(len(local)) + 1
				if n >= 0xD800 {
					n += 0x800 // skip the surrogates, which a string cannot hold
				}
				local[id] = n
			}
			r[k] = n
		}
		return r
	}
	ra, rb := runes(s.fa[i:p]), runes(s.fb[j:q])
	if len(local) > maxRunes {
		return
	}
	d := dmp.New()
	// On a timeout the library returns what it has. 0 would mean no limit; left is positive here.
	d.DiffTimeout = left
	for _, x := range d.DiffMainRunes(ra, rb, false) {
		n := utf8.RuneCountInString(x.Text)
		switch x.Type {
		case dmp.DiffDelete:
			i += n
		case dmp.DiffInsert:
			j += n
		default:
			for range n {
				add(i, j)
				i++
				j++
			}
		}
	}
}
