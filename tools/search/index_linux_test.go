package search

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// withIndex returns a searcher whose index of root is ready, and the index. The goroutine of the index does not run: tests do its steps.
func withIndex(t *testing.T, root, ripgrep string) (*Searcher, *projectIndex) {
	t.Helper()
	s := New(Options{Ripgrep: ripgrep, Index: &IndexOptions{Dir: filepath.Join(t.TempDir(), "index")}})
	t.Cleanup(s.Close)
	x := s.indexOf(root)
	x.stop = func() {} // started, so that no search starts it
	close(x.done)
	indexNow(t, x)
	return s, x
}

// indexNow makes the list and the segment of an index.
func indexNow(t *testing.T, x *projectIndex) {
	t.Helper()
	if err := Build(t.Context(), x.o.Dir, x.root, true, nil); err != nil {
		t.Fatal(err)
	}
	listNow(t, x)
}

// listNow makes the list, as after a change that ended the last one. An ignore file that was changed just now is waited for.
func listNow(t *testing.T, x *projectIndex) {
	t.Helper()
	x.mu.Lock()
	x.discard(nil)
	x.mu.Unlock()
	var err error
	for range 5 {
		if err = x.list(t.Context(), 0); err != errIndexRules {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sameGrep compares an index with a searcher that has none.
func sameGrep(t *testing.T, a, b *Searcher, q GrepQuery) {
	t.Helper()
	got, errA := a.Grep(t.Context(), q)
	want, errB := b.Grep(t.Context(), q)
	slices.Sort(got.Unread.First)
	slices.Sort(want.Unread.First)
	if fmt.Sprint(errA) != fmt.Sprint(errB) || short(q.Root, got) != short(q.Root, want) || got.ReadAs != want.ReadAs || got.Unread.Count != want.Unread.Count || !slices.Equal(got.Unread.First, want.Unread.First) {
		t.Errorf("grep %q include %q limit %d in %s\nindex (%v)\n%s%+v\nwithout (%v)\n%s%+v", q.Pattern, q.Include, q.Limit, q.Root, errA, short(q.Root, got), got.Unread, errB, short(q.Root, want), want.Unread)
	}
}

func sameGlob(t *testing.T, a, b *Searcher, q GlobQuery) {
	t.Helper()
	got, errA := a.Glob(t.Context(), q)
	want, errB := b.Glob(t.Context(), q)
	slices.Sort(got.Unread.First)
	slices.Sort(want.Unread.First)
	if fmt.Sprint(errA) != fmt.Sprint(errB) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("glob %q in %s\nindex %+v %v\nwithout %+v %v", q.Pattern, q.Root, got, errA, want, errB)
	}
}

// randomWord is what texts and patterns of the tests consist of, so that they meet.
func randomWord(r *rand.Rand) string {
	return pick(r, "alpha", "beta", "gamma", "Alpha", "BETA", "rare", "x", "foo.bar", "é", "straße", "Kelvin", "\u212aelvin", "123", "世界", "_", "err", "func")
}

func randomContent(r *rand.Rand) string {
	switch r.IntN(20) {
	case 0:
		return "alpha\x00beta\nfunc\n" // binary
	case 1:
		return "\xff\xfea\x00l\x00p\x00h\x00a\x00\n\x00" // UTF-16
	case 2:
		return "\xef\xbb\xbfalpha\nbeta"
	case 3:
		return "alpha \xe9\xff beta\n\xff" // not UTF-8
	case 4:
		return ""
	}
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(randomWord(r) + pick(r, " ", "", "\n", "\r\n", "-", "\t"))
	}
	return b.String()
}

func randomSearch(r *rand.Rand) string {
	w := func() string { return randomWord(r) }
	switch r.IntN(12) {
	case 0:
		return w() + ".*" + w()
	case 1:
		return "(?i)" + w()
	case 2:
		return `\b` + w() + `\b`
	case 3:
		return "(" + w() + "|" + w() + ")" + pick(r, "", " ", "-") + w()
	case 4:
		return "^" + w() + pick(r, "", "$")
	case 5:
		return w() + `\s+\w+`
	case 6:
		return randomRegexp(r, 3)
	case 7:
		return w() + "[^a-z]" + w()
	case 8:
		return `\<` + w() + `\>`
	default:
		return w() + pick(r, "", " ", "-", "\t") + w()
	}
}

// disturb makes a random change below root, as a person, an editor or a build would.
func disturb(r *rand.Rand, root string) string {
	var files, dirs []string
	_ = filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			dirs = append(dirs, p)
		} else if !slices.Contains(ignoreNames[:], d.Name()) {
			files = append(files, p)
		}
		return nil
	})
	dir := pick(r, dirs...)
	fresh := filepath.Join(dir, randomName(r)+pick(r, "", "1", "2"))
	if len(files) == 0 {
		files = append(files, fresh)
	}
	file := pick(r, files...)
	write := func(path string, flag int) {
		if f, err := os.OpenFile(path, flag|os.O_WRONLY, 0o644); err == nil {
			_, _ = f.WriteString(randomContent(r))
			f.Close()
		}
	}
	switch n := r.IntN(18); n {
	case 0, 1, 2:
		write(file, os.O_APPEND)
		return "append " + file
	case 3, 4:
		write(file, os.O_TRUNC)
		return "write " + file
	case 5, 6:
		write(fresh, os.O_CREATE)
		return "create " + fresh
	case 7: // as editors save
		tmp := fresh + ".tmp"
		write(tmp, os.O_CREATE)
		_ = os.Rename(tmp, file)
		return "save " + file
	case 8:
		_ = os.Remove(file)
		return "remove " + file
	case 9:
		_ = os.Rename(file, fresh)
		return "rename " + file + " to " + fresh
	case 10:
		deep := filepath.Join(fresh, "deep", "er")
		_ = os.MkdirAll(deep, 0o755)
		write(filepath.Join(deep, randomName(r)), os.O_CREATE)
		return "folders " + deep
	case 11:
		from := pick(r, dirs...)
		if from != root {
			_ = os.Rename(from, fresh)
		}
		return "rename folder " + from + " to " + fresh
	case 12:
		if dir != root {
			_ = os.RemoveAll(dir)
		}
		return "remove folder " + dir
	case 13:
		at := time.Now().Add(-time.Duration(r.IntN(1e6)) * time.Second)
		_ = os.Chtimes(file, at, at)
		return "touch " + file
	case 14:
		_ = os.Symlink(file, fresh)
		return "link " + fresh
	case 15:
		_ = os.Link(file, fresh)
		return "hard link " + fresh + " of " + file
	case 16:
		write(filepath.Join(dir, pick(r, ignoreNames[:]...)), os.O_CREATE|os.O_TRUNC)
		return "ignore file in " + dir
	default:
		_ = os.Truncate(file, int64(r.IntN(20)))
		return "truncate " + file
	}
}

// The index finds what ripgrep finds, in trees that change all the time. Real ripgrep is the oracle.
func TestAnIndexAgreesWithRipgrepWhileTheTreeChanges(t *testing.T) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		t.Skip("ripgrep is not installed")
	}
	answers, searches := int64(0), 0
	rounds(t, func(t *testing.T, r *rand.Rand) {
		root := randomTree(t, r, true)
		for range 30 {
			_ = os.WriteFile(filepath.Join(root, randomName(r)+fmt.Sprint(r.IntN(50))), []byte(randomContent(r)), 0o644)
		}
		if _, bare := start(root); bare {
			return
		}
		s, x := withIndex(t, root, rg)
		plain := New(Options{Ripgrep: rg})
		var log []string
		for range 12 {
			for range r.IntN(4) {
				log = append(log, disturb(r, x.root))
			}
			if info, err := os.Stat(root); err != nil || !info.IsDir() {
				return
			}
			x.mu.Lock()
			lost := x.tree.catchUp() != nil
			x.mu.Unlock()
			if lost && r.IntN(2) == 0 {
				listNow(t, x)
			}
			at := root
			if r.IntN(4) == 0 {
				if sub, err := filepath.Glob(filepath.Join(root, "*/")); err == nil && len(sub) > 0 {
					if info, err := os.Lstat(sub[0]); err == nil && info.IsDir() {
						at = sub[0]
					}
				}
			}
			if r.IntN(8) == 0 {
				if err := Build(t.Context(), x.o.Dir, x.root, false, nil); err != nil {
					t.Fatal(err)
				}
				x.mu.Lock()
				if x.tree.catchUp() == nil {
					x.load()
				}
				x.mu.Unlock()
			}
			q := GrepQuery{Root: at, Pattern: randomSearch(r), Limit: pick(r, 0, 0, 1, 3)}
			if r.IntN(4) == 0 {
				q.Include = randomGlob(r)
			}
			if r.IntN(5) == 0 {
				q.Buffers = []Buffer{{Path: filepath.Join(at, randomName(r)), Text: randomContent(r)}}
			}
			if r.IntN(4) == 0 {
				q.Show = func(path string) bool { return len(path)%3 != 0 }
			}
			sameGrep(t, s, plain, q)
			sameGlob(t, s, plain, GlobQuery{Root: at, Pattern: randomGlob(r), Limit: pick(r, 0, 1, 2), Show: q.Show})
			searches += 2
			if t.Failed() {
				t.Logf("after %s\n%s", strings.Join(log, "\n"), dumpIgnores(root))
				return
			}
		}
		answers += x.answers.Load()
	})
	t.Logf("%d of %d searches were answered by the index", answers, searches)
	if answers < int64(searches)/3 {
		t.Errorf("the index answered only %d of %d searches", answers, searches)
	}
}

// TestMain lets the tests start the program that makes an index: this one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__index" {
		os.Exit(BuildMain(os.Args[2:], nil))
	}
	if len(os.Args) > 1 && os.Args[1] == "__index_dies" { // kill -9 in the middle
		n := 0
		os.Exit(BuildMain(os.Args[2:], func(string) bool {
			if n++; n == 30 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return false
		}))
	}
	os.Exit(m.Run())
}

// many writes n files of one word each in folders of 50; the word of the i-th is wordI.
func many(t *testing.T, n int) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("d%03d", i/50))
		if i%50 == 0 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		put(t, filepath.Join(dir, fmt.Sprintf("f%d", i)), fmt.Sprintf("word%d\n%s\n", i, strings.Repeat("text ", 200)))
	}
	return root
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// finds demands that the search finds the text in exactly these files, and that the index has answered, or has not.
func finds(t *testing.T, s *Searcher, x *projectIndex, byIndex bool, pattern string, files ...string) {
	t.Helper()
	before := x.answers.Load()
	out, err := s.Grep(t.Context(), GrepQuery{Root: x.root, Pattern: pattern})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range out.Matches {
		got = append(got, m.Path[len(x.root)+1:])
	}
	slices.Sort(got)
	slices.Sort(files)
	if !slices.Equal(got, files) {
		t.Errorf("%s is found in %q, want %q", pattern, got, files)
	}
	if answered := x.answers.Load() > before; answered != byIndex {
		t.Errorf("%s was answered by the index: %v", pattern, answered)
	}
}

func TestAnIndexStartsByItselfAndIsUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: work on an index waits until nobody searches")
	}
	quiet(t)
	root := many(t, minIndexFiles+50)
	ready := make(chan string, 8)
	o := &IndexOptions{Dir: filepath.Join(t.TempDir(), "index"), Build: []string{os.Args[0], "__index"}, Ready: func(root string) { ready <- root }}
	s := New(Options{Index: o})
	x := s.indexOf(root)
	x.begin()
	x.end(slowSearch) // as a slow search does
	if got := <-ready; got != root {
		t.Error(got)
	}
	finds(t, s, x, true, "word1234", "d024/f1234")
	put(t, filepath.Join(root, "d000", "f1"), "something new\n")
	finds(t, s, x, true, "something new", "d000/f1")
	finds(t, s, x, true, "word1$")
	x.mu.Lock()
	for i := range renewAfter + 1 { // so many changes are worth a second segment
		put(t, filepath.Join(root, fmt.Sprint("d", i)), fmt.Sprintf("changed%d", i))
	}
	x.mu.Unlock()
	<-ready
	x.mu.Lock()
	if x.segments[1] == nil || x.tree.inDelta < renewAfter {
		t.Errorf("%d files are in the second segment", x.tree.inDelta)
	}
	x.mu.Unlock()
	finds(t, s, x, true, "changed77", "d77")
	s.Close()
	select {
	case <-x.done:
	default:
		t.Error("its goroutine goes on")
	}
	finds(t, s, x, false, "changed77", "d77")

	// The next process uses what is there.
	s = New(Options{Index: o})
	t.Cleanup(s.Close)
	x = s.indexOf(root)
	x.begin()
	x.end(0)
	<-ready
	finds(t, s, x, true, "changed77", "d77")
	if info, err := os.Stat(o.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// Most files of a large project are older than what a glob returns, and many are of one checkout and so of one time.
func TestAnIndexedGlobReturnsTheNewest(t *testing.T) {
	root := many(t, 3000)
	s, x := withIndex(t, root, "")
	plain := New(Options{})
	defer plain.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 3000 {
		at := time.Unix(1e9+r.Int64N(20), 0)
		if err := os.Chtimes(filepath.Join(root, fmt.Sprintf("d%03d/f%d", i/50, i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	// The list has a folder's own files before those below it, whatever their names: here the last of their time come first.
	for i := range 60 {
		path, at := filepath.Join(root, fmt.Sprintf("z%d", i)), time.Unix(1e9+19, 0)
		put(t, path, "")
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	listNow(t, x)
	for _, limit := range []int{1, 5, 100} {
		for _, pattern := range []string{"**/*", "d01*/f*", "f1*", "nothing"} {
			q := GlobQuery{Root: root, Pattern: pattern, Limit: limit}
			sameGlob(t, s, plain, q)
			// A rule hides the newest and most others.
			q.Show = func(path string) bool { return strings.HasSuffix(path, "7") }
			sameGlob(t, s, plain, q)
		}
	}
	if x.answers.Load() == 0 {
		t.Fatal("the index was not used")
	}
}

func TestASmallProjectHasNoIndex(t *testing.T) {
	quiet(t)
	s := New(Options{Index: &IndexOptions{Dir: t.TempDir()}})
	t.Cleanup(s.Close)
	x := s.indexOf(many(t, 60))
	if err := x.list(t.Context(), minIndexFiles); err != errIndexSmall || x.tree != nil {
		t.Error(err)
	}
}

// What happened while no process watched is found by comparing states.
func TestWhatChangedWhileNobodyWatchedIsFound(t *testing.T) {
	quiet(t)
	root := many(t, 200)
	s, x := withIndex(t, root, "")
	finds(t, s, x, true, "word7$", "d000/f7")
	x.mu.Lock()
	x.discard(nil)
	x.mu.Unlock()
	info, err := os.Stat(filepath.Join(root, "d000", "f7"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(root, "d000", "f7"))
	put(t, filepath.Join(root, "d000", "f7"), strings.Replace(string(text), "word7", "wxyz7", 1)) // same length, same time
	if err := os.Chtimes(filepath.Join(root, "d000", "f7"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "d001"), filepath.Join(root, "e001")); err != nil {
		t.Fatal(err)
	}
	listNow(t, x)
	finds(t, s, x, true, "wxyz7", "d000/f7")
	finds(t, s, x, true, "word7$")
	finds(t, s, x, true, "word60$", "e001/f60")
}

// Writes that have no event while they happen: through a mapping whose descriptor is closed, and by another name of the file.
func TestWritesWithoutAWriteAreFound(t *testing.T) {
	quiet(t)
	root := many(t, 100)
	s, x := withIndex(t, root, "")
	path := filepath.Join(root, "d000", "f3")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	finds(t, s, x, true, "word3$", "d000/f3")
	copy(m, "wxyz3")
	if err := unix.Munmap(m); err != nil {
		t.Fatal(err)
	}
	finds(t, s, x, true, "wxyz3", "d000/f3")
	// In this order: only the link inside of the project tells that the file has several.
	for _, link := range []string{filepath.Join(root, "other"), filepath.Join(t.TempDir(), "outside")} {
		if err := os.Link(filepath.Join(root, "d000", "f4"), link); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(link) == "other" {
			put(t, link, "by another name\n")
			finds(t, s, x, true, "by another", "d000/f4", "other")
		} else { // the file has several links, so it is looked at each time
			put(t, link, "from outside\n")
			finds(t, s, x, true, "from outside", "d000/f4", "other")
		}
	}
}

// What an index cannot be sure of ends its use, and the search goes the other way.
func TestAnIndexIsNotUsedWhenItMayBeWrong(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(root string, x *projectIndex) error
		want    error
	}{
		"too many events": {tooManyEvents, errIndexQueue},
		"an ignore file": {func(root string, _ *projectIndex) error {
			return os.WriteFile(filepath.Join(root, "d001", ".ignore"), []byte("f1*"), 0o644)
		}, errIndexRules},
		"one above": {func(root string, _ *projectIndex) error {
			return os.WriteFile(filepath.Join(filepath.Dir(root), ".rgignore"), []byte("f1*"), 0o644)
		}, errIndexRules},
		"the person's own": {func(string, *projectIndex) error {
			return errors.Join(os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".config/git"), 0o755), os.WriteFile(filepath.Join(os.Getenv("HOME"), ".config/git/ignore"), []byte("f1*"), 0o644))
		}, errIndexRules},
		"which one it is": {func(string, *projectIndex) error {
			return os.WriteFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"), []byte("[core]\nexcludesFile = /x\n"), 0o644)
		}, errIndexRules},
		"a repository": {func(root string, _ *projectIndex) error { return os.Mkdir(filepath.Join(root, "d001", ".git"), 0o755) }, errIndexRules},
		"excludes": {func(root string, _ *projectIndex) error {
			return os.WriteFile(filepath.Join(root, ".git/info/exclude"), []byte("f1*"), 0o644)
		}, errIndexRules},
		"another folder": {func(root string, _ *projectIndex) error {
			return errors.Join(os.Rename(root, root+"2"), os.Mkdir(root, 0o755))
		}, errIndexMoved},
		"too many folders": {func(root string, x *projectIndex) error {
			x.tree.watches = 3
			return os.Mkdir(filepath.Join(root, "more"), 0o755)
		}, errIndexWatches},
		"a file system in it": {mountIn, errIndexMounts},
	} {
		t.Run(name, func(t *testing.T) {
			quiet(t)
			root := filepath.Join(many(t, 0), "project")
			if err := os.MkdirAll(filepath.Join(root, ".git", "info"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"d001", "d002"} {
				if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(root, d, "f1"), "word")
			}
			s, x := withIndex(t, root, "")
			t.Cleanup(func() { _ = unix.Unmount(filepath.Join(root, "d001"), 0) })
			finds(t, s, x, true, "word", "d001/f1", "d002/f1")
			if err := c.disturb(root, x); errors.Is(err, unix.EPERM) {
				t.Skip("needs the right to mount:", err)
			} else if err != nil {
				t.Fatal(err)
			}
			sameGrep(t, s, New(Options{}), GrepQuery{Root: root, Pattern: "word"})
			sameGlob(t, s, New(Options{}), GlobQuery{Root: root, Pattern: "*"})
			if x.answers.Load() != 1 || x.tree.lost != c.want {
				t.Errorf("%d answers, lost: %v, want %v", x.answers.Load(), x.tree.lost, c.want)
			}
		})
	}
}

// tooManyEvents makes more events than the kernel keeps (fs.inotify.max_queued_events), while nobody reads them.
func tooManyEvents(root string, x *projectIndex) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return err
	}
	path := filepath.Join(root, "d001", "new")
	for range most/2 + 1 { // at least two events each
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// mountIn mounts an empty file system on a folder of the project.
func mountIn(root string, _ *projectIndex) error {
	if err := unix.Mount("none", filepath.Join(root, "d001"), "tmpfs", 0, "size=64k"); err != nil {
		return unix.EPERM
	}
	return nil
}

func TestADamagedIndexIsMadeAnew(t *testing.T) {
	quiet(t)
	root := many(t, 300)
	s, x := withIndex(t, root, "")
	base := filepath.Join(x.dir, baseName)
	whole, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	for at := 10; at < len(whole); at += len(whole) / 40 {
		bad := slices.Clone(whole)
		bad[at] ^= 0x55
		put(t, base, string(bad))
		listNow(t, x)
		before := x.answers.Load()
		for _, p := range []string{"word123$", "word29\\d", "nowhere", "text text"} {
			sameGrep(t, s, New(Options{}), GrepQuery{Root: root, Pattern: p})
		}
		if x.answers.Load() == before+4 { // the damage was in a part that none of these needed
			continue
		}
		if _, err := os.Lstat(base); err == nil {
			t.Errorf("byte %d: the damaged file is still there", at)
		}
	}
	put(t, base, string(whole[:len(whole)/2]))
	listNow(t, x)
	finds(t, s, x, false, "word123$", "d002/f123")
	indexNow(t, x)
	finds(t, s, x, true, "word123$", "d002/f123")
}

func TestAKilledBuildLeavesNothing(t *testing.T) {
	quiet(t)
	root := many(t, 300)
	dir := filepath.Join(t.TempDir(), "index")
	cmd := exec.Command(os.Args[0], "__index_dies", "whole", dir, root)
	if err := cmd.Run(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	left, err := os.ReadDir(indexDir(dir, root))
	if err != nil || len(left) < 2 {
		t.Fatal("it was not in the middle of its work:", left, err)
	}
	if err := Build(t.Context(), dir, root, true, nil); err != nil {
		t.Fatal(err)
	}
	if left, err = os.ReadDir(indexDir(dir, root)); err != nil || len(left) != 2 {
		t.Error(left, err)
	}
}

func TestTwoBuildsAtOnce(t *testing.T) {
	quiet(t)
	root := many(t, 60)
	dir := t.TempDir()
	var second error
	if err := Build(t.Context(), dir, root, true, func(rel string) bool {
		if second == nil {
			second = Build(t.Context(), dir, root, true, nil)
		}
		return false
	}); err != nil || !errors.Is(second, errBusy) {
		t.Error(err, second)
	}
	out, err := exec.Command(os.Args[0], "__index", "whole", dir, root).CombinedOutput()
	if err != nil {
		t.Errorf("%v %s", err, out)
	}
}

// A file whose text must not be kept is not in the segment, and is found all the same.
func TestWithheldFilesAreSearchedWithoutAnIndex(t *testing.T) {
	quiet(t)
	root := many(t, 60)
	put(t, filepath.Join(root, ".env"), "unspeakable\n")
	s, x := withIndex(t, root, "")
	if err := Build(t.Context(), x.o.Dir, root, true, func(rel string) bool { return rel == ".env" }); err != nil {
		t.Fatal(err)
	}
	listNow(t, x)
	if x.tree.unindexed != 1 {
		t.Errorf("%d files are in no segment", x.tree.unindexed)
	}
	finds(t, s, x, true, "unspeakable", ".env")
	_, q := mustCompile(t, "unspeakable").demand()
	set, err := x.segments[0].Match(q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x.segments[0].Groups() {
		if set.Has(i) {
			t.Error("its trigrams are in the segment")
		}
	}
}

func mustCompile(t *testing.T, pattern string) *matcher {
	t.Helper()
	m, err := compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOldIndexesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{"own": 2 * unusedFor, "recent": time.Hour, "old": unusedFor + time.Hour} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name, baseName), "x")
		at := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	prune(dir, filepath.Join(dir, "own"))
	for name, want := range map[string]bool{"own": true, "recent": true, "old": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnIndexTellsWhatCannotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("needs files that cannot be read: not for root, not on Windows")
	}
	quiet(t)
	root := tree(t, "secret/a", "x\n", "later/a", "x\n", "file", "x\n", "b", "x\n")
	lock := func(mode os.FileMode, names ...string) {
		for _, p := range names {
			if err := os.Chmod(filepath.Join(root, p), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	lock(0, "secret", "file")
	t.Cleanup(func() { lock(0o755, "secret", "later") })
	s, x := withIndex(t, root, "off")
	same := func() {
		t.Helper()
		for _, p := range []string{"x", "xyz"} {
			sameGrep(t, s, New(Options{Ripgrep: "off"}), GrepQuery{Root: root, Pattern: p})
		}
		sameGlob(t, s, New(Options{}), GlobQuery{Root: root, Pattern: "*"})
	}
	if same(); x.answers.Load() != 3 {
		t.Errorf("the index has given %d answers", x.answers.Load())
	}
	lock(0, "later")
	same()
	lock(0o755, "secret")
	same()
	listNow(t, x)
	same()
	lock(0o644, "file")
	same()
}

func TestSharedSyntax(t *testing.T) {
	for pattern, want := range map[string]bool{
		`foo\.bar`: true, `\bfoo\b`: true, `[\w-]+\s`: true, `\W\S`: true, `a--b`: true, `[^\]]x`: true, `\p{L}`: true,
		`[\W]`: false, `[a]\S`: false, `\Afoo`: false, `foo\z`: false, `\Q.\E`: false, `\1`: false, `[a--b]`: false, `\C`: false,
	} {
		if got := sharedSyntax(pattern); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
}
