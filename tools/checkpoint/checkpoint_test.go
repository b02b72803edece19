package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// project is a folder of files in memory, with the history of what was applied to it.
type project struct {
	files map[string]string
	steps []Step
	n     int
}

func (p *project) present(path string) (string, bool) {
	t, ok := p.files[path]
	return t, ok
}

// apply carries a set out as the pipeline does.
func (p *project) apply(set *change.Set) {
	for _, f := range set.Files {
		delete(p.files, f.Path)
		switch f.Kind {
		case change.Delete:
		case change.Rename:
			p.files[f.NewPath] = f.New
		default:
			p.files[f.Path] = f.New
		}
	}
	p.steps = append(p.steps, Step{Set: set})
}

// agent changes files: name → new text, "" deletes.
func (p *project) agent(texts map[string]string) *change.Set {
	var list []change.File
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		old, there := p.files[path]
		f := change.File{Path: path, Kind: change.Edit, Old: old, New: texts[path]}
		switch {
		case !there:
			f.Kind = change.Create
		case f.New == "":
			f.Kind = change.Delete
		}
		list = append(list, f)
	}
	return p.agentFiles(list...)
}

func (p *project) agentFiles(list ...change.File) *change.Set {
	p.n++
	set := change.New(fmt.Sprint("s", p.n), list)
	p.apply(set)
	return set
}

// back goes back to before the step with this index, and applies that.
func (p *project) back(t *testing.T, from int, want Want) *Plan {
	t.Helper()
	steps := slices.Clone(p.steps)
	for i := range steps {
		steps[i].After = i >= from
	}
	p.n++
	plan, err := New(fmt.Sprint("r", p.n), steps, want, p.present, same)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Set.Files) > 0 {
		p.apply(plan.Set)
	}
	return plan
}

func same(s *change.Set) (*change.Set, error) { return s, nil }

func each(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

// R10: a restore can be undone, and touches only changed files.
func TestR10ARestoreCanBeUndoneAndTouchesOnlyChangedFiles(t *testing.T) {
	p := &project{files: map[string]string{"/a": each("1", "2", "3"), "/b": "b\n", "/same": "same\n"}}
	before := maps.Clone(p.files)
	p.agent(map[string]string{"/a": each("1", "two", "3"), "/b": "", "/new": "new\n"})
	p.agent(map[string]string{"/a": each("one", "two", "3")})
	after := maps.Clone(p.files)
	plan := p.back(t, 0, Want{})
	if !maps.Equal(p.files, before) {
		t.Fatalf("not as it was: %q", p.files)
	}
	for _, o := range plan.Outcomes {
		if o.Status != Restored || o.Path == "/same" {
			t.Errorf("%+v", o)
		}
	}
	p.back(t, 2, Want{}) // before the restore
	if !maps.Equal(p.files, after) {
		t.Fatalf("not as before the restore: %q", p.files)
	}
	p.back(t, 1, Want{}) // the second edit only, over a restore and its undo that come out even
	if p.files["/a"] != each("1", "two", "3") || p.files["/new"] != "new\n" {
		t.Fatalf("before the second edit: %q", p.files)
	}
	p.back(t, 4, Want{})
	if !maps.Equal(p.files, after) {
		t.Fatalf("undone again: %q", p.files)
	}
}

func TestARestoreKeepsWhatThePersonWrote(t *testing.T) {
	p := &project{files: map[string]string{"/a": each("1", "2", "3", "4", "5"), "/b": each("1", "2", "3"), "/c": "c\n"}}
	p.agent(map[string]string{"/a": each("1", "TWO", "3", "4", "5"), "/b": each("1", "TWO", "3"), "/c": "C\n"})
	p.files["/a"] = each("1", "TWO", "3", "4", "mine") // in other lines, between two changes of the agent
	p.agent(map[string]string{"/a": each("1", "TWO!", "3", "4", "mine")})
	p.files["/b"] = each("1", "TWO and mine", "3") // in the same line
	plan := p.back(t, 0, Want{})
	if want := each("1", "2", "3", "4", "mine"); p.files["/a"] != want {
		t.Errorf("/a is %q", p.files["/a"])
	}
	if p.files["/b"] != each("1", "TWO and mine", "3") || p.files["/c"] != "c\n" {
		t.Errorf("/b %q /c %q", p.files["/b"], p.files["/c"])
	}
	got := map[string]Status{}
	for _, o := range plan.Outcomes {
		got[o.Path] = o.Status
		if o.Status == Conflict && !strings.Contains(o.Reason, "line 2") {
			t.Errorf("reason %q", o.Reason)
		}
	}
	if want := map[string]Status{"/a": Merged, "/b": Conflict, "/c": Restored}; !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if s := plan.String(); s != "2 files restored (1 of them merged with what you wrote since), 1 not changed: you changed the same lines" {
		t.Error(s)
	}
}

func TestRestoreKinds(t *testing.T) {
	p := &project{files: map[string]string{"/a": each("1", "2"), "/bin": "\x00old", "/run": "x\n"}}
	before := maps.Clone(p.files)
	p.agentFiles(change.File{Path: "/a", NewPath: "/d/a", Kind: change.Rename, Old: each("1", "2"), New: each("1", "two")},
		change.File{Path: "/bin", Kind: change.Edit, Old: "\x00old", New: "\x00new", Binary: true},
		change.File{Path: "/run", Kind: change.Edit, Old: "x\n", New: "x\n", OldMode: 0o644, Mode: 0o755})
	p.agent(map[string]string{"/d/a": each("1", "two", "3")})
	p.agentFiles(change.File{Path: "/d/a", NewPath: "/e", Kind: change.Rename, Old: each("1", "two", "3"), New: each("1", "two", "3")})
	plan := p.back(t, 0, Want{})
	if !maps.Equal(p.files, before) {
		t.Errorf("%q", p.files)
	}
	for _, f := range plan.Set.Files {
		switch f.Path {
		case "/e":
			if f.Kind != change.Rename || f.NewPath != "/a" {
				t.Errorf("a rename comes back as %s to %s", f.Kind, f.NewPath)
			}
		case "/run":
			if f.Mode != 0o644 {
				t.Errorf("mode %o", f.Mode)
			}
		}
	}
	p.back(t, 3, Want{})
	if _, ok := p.files["/a"]; ok || p.files["/e"] != each("1", "two", "3") {
		t.Errorf("undone: %q", p.files)
	}
	p.files["/bin"] = "\x00mine"
	plan = p.back(t, 0, Want{Paths: []string{"/bin"}})
	if len(plan.Outcomes) != 1 || plan.Outcomes[0].Status != Conflict || p.files["/bin"] != "\x00mine" {
		t.Errorf("%+v %q", plan.Outcomes, p.files)
	}
}

func TestRestoreByFileAndByHunk(t *testing.T) {
	p := &project{files: map[string]string{"/a": each("1", "-", "2"), "/b": "b\n"}}
	s := p.agent(map[string]string{"/a": each("ONE", "-", "TWO"), "/b": "B\n"})
	p.back(t, 0, Want{Paths: []string{"/b"}})
	if p.files["/b"] != "b\n" || p.files["/a"] != each("ONE", "-", "TWO") {
		t.Fatalf("%q", p.files)
	}
	p.back(t, 0, Want{Refs: []change.Ref{{Set: s.ID, Path: "/a", Hunks: []string{"1.2"}}}})
	if p.files["/a"] != each("ONE", "-", "2") {
		t.Fatalf("%q", p.files)
	}
	p.back(t, 0, Want{})
	if p.files["/a"] != each("1", "-", "2") || p.files["/b"] != "b\n" {
		t.Fatalf("%q", p.files)
	}
	if _, err := New("x", p.steps, Want{Refs: []change.Ref{{Set: "nobody"}}}, p.present, same); err == nil {
		t.Error("unknown sets are an error")
	}
}

func TestAFileWhoseContentIsGoneIsSaid(t *testing.T) {
	p := &project{files: map[string]string{"/a": "1\n", "/b": "1\n"}}
	p.agent(map[string]string{"/a": "2\n"})
	p.agent(map[string]string{"/b": "2\n"})
	steps := []Step{{p.steps[0].Set, true}, {p.steps[1].Set, true}}
	plan, err := New("r", steps, Want{}, p.present, func(s *change.Set) (*change.Set, error) {
		if s.ID == "s1" {
			return nil, ErrPruned
		}
		return s, nil
	})
	if err != nil || len(plan.Set.Files) != 1 || plan.Set.Files[0].Path != "/b" {
		t.Fatal(plan, err)
	}
	if o := plan.Outcomes[1]; o.Path != "/a" || o.Status != Failed || !strings.Contains(o.Reason, "no longer kept") {
		t.Errorf("%+v", plan.Outcomes)
	}
}

// The agent and the person change files in turn, some of it is taken back and brought again; in the end all is taken
// back, and what is left is what the person wrote, byte for byte.
func TestRandomlyTakingAllBackLeavesThePersonsText(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 50
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		// Lines of the agent and of the person lie apart, so no merge has to guess.
		p := &project{files: map[string]string{}}
		mine := map[string][]string{}
		text := func(path string, theirs func(i int) string) string {
			var sb strings.Builder
			for i, l := range mine[path] {
				sb.WriteString(l + "\n--\n" + theirs(i) + "\n==\n")
			}
			return sb.String()
		}
		agents := map[string]map[int]string{}
		now := func(path string) string { return text(path, func(i int) string { return agents[path][i] }) }
		for k := range 3 {
			path := fmt.Sprint("/f", k)
			agents[path] = map[int]string{}
			for i := range 6 {
				mine[path] = append(mine[path], fmt.Sprint("p", k, i))
				agents[path][i] = fmt.Sprint("orig", k, i)
			}
			p.files[path] = now(path)
		}
		first := map[string]map[int]string{}
		for path, m := range agents {
			first[path] = maps.Clone(m)
		}
		for range 12 {
			path := fmt.Sprint("/f", r.IntN(3))
			switch r.IntN(4) {
			case 0, 1:
				for range 1 + r.IntN(3) {
					agents[path][r.IntN(6)] = fmt.Sprint("agent", r.IntN(1000))
				}
				if next := now(path); next != p.files[path] {
					p.agent(map[string]string{path: next})
				}
			case 2:
				mine[path][r.IntN(6)] = fmt.Sprint("person", r.IntN(1000)) + strings.Repeat("\nmore", r.IntN(2))
				p.files[path] = now(path)
			case 3:
				if n := len(p.steps); n > 0 {
					from := r.IntN(n)
					was := maps.Clone(p.files)
					if plan := p.back(t, from, Want{}); len(plan.Set.Files) > 0 {
						p.back(t, len(p.steps)-1, Want{}) // and forward again
					}
					if !maps.Equal(p.files, was) {
						t.Fatalf("seed %d: back and forward is not the same:\n%q\n%q", seed, was, p.files)
					}
				}
			}
		}
		plan := p.back(t, 0, Want{})
		for path := range mine {
			if want := text(path, func(i int) string { return first[path][i] }); p.files[path] != want {
				t.Fatalf("seed %d: %s is\n%s\nwant\n%s\n%+v", seed, path, p.files[path], want, plan.Outcomes)
			}
		}
	}
}

func TestBlobsKeepOneCopyAndSayWhatIsGone(t *testing.T) {
	b := &Blobs{Dir: filepath.Join(t.TempDir(), "c")}
	big := strings.Repeat("all work and no play\n", 100000)
	ref, err := b.Put(big)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := (&Blobs{Dir: b.Dir}).Put(big); again != ref {
		t.Error("another name for the same")
	}
	if got, err := b.Get(ref); err != nil || got != big {
		t.Error("not what was put", err)
	}
	info, err := os.Stat(b.path(ref))
	if err != nil || info.Size() > int64(len(big)/50) || info.Mode().Perm() != 0o600 {
		t.Error(info.Size(), info.Mode(), err)
	}
	for _, bad := range []string{"", "..", "../../etc/passwd", strings.Repeat("0", 63) + "/"} {
		if _, err := b.Get(bad); err == nil || errors.Is(err, ErrPruned) {
			t.Errorf("Get(%q): %v", bad, err)
		}
	}
	if err := os.WriteFile(b.path(ref), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ref); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

func TestPruneByAgeAndSize(t *testing.T) {
	b := &Blobs{Dir: filepath.Join(t.TempDir(), "c")}
	if err := b.Prune(Default); err != nil {
		t.Fatal("nothing there yet:", err)
	}
	var refs []string
	noise := rand.New(rand.NewPCG(1, 1))
	for i := range 4 {
		var text bytes.Buffer
		for range 1000 {
			fmt.Fprint(&text, noise.Uint64())
		}
		ref, err := b.Put(text.String())
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
		at := time.Now().Add(-time.Duration(4-i) * 24 * time.Hour)
		if err := os.Chtimes(b.path(ref), at, at); err != nil {
			t.Fatal(err)
		}
	}
	info, _ := os.Stat(b.path(refs[3]))
	if err := b.Prune(Limits{Age: 84 * time.Hour, Size: 2*info.Size() + 100}); err != nil {
		t.Fatal(err)
	}
	for i, ref := range refs {
		if _, err := b.Get(ref); (err == nil) != (i >= 2) || err != nil && !errors.Is(err, ErrPruned) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// R24: an event keeps hunks and references, never both whole texts.
func TestR24EventsKeepReferences(t *testing.T) {
	b := &Blobs{Dir: filepath.Join(t.TempDir(), "c")}
	long := strings.Repeat("a line of a long file\n", 500000) // 11 MB
	for _, c := range []struct {
		name string
		file change.File
		most int
	}{
		{"a line of a long file", change.File{Path: "/a", Kind: change.Edit, Old: long, New: long[:22] + "here\n" + long[22:]}, 1000},
		{"all of a long file", change.File{Path: "/a", Kind: change.Edit, Old: long, New: strings.ToUpper(long)}, 1000},
		{"a long new file", change.File{Path: "/a", Kind: change.Create, New: long}, 1000},
		{"a long file gone", change.File{Path: "/a", Kind: change.Delete, Old: long}, 1000},
		{"a short file", change.File{Path: "/a", Kind: change.Edit, Old: "1\n2", New: "1\n3"}, 1000},
		{"CRLF and no end", change.File{Path: "/a", Kind: change.Edit, Old: "1\r\n2\r\n3", New: "1\r\n\r\n3\r\n"}, 1000},
		{"an empty file", change.File{Path: "/a", Kind: change.Create}, 1000},
		{"emptied", change.File{Path: "/a", Kind: change.Edit, Old: "x"}, 1000},
		{"moved", change.File{Path: "/a", NewPath: "/b", Kind: change.Rename, Old: "x\n", New: "y\n"}, 1000},
		{"binary", change.File{Path: "/a", Kind: change.Edit, Old: "\x00\x01" + long, New: "\x00\x02" + long, Binary: true}, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := change.New("s", []change.File{c.file})
			packed, err := json.Marshal(b.Pack(set))
			if err != nil || len(packed) > c.most {
				t.Errorf("%d bytes in the event, %v", len(packed), err)
			}
			if f := set.Files[0]; f.Old != c.file.Old || f.New != c.file.New {
				t.Error("packing changed the set")
			}
			var stored change.Set
			if err := json.Unmarshal(packed, &stored); err != nil {
				t.Fatal(err)
			}
			whole, err := b.Load(&stored)
			if err != nil {
				t.Fatal(err)
			}
			got := whole.Files[0]
			if got.Old != c.file.Old || got.New != c.file.New || !slices.Equal(got.Hunks, set.Files[0].Hunks) {
				t.Errorf("not what was packed: %d %d bytes, %d hunks", len(got.Old), len(got.New), len(got.Hunks))
			}
			twice, err := b.Load(whole)
			if err != nil || twice.Files[0].New != c.file.New {
				t.Error("a whole set is not loaded again", err)
			}
		})
	}
}

func TestModesGoBackAndForthWithARestore(t *testing.T) {
	p := &project{files: map[string]string{"/run": "x\n", "/both": "1\n"}}
	p.agentFiles(
		change.File{Path: "/run", Kind: change.Edit, Old: "x\n", New: "x\n", OldMode: 0o644, Mode: 0o755},
		change.File{Path: "/made", Kind: change.Create, New: "#!\n", Mode: 0o755},
		change.File{Path: "/both", Kind: change.Edit, Old: "1\n", New: "2\n", OldMode: 0o600, Mode: 0o700})
	p.agentFiles(change.File{Path: "/both", Kind: change.Edit, Old: "2\n", New: "3\n", OldMode: 0o700, Mode: 0o750})
	modes := func(plan *Plan) map[string]uint32 {
		out := map[string]uint32{}
		for _, f := range plan.Set.Files {
			if f.Kind != change.Delete {
				out[f.Path] = f.Mode
			}
		}
		return out
	}
	if got, want := modes(p.back(t, 0, Want{})), map[string]uint32{"/run": 0o644, "/both": 0o600}; !maps.Equal(got, want) {
		t.Errorf("restored: %v, want %v", got, want)
	}
	if got, want := modes(p.back(t, 2, Want{})), map[string]uint32{"/run": 0o755, "/both": 0o750, "/made": 0o755}; !maps.Equal(got, want) {
		t.Errorf("the restore undone: %v, want %v", got, want)
	}
}

// Half of such an exchange is worse than none: the new is left where the old cannot come back.
func TestAFileThatBecameAFolderIsLeftAlone(t *testing.T) {
	for name, first := range map[string]map[string]string{"to a folder": {"/p/a": "text\n"}, "to a file": {"/p/a/b": "b\n", "/p/a/c": "c\n"}} {
		t.Run(name, func(t *testing.T) {
			p := &project{files: maps.Clone(first)}
			p.files["/p/other"] = "x\n"
			change := map[string]string{"/p/other": "y\n"}
			for path := range first {
				change[path] = ""
			}
			if name == "to a folder" {
				change["/p/a/b"], change["/p/a/deep/c"] = "b\n", "c\n"
			} else {
				change["/p/a"] = "text\n"
			}
			p.agent(change)
			was := maps.Clone(p.files)
			was["/p/other"] = "x\n"
			plan := p.back(t, 0, Want{})
			if !maps.Equal(p.files, was) {
				t.Errorf("now %q", p.files)
			}
			for _, o := range plan.Outcomes {
				if o.Path != "/p/other" && (o.Status != Conflict || !strings.Contains(o.Reason, "took each other's place")) {
					t.Errorf("%+v", o)
				}
			}
		})
	}
	// There and back again comes out even.
	p := &project{files: map[string]string{"/p/a": "one\n"}}
	p.agent(map[string]string{"/p/a": "two\n"})
	p.agent(map[string]string{"/p/a": "", "/p/a/b": "b\n"})
	p.agent(map[string]string{"/p/a/b": "", "/p/a": "three\n"})
	if p.back(t, 0, Want{}); !maps.Equal(p.files, map[string]string{"/p/a": "one\n"}) {
		t.Errorf("now %q", p.files)
	}
}

// A change and the restore that undid it are even. What the person wrote over both since is no conflict, because neither is undone.
func TestWhatWasUndoneIsNotUndoneAgain(t *testing.T) {
	p := &project{files: map[string]string{"/a": each("1", "2", "3")}}
	p.agent(map[string]string{"/a": each("1", "two", "3")})
	p.back(t, 0, Want{})
	p.files["/a"] = each("1", "mine", "3")
	for _, o := range p.back(t, 0, Want{}).Outcomes {
		if o.Status != Unchanged {
			t.Errorf("%+v", o)
		}
	}
	if p.files["/a"] != each("1", "mine", "3") {
		t.Errorf("now %q", p.files["/a"])
	}
}

// A text that never existed before is called merged, in its file only.
func TestOnlyAFileThatThePersonChangedIsMerged(t *testing.T) {
	for _, mine := range []string{"/a", "/b"} {
		p := &project{files: map[string]string{"/a": each("1", "2", "3", "4", "5"), "/b": each("1", "2", "3", "4", "5")}}
		for _, text := range []string{"two", "TWO"} {
			p.agent(map[string]string{"/a": each("1", text, "3", "4", "5")})
			p.agent(map[string]string{"/b": each("1", text, "3", "4", "5")})
		}
		p.files[mine] = each("1", "TWO", "3", "4", "mine")
		for _, o := range p.back(t, 0, Want{}).Outcomes {
			want := Restored
			if o.Path == mine {
				want = Merged
			}
			if o.Status != want {
				t.Errorf("%s was changed: %+v", mine, o)
			}
		}
	}
}

// Earlier releases have stored contents under these names.
func TestWhereContentsAreKept(t *testing.T) {
	b := &Blobs{Dir: t.TempDir()}
	ref, err := b.Put("hello\n")
	if err != nil {
		t.Fatal(err)
	}
	const sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	if ref != sum {
		t.Errorf("it is called %s", ref)
	}
	other := filepath.Join(b.Dir, "58", sum[2:]+".z")
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	// The bytes of another content under its name are damage, though they can be read.
	wrong, err := b.Put("else\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.path(wrong), other); err != nil {
		t.Fatal(err)
	}
	if text, err := b.Get(ref); err == nil {
		t.Errorf("got %q", text)
	}
}

// Without a limit nothing is too old or too much.
func TestPruneWithoutLimits(t *testing.T) {
	b := &Blobs{Dir: t.TempDir()}
	ref, err := b.Put("old\n")
	if err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-1000 * 24 * time.Hour)
	if err := os.Chtimes(b.path(ref), then, then); err != nil {
		t.Fatal(err)
	}
	if err := b.Prune(Limits{}); err != nil {
		t.Fatal(err)
	}
	if text, err := b.Get(ref); err != nil || text != "old\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// What is stored of a change gives the change back, however large it is and of whatever kind; storing it again changes nothing.
func TestAPackedChangeIsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	text := func(n int) string {
		var sb strings.Builder
		for range n {
			fmt.Fprintf(&sb, "line %d\n", r.IntN(50+n*n*n))
		}
		return strings.TrimSuffix(sb.String(), []string{"", "\n"}[r.IntN(2)])
	}
	stored := func(s *change.Set) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	large := 0
	for range 60 {
		var list []change.File
		for i := range 1 + r.IntN(3) {
			n := []int{0, 1, 5, 200, 2500}[r.IntN(5)]
			f := change.File{Path: fmt.Sprint("/f", i), Kind: change.Edit, Old: text(n), New: text(n)}
			switch r.IntN(7) {
			case 0:
				f.Kind, f.Old = change.Create, ""
			case 1:
				f.Kind, f.New = change.Delete, ""
			case 2:
				f.Kind, f.NewPath = change.Rename, "/new"
			case 3:
				f.New, f.Mode, f.OldMode = f.Old, 0o755, 0o644
			case 4:
				f.New = f.Old[:len(f.Old)/2] + "between\n" + f.Old[len(f.Old)/2:]
			}
			list = append(list, f)
		}
		set := change.New("s", list)
		b := &Blobs{Dir: t.TempDir()}
		packed := b.Pack(set)
		if again := b.Pack(packed); stored(again) != stored(packed) {
			t.Fatalf("packed twice:\n%.600s\n%.600s", stored(again), stored(packed))
		}
		whole, err := (&Blobs{Dir: b.Dir}).Load(packed)
		if err != nil || stored(whole) != stored(set) {
			t.Fatalf("%v\ngot  %.600s\nwant %.600s", err, stored(whole), stored(set))
		}
		proposed := Outline(set)
		for i, f := range packed.Files {
			size := 0
			for j, h := range f.Hunks {
				size += len(h.OldText) + len(h.NewText)
				if o := proposed.Files[i].Hunks[j]; o.OldStart != h.OldStart || o.OldLines != h.OldLines || o.NewLines != h.NewLines || o.NewText != h.NewText {
					t.Fatalf("proposed as %+v, applied as %+v", o, h)
				}
			}
			if size > maxInline {
				t.Fatalf("%d bytes stay in the event", size)
			}
			if stripped(f.Hunks) {
				large++
			}
		}
		if _, err := b.Load(proposed); err == nil || !strings.Contains(err.Error(), "only proposed") {
			t.Fatalf("a proposal was loaded: %v", err)
		}
	}
	if large < 5 {
		t.Errorf("only %d large changes", large)
	}
	// Where nothing can be stored the event keeps it all.
	list := change.New("s", []change.File{{Path: "/a", Kind: change.Edit, Old: text(8000), New: text(8000)}})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (&Blobs{Dir: filepath.Join(file, "below")}).Pack(list); stored(got) != stored(list) {
		t.Error("a change that cannot be stored is lost")
	}
}

// A set of many files is read from the disk once.
func TestASetIsLoadedOnceForAPlan(t *testing.T) {
	p := &project{files: map[string]string{}}
	p.agent(map[string]string{"/a": "a\n", "/b": "b\n", "/c": "c\n"})
	p.steps[0].After = true
	loads := 0
	plan, err := New("r", p.steps, Want{}, p.present, func(s *change.Set) (*change.Set, error) { loads++; return s, nil })
	if err != nil || len(plan.Set.Files) != 3 || loads != 1 {
		t.Errorf("%d loads, %v", loads, err)
	}
}

// A reference without a path names all files of its set, and no others; the plan says so in one line.
func TestASetIsTakenBackByName(t *testing.T) {
	p := &project{files: map[string]string{}}
	p.agent(map[string]string{"/a": "a\n", "/b": "b\n"})
	p.agent(map[string]string{"/c": "c\n"})
	plan := p.back(t, 9, Want{Refs: []change.Ref{{Set: "s1"}}})
	if !maps.Equal(p.files, map[string]string{"/c": "c\n"}) || plan.String() != "2 files restored" {
		t.Errorf("%v: %s", p.files, plan)
	}
	if plan := p.back(t, 9, Want{Refs: []change.Ref{{Set: "s2", Path: "/c"}}}); len(p.files) != 0 || plan.String() != "1 file restored" {
		t.Errorf("%v: %s", p.files, plan)
	}
}

// Beyond the size the oldest go first, in whatever order their names are.
func TestPruneBeginsWithTheOldest(t *testing.T) {
	b := &Blobs{Dir: t.TempDir()}
	var refs []string
	for i := range 6 {
		ref, err := b.Put(fmt.Sprint("content ", i))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	size := int64(0)
	for i, ref := range refs {
		at := time.Now().Add(-time.Duration(i) * time.Hour) // the first by name is the youngest
		if err := os.Chtimes(b.path(ref), at, at); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(b.path(ref)); err == nil && i < 2 {
			size += info.Size()
		}
	}
	if err := b.Prune(Limits{Size: size}); err != nil {
		t.Fatal(err)
	}
	for i, ref := range refs {
		if _, err := b.Get(ref); (err == nil) != (i < 2) {
			t.Errorf("%d of %d: %v", i, len(refs), err)
		}
	}
}

// What is kept is the project's source code: only its owner may look into the folders.
func TestContentsAreTheOwners(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	b := &Blobs{Dir: filepath.Join(t.TempDir(), "c")}
	ref, err := b.Put("secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{b.Dir, filepath.Dir(b.path(ref))} {
		if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, fi.Mode(), err)
		}
	}
	if fi, err := os.Stat(b.path(ref)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}
