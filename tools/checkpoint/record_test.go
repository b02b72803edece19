package checkpoint

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

var update = flag.Bool("update", false, "write testdata/record.txt anew")

// recorded is how many sessions testdata/record.txt has, a line each. It is written anew by: go test ./tools/checkpoint -run Recorded -update.
// Before it is committed, look at some of the plans that changed: the test prints the first one whole.
const recorded = 2500

// member is a change of one of a few paths, some of which are folders of others, as the files are now.
func member(r *rand.Rand, p *project) (change.File, bool) {
	paths := []string{"/p/a", "/p/b", "/p/d", "/p/d/x", "/p/d/y/z", "/q"}
	f := change.File{Path: paths[r.IntN(len(paths))]}
	text := func(old string) string {
		lines := strings.SplitAfter(old, "\n")
		switch i := r.IntN(len(lines)); r.IntN(4) {
		case 0:
			lines = slices.Insert(lines, i, fmt.Sprintf("added %d\n", r.IntN(90)))
		case 1:
			lines[i] = fmt.Sprintf("changed %d\n", r.IntN(90))
		case 2:
			lines = slices.Delete(lines, i, i+1)
		default:
			lines = append(lines, "end\n")
			lines[0] = "first\n"
		}
		return strings.Join(lines, "")
	}
	old, there := p.files[f.Path]
	switch {
	case !there:
		f.Kind = change.Create
		for i := range 3 + r.IntN(9) {
			f.New += fmt.Sprintf("line %d of %s\n", i, f.Path)
		}
		if r.IntN(3) == 0 {
			f.Folders = []string{"/p/d", "/p/d/y"}
		}
	case r.IntN(5) == 0:
		f.Kind, f.Old = change.Delete, old
	case r.IntN(5) == 0:
		f.Kind, f.Old, f.New, f.NewPath = change.Rename, old, old, paths[r.IntN(len(paths))]
		if _, taken := p.files[f.NewPath]; taken || f.NewPath == f.Path {
			return f, false
		}
		if r.IntN(2) == 0 {
			f.New = text(old)
		}
	default:
		f.Kind, f.Old, f.New = change.Edit, old, text(old)
	}
	if r.IntN(6) == 0 {
		f.Mode, f.OldMode = 0o755, 0o644
	}
	if r.IntN(8) == 0 {
		f.Encoding = []string{"utf-16le", "latin1"}[r.IntN(2)]
	}
	if r.IntN(12) == 0 {
		f.Binary, f.Encoding, f.OldEncoding = true, "base64", []string{"", "utf-8"}[r.IntN(2)]
	}
	return f, f.Old != f.New || f.Kind == change.Rename || f.Mode != 0
}

// planned is what a session of one seed came to: its plans, one after the other, some of which were carried out.
func planned(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 3))
	p := &project{files: map[string]string{"/p/a": "one\ntwo\nthree\nfour\nfive\nsix\n", "/q": "q\n"}}
	gone := map[string]bool{} // sets whose contents are not kept any more
	load := func(s *change.Set) (*change.Set, error) {
		if gone[s.ID] {
			return nil, errors.New("is no longer kept")
		}
		return s, nil
	}
	var out strings.Builder
	for range 4 + r.IntN(10) {
		switch k := r.IntN(12); {
		case k < 6: // the agent
			var list []change.File
			for range 1 + r.IntN(2) {
				f, ok := member(r, p)
				if ok && !slices.ContainsFunc(list, func(o change.File) bool {
					return o.Path == f.Path || o.NewPath == f.Path || o.Path == f.NewPath || o.NewPath != "" && o.NewPath == f.NewPath
				}) {
					list = append(list, f)
				}
			}
			if len(list) > 0 {
				p.agentFiles(list...)
			}
		case k < 8: // the person
			if f, ok := member(r, p); ok && f.Kind != change.Rename {
				if p.files[f.Path] = f.New; f.Kind == change.Delete {
					delete(p.files, f.Path)
				}
			}
		case k == 8 && r.IntN(3) == 0 && len(p.steps) > 0:
			gone[p.steps[r.IntN(len(p.steps))].Set.ID] = true
		default: // a plan
			steps := slices.Clone(p.steps)
			from := r.IntN(len(steps) + 1)
			for i := range steps {
				steps[i].After = i >= from
			}
			var want Want
			switch r.IntN(5) {
			case 0:
				want.Paths = []string{"/p/a", "/nowhere"}
			case 1, 2:
				if len(steps) == 0 {
					break
				}
				for range 1 + r.IntN(2) {
					s := steps[r.IntN(len(steps))].Set
					f := s.Files[r.IntN(len(s.Files))]
					ref := change.Ref{Set: s.ID}
					if r.IntN(2) == 0 {
						ref.Path = f.Path
					}
					if len(f.Hunks) > 0 && r.IntN(2) == 0 {
						for _, h := range f.Hunks {
							if r.IntN(2) == 0 {
								ref.Hunks = append(ref.Hunks, h.ID)
							}
						}
					}
					if r.IntN(9) == 0 {
						ref.Set = "nobody's"
					}
					want.Refs = append(want.Refs, ref)
				}
			}
			p.n++
			plan, err := New(fmt.Sprint("r", p.n), steps, want, p.present, load)
			if err != nil {
				fmt.Fprintf(&out, "%+v: %v\n", want, err)
				continue
			}
			fmt.Fprintf(&out, "%+v from %d: %s\n%+v\n", want, from, plan, plan.Outcomes)
			for _, f := range plan.Set.Files {
				fmt.Fprintf(&out, "  %s %s %s %q -> %q mode %o %o %s %s %v %v %+v\n", f.Kind, f.Path, f.NewPath, f.Old, f.New, f.Mode, f.OldMode, f.Encoding, f.OldEncoding, f.Binary, f.Folders, f.Takes)
			}
			if len(plan.Set.Files) > 0 && r.IntN(2) == 0 {
				p.apply(plan.Set)
			}
		}
	}
	return out.String()
}

// What thousands of sessions can take back, in whole and in part, is recorded, as a digest: a change of the package that changes a plan is
// seen, and must be meant.
func TestPlansAreAsRecorded(t *testing.T) {
	const path = "testdata/record.txt"
	var got []string
	for seed := range uint64(recorded) {
		sum := sha256.Sum256([]byte(planned(seed)))
		got = append(got, fmt.Sprintf("%x", sum[:4]))
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(b))
	if len(want) != recorded {
		t.Fatalf("%d sessions are recorded", len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("session %d is another than recorded:\n%s", i, planned(uint64(i)))
		}
	}
}
