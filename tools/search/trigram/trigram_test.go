package trigram

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// parsed is an expression as the search compiles it.
func parsed(t testing.TB, expr string) *syntax.Regexp {
	t.Helper()
	re, err := syntax.Parse(expr, syntax.Perl|syntax.UnicodeGroups)
	if err != nil {
		t.Fatal(err)
	}
	return re.Simplify()
}

// grams are the trigrams of a text, line by line.
func grams(text string) map[uint32]bool {
	out := map[uint32]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		for i := 0; i+3 <= len(line); i++ {
			out[uint32(line[i])<<16|uint32(line[i+1])<<8|uint32(line[i+2])] = true
		}
	}
	return out
}

func TestQueryDemands(t *testing.T) {
	for _, c := range []struct{ expr, yes, no string }{
		{"foobar", "a foobar b", "foob bar"},
		{"foo|bar", "xbarx", "fo ba"},
		{"(?i)foo", "FoO", "fo"},
		{"(?i)kelvin", "\u212aelvin", "kelvi n"},
		{"func (New|Old)Name", "func OldName", "func Name"},
		{"interface|internal", "internal", "inter"},
		{"a[bc]d", "acd", "aed"},
		{"colou?r", "color", "colo"},
		{"ab+cd", "abcd", "abbbc"},
		{"(ab|cd)ef", "cdef", "ef ab"},
		{`\bword\b`, "word", "wor"},
		{"^abc$", "abc", "ab"},
		{"世", "世界", "界"},
		{"x(abc)?y", "xy abc", "\x00none"},
		{"foo.*bar", "bar foo", "foo ba"},
	} {
		q := For(parsed(t, c.expr))
		for text, want := range map[string]bool{c.yes: true, c.no: false} {
			have := grams(text)
			if got := q.accepts(func(g uint32) bool { return have[g] }); got != want && (want || q.Narrows()) {
				t.Errorf("%s accepts %q: %v", c.expr, text, got)
			}
		}
	}
	for _, expr := range []string{".*", "ab", "a.b.c", "[a-z]+", "", "x*", "(abc)?", `\x{fffd}`, "a\uFFFDb\uFFFDc", "(?s)."} {
		if q := For(parsed(t, expr)); q.Narrows() {
			t.Errorf("%s demands %+v", expr, q)
		}
	}
	if q := For(parsed(t, "[^\\x00-\\x{10FFFF}]abc")); q.op != nothing {
		t.Errorf("a class without members: %+v", q)
	}
}

// randomExpression nests what queries look into. Its alphabet is small, so that texts match often.
func randomExpression(r *rand.Rand, depth int) string {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	if depth == 0 {
		return pick("a", "b", "c", "ab", "abc", "bca", "k", "s", "é", "世", ".", "[ab]", "[^a]", "[a-c]", `\w`, `\d`, "1", `\b`, "^", "$", "\uFFFD", "[\uFFFDa]", "ſ", "", "x{2}")
	}
	sub := func() string { return randomExpression(r, depth-1) }
	switch r.IntN(6) {
	case 0:
		return "(?:" + sub() + "|" + sub() + ")"
	case 1:
		return "(" + sub() + ")" + pick("", "*", "+", "?", "{1,2}", "{2}", "+?")
	case 2:
		return "(?i:" + sub() + ")"
	default:
		return sub() + sub()
	}
}

func randomLine(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString([]string{"a", "b", "c", "A", "B", "C", "K", "k", "\u212a", "s", "S", "ſ", "é", "É", "世", "1", "x", " ", "\xff", "\uFFFD", "\x00"}[r.IntN(21)])
	}
	return b.String()
}

// The soundness of everything: where the expression matches a line, the query accepts its trigrams.
func TestAMatchIsAccepted(t *testing.T) {
	matches, narrowed := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		expr := randomExpression(r, 1+r.IntN(4))
		tree, err := syntax.Parse(expr, syntax.Perl|syntax.UnicodeGroups)
		if err != nil {
			continue
		}
		q := For(tree.Simplify())
		if q.Narrows() {
			narrowed++
		}
		re := regexp.MustCompile(expr)
		for range 40 {
			line := randomLine(r)
			if !re.MatchString(line) {
				continue
			}
			matches++
			have := grams(line)
			if !q.accepts(func(g uint32) bool { return have[g] }) {
				t.Fatalf("seed %d: %q matches %q, but the query %+v excludes it", seed, expr, line, q)
			}
		}
	}
	if matches < 1000 || narrowed < 300 {
		t.Errorf("%d matches, %d queries that narrow: the test tests nothing", matches, narrowed)
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{"abc", "(?i)kelvin", "a(b|cd)+e", "[a-c]{2,3}x", "x\uFFFDy", `^\bfoo$`} {
		f.Add(s, "abc Kelvin abbe")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		tree, err := syntax.Parse(expr, syntax.Perl|syntax.UnicodeGroups)
		if err != nil || len(expr) > 200 {
			return
		}
		q := For(tree.Simplify())
		re, err := regexp.Compile(expr)
		if err != nil {
			return
		}
		for line := range strings.SplitSeq(text, "\n") {
			// A match in one line, as the search demands it.
			if at := re.FindStringIndex(line); at != nil {
				have := grams(line)
				if !q.accepts(func(g uint32) bool { return have[g] }) {
					t.Errorf("%q matches %q, but %+v excludes it", expr, line, q)
				}
			}
		}
	})
}

// document is a text of the tests.
type document struct{ folder, name, text string }

func written(t testing.TB, docs []document) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "base.idx")
	w, err := NewWriter(path, "/the/root")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range docs {
		for p := range slices.Chunk([]byte(d.text), 7) { // pieces that cut trigrams
			w.Text(p)
		}
		w.Doc(d.folder, d.name, State{Size: int64(len(d.text)), Modified: int64(i) - 5, Changed: 1 << 60, Inode: 1<<64 - 1})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the segment: %v %v", left, err)
	}
	return path
}

// some makes documents of words; those of a folder follow one another.
func some(r *rand.Rand, n int) []document {
	var docs []document
	for i := range n {
		var b strings.Builder
		for range 50 + r.IntN(400) {
			fmt.Fprintf(&b, "w%x%s", r.IntN(5000), []string{" ", "\n", "é"}[r.IntN(3)])
		}
		docs = append(docs, document{fmt.Sprintf("d%03d", i/20), fmt.Sprintf("f%02d\n", i%20), b.String()})
	}
	return docs
}

func opened(t testing.TB, path string) *Segment {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSegmentAnswersForEveryDocument(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	docs := some(r, 700)
	s := opened(t, written(t, docs))
	group := map[string]int{}
	i := 0
	if err := s.Each(func(folder string, ds []Doc) bool {
		for _, d := range ds {
			want := docs[i]
			if folder != want.folder || d.Name != want.name || d.State != (State{int64(len(want.text)), int64(i) - 5, 1 << 60, 1<<64 - 1}) {
				t.Errorf("document %d is %s %+v", i, folder, d)
			}
			group[folder+"/"+d.Name] = d.Group
			i++
		}
		return true
	}); err != nil || i != len(docs) || s.Docs() != len(docs) {
		t.Fatal(i, err)
	}
	if root, err := s.Root(); root != "/the/root" || err != nil {
		t.Error(root, err)
	}
	excluded := 0
	for _, d := range docs[:200] {
		for range 5 {
			from := r.IntN(len(d.text) - 9)
			part := d.text[from : from+3+r.IntN(6)]
			if strings.Contains(part, "\n") || !utf8.ValidString(part) {
				continue
			}
			set, err := s.Match(For(parsed(t, regexp.QuoteMeta(part))))
			if err != nil {
				t.Fatal(err)
			}
			if !set.Has(group[d.folder+"/"+d.name]) {
				t.Fatalf("%q is in %s/%s, and its group is not found", part, d.folder, d.name)
			}
			excluded += s.Groups() - set.count()
		}
	}
	if excluded == 0 {
		t.Error("nothing was ever excluded")
	}
	for _, expr := range []string{"zzz", "(?i)QQQ", "w1.*zzzz"} {
		if set, err := s.Match(For(parsed(t, expr))); err != nil || set.count() != 0 {
			t.Errorf("%s: %d groups, %v", expr, set.count(), err)
		}
	}
	if set, err := s.Match(Query{}); err != nil || set.count() != s.Groups() {
		t.Error(set.count(), err)
	}
}

// Many runs give the same file as one.
func TestSpilledRunsAreMerged(t *testing.T) {
	docs := some(rand.New(rand.NewPCG(5, 6)), 300)
	whole, err := os.ReadFile(written(t, docs))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "base.idx")
	w, err := NewWriter(path, "/the/root")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range docs {
		w.Text([]byte(d.text))
		w.Doc(d.folder, d.name, State{Size: int64(len(d.text)), Modified: int64(i) - 5, Changed: 1 << 60, Inode: 1<<64 - 1})
		if w.docs == 0 { // a group has just ended
			w.spill()
		}
	}
	if len(w.runs) < 5 {
		t.Fatal(len(w.runs), "runs")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(whole) {
		t.Errorf("%d and %d bytes, %v", len(got), len(whole), err)
	}
}

func TestAnEmptySegment(t *testing.T) {
	s := opened(t, written(t, nil))
	if set, err := s.Match(For(parsed(t, "abc"))); err != nil || set.count() != 0 || s.Groups() != 0 {
		t.Error(set, err)
	}
}

func TestADocumentThatWasSkippedIsNotNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	w, err := NewWriter(path, "/")
	if err != nil {
		t.Fatal(err)
	}
	w.Text([]byte("ab"))
	w.Skip()
	w.Text([]byte("cdef"))
	w.Doc("", "a", State{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := opened(t, path)
	if set, err := s.Match(For(parsed(t, "abc"))); err != nil || set.count() != 0 {
		t.Error("texts of two documents were joined", err)
	}
	if s.Docs() != 1 {
		t.Error(s.Docs())
	}
}

// Whatever byte of a segment is changed and wherever it is cut off: an error, or the answer of the whole one.
func TestDamageIsAnErrorAndNeverAWrongAnswer(t *testing.T) {
	docs := some(rand.New(rand.NewPCG(8, 9)), 60)
	path := written(t, docs)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string]Set{}
	whole := opened(t, path)
	for _, d := range docs {
		expr := regexp.QuoteMeta(strings.Fields(d.text)[3])
		if queries[expr], err = whole.Match(For(parsed(t, expr))); err != nil {
			t.Fatal(err)
		}
	}
	answers := func(s *Segment) error {
		n := 0
		if err := s.Each(func(string, []Doc) bool { n++; return true }); err != nil {
			return err
		}
		for expr, want := range queries {
			got, err := s.Match(For(parsed(t, expr)))
			if err != nil {
				return err
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: another answer", expr)
			}
		}
		return nil
	}
	r := rand.New(rand.NewPCG(1, 1))
	bad := filepath.Join(t.TempDir(), "bad.idx")
	found := 0
	for range 300 {
		b := slices.Clone(good)
		switch r.IntN(4) {
		case 0:
			b = b[:r.IntN(len(b))]
		case 1:
			b = append(b, b[r.IntN(len(b)):]...)
		default:
			b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		}
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(bad)
		if err == nil {
			err = answers(s)
			s.Close()
		}
		if err != nil {
			found++
		}
	}
	if found < 290 { // a byte behind the data, in the padding of the footer, is under its checksum as well
		t.Errorf("only %d of 300 damages were noticed", found)
	}
	// Cut off while it is open.
	if err := os.WriteFile(bad, good, 0o600); err != nil {
		t.Fatal(err)
	}
	s := opened(t, bad)
	if err := os.Truncate(bad, 100); err != nil {
		t.Fatal(err)
	}
	if err := answers(s); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// FuzzSegment gives the reader files whose checksums are right and whose content is not.
func FuzzSegment(f *testing.F) {
	good, err := os.ReadFile(written(f, some(rand.New(rand.NewPCG(8, 9)), 3)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, 20, byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at int, x byte) {
		if len(b) < footerSize {
			return
		}
		b = slices.Clone(b)
		if at >= 0 && at < len(b)-footerSize {
			b[at] ^= x
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, resummed(b), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(path)
		if err != nil {
			return
		}
		defer s.Close()
		_ = s.Each(func(string, []Doc) bool { return true })
		for _, expr := range []string{"abc", "(?i)w1", "w11|w22|w3[0-9]"} {
			_, _ = s.Match(For(parsed(t, expr)))
		}
		_, _ = s.Root()
	})
}

func TestQueriesOfLongExpressionsStaySmall(t *testing.T) {
	for _, expr := range []string{strings.Repeat("abcdefgh", 200), "(?i)" + strings.Repeat("sk", 300), strings.Repeat("(a|b|c|d)", 50), strings.Repeat("[a-p]", 60)} {
		n := 0
		var count func(q Query)
		count = func(q Query) {
			n++
			for _, s := range q.sub {
				count(s)
			}
		}
		count(For(parsed(t, expr)))
		if n > maxWindows*(maxCombinations*8+1) {
			t.Errorf("%.20s…: %d parts", expr, n)
		}
	}
}
