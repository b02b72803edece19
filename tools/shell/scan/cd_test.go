package scan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Where cd leads, from which folders a failure leaves the shell, and what it depends on: the disk, and what may be gone.
func TestWhereTheShellGoes(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/deep", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	sub, deep := filepath.Join(dir, "sub"), filepath.Join(dir, "sub", "deep")
	for _, c := range []struct {
		name    string
		args    []Word
		removes bool
		to      []string // nil: unknown
		stays   bool     // a failure is possible and leaves the shell where it was
	}{
		{"there now", []Word{Plain("sub")}, false, []string{sub}, false},
		{"there, but something may have removed it", []Word{Plain("sub")}, true, []string{sub}, true},
		{"not there", []Word{Plain("new")}, false, []string{filepath.Join(dir, "new")}, true},
		{"home", nil, false, []string{"/home/me"}, true},
		{"by its link", []Word{Plain("link/..")}, false, []string{dir}, false},
		{"by what the link leads to", []Word{Plain("-P"), Plain("link/..")}, false, []string{sub}, true},
		{"a wildcard", []Word{{Values: []Value{{Text: "s*", Pattern: "s*", Glob: true}}}}, false, []string{sub}, false},
		{"one of two", []Word{{Values: []Value{Literal("sub"), Literal("sub/deep")}}}, false, []string{sub, deep}, false},
		{"anywhere", []Word{Unknown()}, false, nil, true},
		{"too many words", []Word{Plain("sub"), Plain("sub")}, false, []string{dir}, true},
		{"back, before it has been anywhere", []Word{Plain("-")}, false, nil, true},
	} {
		w := newWalker(Request{Dir: dir, Root: dir, Home: "/home/me", Patience: time.Minute}, silent{}, &Analysis{})
		w.mover.removes = c.removes
		st := &state{dirs: []string{dir}}
		fail := w.mover.cd(c.args, st)
		if st.unknown != (c.to == nil) || c.to != nil && !slices.Equal(st.dirs, c.to) {
			t.Errorf("%s: in %q (unknown: %v), want %q", c.name, st.dirs, st.unknown, c.to)
		}
		if stays := !fail.unknown && slices.Equal(fail.dirs, []string{dir}); stays != c.stays && !slices.Equal(c.to, []string{dir}) {
			t.Errorf("%s: after a failure in %q, stays: want %v", c.name, fail.dirs, c.stays)
		}
	}
}

// popd leads back to where pushd came from, and nowhere that is known when the stack is empty.
func TestPopdLeadsBack(t *testing.T) {
	dir := t.TempDir()
	w := newWalker(Request{Dir: dir, Root: dir, Patience: time.Minute}, silent{}, &Analysis{})
	st := &state{dirs: []string{dir}}
	w.mover.pushd([]Word{Plain("/")}, st)
	if !slices.Equal(st.dirs, []string{"/"}) || len(st.stack) != 1 {
		t.Fatalf("after pushd: %+v", st)
	}
	if popd(nil, st); !slices.Equal(st.dirs, []string{dir}) || st.unknown {
		t.Errorf("after popd: %+v", st)
	}
	if popd(nil, st); !st.unknown {
		t.Errorf("popd of an empty stack leads to %q", st.dirs)
	}
}
