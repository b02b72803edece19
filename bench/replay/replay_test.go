package replay

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pairs are files in two versions: those that Go's own source carries along as dependencies and those in the module cache.
func pairs(t testing.TB) (out [][3]string) {
	env := func(args ...string) string {
		b, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	root, cache := env("env", "GOROOT"), env("env", "GOMODCACHE")
	for _, vendor := range []string{"src/vendor", "src/cmd/vendor"} {
		top := filepath.Join(root, vendor)
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return nil
			}
			rel, _ := filepath.Rel(top, path)
			parts := strings.SplitN(filepath.ToSlash(rel), "/", 4)
			if len(parts) < 4 || parts[0] != "golang.org" {
				return nil
			}
			others, _ := filepath.Glob(filepath.Join(cache, parts[0], parts[1], parts[2]+"@*", parts[3]))
			for _, other := range others {
				a, err1 := os.ReadFile(path)
				b, err2 := os.ReadFile(other)
				if err1 == nil && err2 == nil && string(a) != string(b) && len(a) < 60_000 {
					out = append(out, [3]string{rel, string(a), string(b)})
				}
			}
			return nil
		})
	}
	return out
}

// drawnFrom is how many cases are made for each one that is judged. A module cache that others fill has hundreds of versions, and making
// the cases of all of them takes longer than judging these.
const drawnFrom = 20

// Whatever is damaged, no wrong text is written, and nobody writes more right ones. PILLION_REPLAY=all takes all cases.
func TestNoWrongWrite(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 26))
	most := 700
	if raceDetector {
		most = 70 // enough for the workers to meet; scripts/gotest.sh runs all of them without it, in a quarter of the time
	}
	if os.Getenv("PILLION_REPLAY") == "all" {
		most = math.MaxInt
	}
	// A case has its whole file twice, and a module cache may have thousands of versions: only what is judged is kept, each case with the
	// same chance.
	var cases []Case
	seen := 0
	all := pairs(t)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, p := range all {
		if seen/drawnFrom >= most {
			break
		}
		for _, c := range Cases(r, p[0], p[1], p[2]) {
			if seen++; len(cases) < most {
				cases = append(cases, c)
			} else if i := r.IntN(seen); i < most {
				cases[i] = c
			}
		}
	}
	if seen < 300 {
		t.Skipf("only %d cases: the module cache has no other versions of what GOROOT vendors", seen)
	}
	judge(t, cases)
}

// Edits that are wrong by their form, over every engine: what was made already, abbreviations, line numbers, invented lines.
func TestNoWrongWriteUnderAttack(t *testing.T) {
	if raceDetector {
		t.Skip("judges with TestNoWrongWrite's workers; scripts/gotest.sh runs this test without the race detector")
	}
	r := rand.New(rand.NewPCG(20, 27))
	all := pairs(t)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var cases, symbols []Case
	for _, p := range all[:min(len(all), 80)] {
		cases = append(cases, Attacks(r, p[0], p[1], p[2], 6)...)
		if len(symbols) < 60 {
			symbols = append(symbols, Symbols(r, p[0], p[1], 2)...)
		}
	}
	if len(cases) < 100 {
		t.Skipf("only %d cases: the module cache has no other versions of what GOROOT vendors", len(cases))
	}
	kinds := map[string]bool{}
	for _, c := range append(cases, symbols...) {
		kinds[c.Kind] = true
	}
	if n := len(AttackKinds) + len(SymbolKinds); len(kinds) < n*2/3 {
		t.Errorf("%d of %d kinds have a case", len(kinds), n)
	}
	judge(t, cases)
	judgeSymbols(t, symbols)
}

// Histories that this repository has never seen: PILLION_HISTORIES names a file with two folders on a line, an older and a newer
// version of one project; PILLION_STORIES takes Stories of them, with "attacks" Attacks, or with "symbols" Symbols; PILLION_SEED and PILLION_CASES (10,000) choose what is drawn from them.
func TestNoWrongWriteInHistories(t *testing.T) {
	list, err := os.ReadFile(os.Getenv("PILLION_HISTORIES"))
	if err != nil {
		t.Skip("PILLION_HISTORIES names no list of histories")
	}
	seed, _ := strconv.ParseUint(os.Getenv("PILLION_SEED"), 10, 64)
	most, err := strconv.Atoi(os.Getenv("PILLION_CASES"))
	if err != nil {
		most = 10_000
	}
	r := rand.New(rand.NewPCG(seed, 26))
	make := Between
	if os.Getenv("PILLION_STORIES") != "" { // other damages; see StoryKinds
		make = func(r *rand.Rand, before, after string) ([]Case, error) { return StoriesBetween(r, before, after, 12) }
	}
	if os.Getenv("PILLION_STORIES") == "attacks" {
		make = func(r *rand.Rand, before, after string) ([]Case, error) { return AttacksBetween(r, before, after, 12) }
	}
	if os.Getenv("PILLION_STORIES") == "symbols" {
		make = func(r *rand.Rand, before, after string) ([]Case, error) { return SymbolsBetween(r, before, after, 12) }
	}
	histories := strings.Split(strings.TrimSpace(string(list)), "\n")
	var cases []Case
	for _, line := range histories {
		var before, after string
		if _, err := fmt.Sscan(line, &before, &after); err != nil {
			t.Fatal(line, err)
		}
		found, err := make(r, before, after)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%7d cases: %s", len(found), before)
		r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		cases = append(cases, found[:min(len(found), 3*most/len(histories))]...) // no project outweighs all others
	}
	r.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	cases = cases[:min(len(cases), most)]
	if os.Getenv("PILLION_STORIES") == "symbols" {
		judgeSymbols(t, cases)
		return
	}
	judge(t, cases)
}

// judgeSymbols fails for every wrong text of symbol_replace.
func judgeSymbols(t *testing.T, cases []Case) {
	t.Logf("%d cases\n%s", len(cases), Score(cases, []Peer{{OursSymbol.Name, func(c Case) (string, bool) {
		got, ok := OursSymbol.Apply(c)
		if verdict, _ := (Peer{Apply: func(Case) (string, bool) { return got, ok }}).Judge(c); verdict == Wrong {
			t.Errorf("symbol_replace, %s, %s %s:\n%s\n%s", c.Kind, c.File, c.Whole, c.New, differ(got, c.Want))
		}
		return got, ok
	}}}))
}

// judge fails for every wrong text of Pillion, and where a peer has more right ones.
func judge(t *testing.T, cases []Case) {
	s := Score(cases, Peers)
	t.Logf("%d cases\n%s", len(cases), s)
	shown := 0
	for _, peer := range []Peer{Ours, OursPatch} {
		for _, c := range cases {
			verdict, got := peer.Judge(c)
			if verdict == Wrong {
				if shown++; shown <= 40 {
					t.Errorf("%s, %s %s, %s:\nold %q\nnew %q\n%s", peer.Name, c.Kind, c.Whole, c.File, c.Old, c.New, differ(got, c.Want))
				}
			}
		}
	}
	for _, peer := range Peers[2:] {
		if a, b := s.Total(Ours.Name)[Right], s.Total(peer.Name)[Right]; a < b {
			t.Errorf("%d right, %s %d", a, peer.Name, b)
		}
	}
}

// differ is the first lines that differ.
func differ(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	cut := func(l []string) string { return strings.Join(l[max(0, i-2):min(len(l), i+4)], "\n\t") }
	return "got\n\t" + cut(a) + "\nwant\n\t" + cut(b)
}
