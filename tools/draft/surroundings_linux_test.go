package draft

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// git runs Git in a folder, with a name and without the person's own configuration.
func git(t testing.TB, dir, args string) {
	t.Helper()
	sh(t, dir, "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1; git -c user.name=n -c user.email=n@n -c init.defaultBranch=main -c protocol.file.allow=always "+args)
}

// committed is a command that commits in a draft.
const committed = "git -c user.name=n -c user.email=n@n commit -qam draft"

// made creates a draft in a folder beside the project.
func made(t testing.TB, tree string, view View) *Draft {
	t.Helper()
	d, err := Create(t.Context(), Options{Dir: filepath.Join(filepath.Dir(tree), "drafts"), Project: tree, View: view, Ignored: ignored})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Drop() })
	return d
}

// folder is an empty folder called tree.
func folder(t testing.TB) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	return tree
}

// changed are the paths that a draft proposes, below the project.
func changed(t testing.TB, d *Draft) (out []string, p *Proposal) {
	t.Helper()
	p, err := d.Propose(ignored, 0o022)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Files {
		rel, _ := filepath.Rel(d.Head().Project, f.Path)
		out = append(out, rel)
	}
	return out, p
}

// A commit in the draft is not a commit of the project: its files are proposed, and the proposal says so. A command that only reads the
// repository, or writes its index, is no such news.
func TestACommitInADraftIsProposedAsFiles(t *testing.T) {
	for _, view := range views(t) {
		t.Run(string(view), func(t *testing.T) {
			tree := folder(t)
			git(t, tree, "init -q . && echo one > a.txt && git add -A && "+committed)
			before := snapshot(t, filepath.Join(tree, ".git"), false)
			d := made(t, tree, view)
			in(t, d, "cd "+d.Root()+"; touch a.txt; git status; git log; git add -A; git checkout -q -b side; git checkout -q main; git branch -D side")
			if _, p := changed(t, d); len(p.Notes) != 0 || !p.Empty() {
				t.Errorf("after commands that changed nothing: %+v", p)
			}
			in(t, d, "cd "+d.Root()+"; git branch side; git pack-refs --all; git branch -D side")
			if d.History() {
				t.Error("packed refs are taken for other refs")
			}
			in(t, d, "cd "+d.Root()+"; echo two > a.txt; echo new > b.txt; git add -A; "+committed)
			got, p := changed(t, d)
			if !slices.Equal(got, []string{"a.txt", "b.txt"}) || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "history") {
				t.Errorf("%v %v", got, p.Notes)
			}
			if diff := diffOf(before, snapshot(t, filepath.Join(tree, ".git"), false)); diff != "" {
				t.Errorf("the project's repository was changed:\n%s", diff)
			}
		})
	}
}

// The branch is switched in the project while the draft is there: what it changed stays against what it began from.
func TestTheProjectsBranchIsSwitched(t *testing.T) {
	for _, view := range views(t) {
		tree := folder(t)
		git(t, tree, "init -q . && echo one > a.txt && echo same > b.txt && git add -A && "+committed+" && git checkout -q -b other && echo elsewhere > b.txt && "+committed+" && git checkout -q main")
		d := made(t, tree, view)
		in(t, d, "cd "+d.Root()+"; echo draft >> a.txt")
		git(t, tree, "checkout -q other")
		got, p := changed(t, d)
		if !slices.Equal(got, []string{"a.txt"}) || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "on other now") {
			t.Errorf("%s: %v %v", view, got, p.Notes)
		}
	}
}

// A submodule and a linked worktree have their repository elsewhere. Neither that nor the main worktree is written by a commit in a draft.
func TestSubmodulesAndWorktrees(t *testing.T) {
	for _, view := range views(t) {
		if view == Copy {
			continue // nothing is mounted: the sandbox alone keeps a command from a path outside
		}
		t.Run(string(view), func(t *testing.T) {
			dir := t.TempDir()
			git(t, dir, "init -q lib && cd lib && echo lib > l.txt && git add -A && "+committed)
			git(t, dir, "init -q main && cd main && echo one > a.txt && git add -A && "+committed+" && git -c protocol.file.allow=always submodule add -q ../lib sub && "+committed+" && git worktree add -q ../linked")
			before := snapshot(t, filepath.Join(dir, "main"), true)
			d := made(t, filepath.Join(dir, "main"), view)
			in(t, d, "cd "+d.Root()+"/sub && echo more >> l.txt && "+committed)
			if got, p := changed(t, d); !slices.Equal(got, []string{"sub/l.txt"}) {
				t.Errorf("a commit in a submodule: %v %+v", got, p)
			}
			w := made(t, filepath.Join(dir, "linked"), view)
			said := in(t, w, "cd "+w.Root()+" && echo more >> a.txt && "+committed)
			if got, p := changed(t, w); !slices.Equal(got, []string{"a.txt"}) {
				t.Errorf("a commit in a worktree: %v %+v", got, p)
			}
			if view == Overlay && !w.History() {
				t.Errorf("the commit was not noticed: %s", said)
			}
			if diff := diffOf(before, snapshot(t, filepath.Join(dir, "main"), true)); diff != "" {
				t.Errorf("the main worktree was changed:\n%s\n%s", diff, said)
			}
		})
	}
}

// Links out of the project, sockets and pipes: none is followed or waited for, and what cannot be landed is said.
func TestLinksOutSocketsAndPipes(t *testing.T) {
	for _, view := range views(t) {
		t.Run(string(view), func(t *testing.T) {
			tree := folder(t)
			out := filepath.Join(filepath.Dir(tree), "outside")
			sh(t, tree, "mkdir ../outside && echo o > ../outside/f && ln -s ../outside out && mkfifo pipe && echo a > a.txt")
			listener, err := net.Listen("unix", filepath.Join(tree, "sock"))
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			d := made(t, tree, view)
			in(t, d, "cd "+d.Root()+"; rm -f out; ln -s /etc/passwd secret; mkfifo new.pipe; python3 -c \"import socket;socket.socket(socket.AF_UNIX).bind('new.sock')\"; ln -s ../outside/f near; echo b >> a.txt")
			got, p := changed(t, d)
			if want := []string{"a.txt", "near", "out", "secret"}; !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			said := strings.Join(append(p.Left, p.Notes...), "\n")
			for _, want := range []string{"new.pipe", "new.sock", "secret", "/etc/passwd"} {
				if !strings.Contains(said, want) {
					t.Errorf("nothing is said of %s: %s", want, said)
				}
			}
			if b, _ := os.ReadFile(filepath.Join(out, "f")); string(b) != "o\n" {
				t.Errorf("outside: %q", b)
			}
		})
	}
}

// A folder of 5 GB that Git ignores costs a draft nothing. A clone does not copy it: it is the project's own, read-only where that can be
// mounted.
func TestAnIgnoredFolderOfFiveGigabytes(t *testing.T) {
	for _, view := range views(t) {
		t.Run(string(view), func(t *testing.T) {
			tree := folder(t)
			sh(t, tree, "mkdir node_modules && truncate -s 5G node_modules/big && echo m > node_modules/m && echo a > a.txt")
			d := made(t, tree, view)
			said := in(t, d, "cd "+d.Root()+"; cat node_modules/m; echo x > node_modules/m; echo b >> a.txt")
			if view != Copy && !strings.HasPrefix(said, "m\n") {
				t.Errorf("the folder does not show: %q", said)
			}
			if view == Bind && !strings.Contains(said, "Read-only") {
				t.Errorf("the shared folder could be written: %q", said)
			}
			if got, _ := changed(t, d); !slices.Equal(got, []string{"a.txt"}) {
				t.Errorf("%v", got)
			}
			var used int64
			_ = filepath.Walk(d.Dir, func(_ string, fi os.FileInfo, err error) error {
				if err == nil {
					used += fi.Sys().(*syscall.Stat_t).Blocks * 512
				}
				return nil
			})
			if used > 1<<20 {
				t.Errorf("the draft takes %d bytes", used)
			}
			if b, _ := os.ReadFile(filepath.Join(tree, "node_modules/m")); string(b) != "m\n" {
				t.Errorf("%q", b)
			}
		})
	}
}

// mount mounts something for the test, which needs root.
func mount(t *testing.T, source, at, kind, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount")
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(source, at, kind, 0, data); err != nil {
		t.Skipf("%s cannot be mounted here: %v", kind, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
}

// The project lies on an overlay itself, as in a container. The kernel stacks two; where it does not a clone is made, and said why.
func TestTheProjectIsOnAnOverlay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, dir, "mkdir -p lower/tree/sub && echo one > lower/tree/a.txt && echo deep > lower/tree/sub/b.txt")
	at := filepath.Join(dir, "merged")
	mount(t, "overlay", at, "overlay", fmt.Sprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", dir, dir, dir))
	tree := filepath.Join(at, "tree")
	before := snapshot(t, tree, true)
	// The drafts lie on the same overlay, or beside it.
	for _, drafts := range []string{filepath.Join(dir, "drafts"), filepath.Join(at, "drafts")} {
		d, err := Create(t.Context(), Options{Dir: drafts, Project: tree, Ignored: ignored})
		if err != nil {
			t.Fatal(err)
		}
		in(t, d, "cd "+d.Root()+"; echo two >> a.txt; rm -r sub; echo new > c.txt")
		if h := d.Head(); h.View != Overlay && h.Why == "" {
			t.Errorf("%s: %+v", drafts, h)
		}
		if got, _ := changed(t, d); !slices.Equal(got, []string{"a.txt", "c.txt", "sub/b.txt"}) {
			t.Errorf("%s: %s %v", drafts, d.Head().View, got)
		}
		if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
			t.Errorf("%s: %s", drafts, diff)
		}
		_ = d.Drop()
	}
}

// The disk that holds the draft is full: the command fails as on any full disk, the tree stays, and what was done until then is there.
func TestTheDraftsDiskIsFull(t *testing.T) {
	tree := folder(t)
	small := filepath.Join(filepath.Dir(tree), "small")
	mount(t, "none", small, "tmpfs", "size=512k")
	sh(t, tree, "echo one > a.txt; head -c 300000 /dev/urandom > big")
	before := snapshot(t, tree, true)
	d, err := Create(t.Context(), Options{Dir: filepath.Join(small, "drafts"), Project: tree, View: Overlay, Ignored: ignored})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Drop()
	// big is copied up whole and fits once; the file beside it does not fit any more. The bases fill the rest.
	start := time.Now()
	cmd, err := d.Command("bash", "-c", "cd "+tree+"; echo two >> a.txt; echo x >> big; head -c 400000 /dev/urandom > more")
	if err != nil {
		t.Fatal(err)
	}
	said, _ := cmd.CombinedOutput()
	if !strings.Contains(string(said), "No space left") {
		t.Errorf("the command said %q", said)
	}
	// Keeping the bases may fail as well; it must say so, and not lose what it has.
	if err := d.Record(start, ignored); err != nil && !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
		t.Errorf("the tree was changed:\n%s", diff)
	}
	if d, err = Load(d.Dir); err != nil {
		t.Fatal(err)
	}
	// With room again the draft is whole.
	if err := syscall.Mount("none", small, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if err := d.Record(start, ignored); err != nil {
		t.Fatal(err)
	}
	if got, _ := changed(t, d); !slices.Contains(got, "a.txt") {
		t.Errorf("%v", got)
	}
}

// Without namespaces, as in a container that forbids them, drafts are copies under another path, and the reason is said.
func TestWithoutNamespaces(t *testing.T) {
	if os.Getenv("PILLION_NO_NAMESPACES") == "" {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// A limit of 0 in a namespace of one's own: what a distribution sets for everybody.
		cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$0" -test.run '^TestWithoutNamespaces$' -test.v`, program)
		cmd.Env = append(os.Environ(), "PILLION_NO_NAMESPACES=1")
		out, err := cmd.CombinedOutput()
		if err != nil && strings.Contains(string(out), "unshare:") {
			t.Skipf("no user namespace to forbid them in: %s", out)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s := Probe()
	if s.View != Copy || !strings.Contains(s.Why, "sysctl user.max_user_namespaces") || strings.Contains(s.Why, "space left") {
		t.Fatalf("%+v", s)
	}
	tree := folder(t)
	sh(t, tree, "echo one > a.txt")
	before := snapshot(t, tree, true)
	d := made(t, tree, "")
	if h := d.Head(); h.View != Copy || !strings.Contains(h.Why, "sysctl user.max_user_namespaces") {
		t.Errorf("%+v", h)
	}
	in(t, d, "echo two >> "+d.Root()+"/a.txt")
	if got, _ := changed(t, d); !slices.Equal(got, []string{"a.txt"}) {
		t.Errorf("%v", got)
	}
	if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
		t.Error(diff)
	}
}

// Drafts that were just dropped for their age do not count among those that are too many.
func TestDraftsThatAreDroppedDoNotCount(t *testing.T) {
	tree := folder(t)
	dir := filepath.Join(filepath.Dir(tree), "drafts")
	var all []*Draft
	for range Most {
		d, err := Create(t.Context(), Options{Dir: dir, Project: tree, View: Copy})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if _, err := Create(t.Context(), Options{Dir: dir, Project: tree, View: Copy}); err == nil {
		t.Fatal("one more than the most was made")
	}
	old := all[0]
	release, err := old.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	release()
	old.head.Used = time.Now().Add(-MaxAge - time.Hour)
	if err := old.saveHead(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), Options{Dir: dir, Project: tree, View: Copy}); err != nil {
		t.Fatalf("one was too old: %v", err)
	}
}

// One session works in a draft at a time, in one process or in two, and a draft that is worked in is not dropped for its age.
func TestADraftBelongsToOneSession(t *testing.T) {
	d := made(t, folder(t), Copy)
	release, err := d.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(d.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Acquire(); !errors.Is(err, ErrBusy) || !again.Busy() {
		t.Errorf("a second one got it: %v", err)
	}
	again.head.Used = time.Now().Add(-MaxAge - time.Hour)
	if left := Prune([]*Draft{again}); len(left) != 1 {
		t.Error("it was dropped")
	}
	release()
	release()
	if again.Busy() {
		t.Error("it is not given back")
	}
	if left := Prune([]*Draft{again}); len(left) != 0 {
		t.Error("it was not dropped")
	}
}

// A process that was killed leaves its draft. Without changes, or without a session that could go on in it, it is of no use.
func TestWhatAKilledProcessLeaves(t *testing.T) {
	for _, view := range views(t) {
		tree := folder(t)
		if err := os.WriteFile(filepath.Join(tree, "f"), []byte("f\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(filepath.Dir(tree), "drafts")
		for what, c := range map[string]struct {
			session, script string
			kept            bool
		}{
			"nothing was done":      {"s1", "true", false},
			"a file was read":       {"s1", "cat f; git status || true", false},
			"a file was written":    {"s1", "echo x >> f", true},
			"a file was removed":    {"s1", "rm f", true},
			"a folder was made":     {"s1", "mkdir x", true},
			"a mode was changed":    {"s1", "mkdir -p sub && chmod 700 sub", true},
			"it was a baseline run": {"", "echo x >> f", false},
		} {
			d, err := Create(t.Context(), Options{Dir: dir, Project: tree, View: view, Session: c.session})
			if err != nil {
				t.Fatal(err)
			}
			in(t, d, "cd "+d.Root()+"; "+c.script)
			list, err := List(dir, "")
			if err != nil || len(list) != 1 {
				t.Fatalf("%v %v", list, err)
			}
			if left := Prune(list); len(left) != 1 {
				t.Errorf("%s: %s: it was dropped while it was in use", view, what)
			}
			release, err := d.Acquire() // as the end of the process would
			if err != nil {
				t.Fatal(err)
			}
			release()
			if left := Prune(list); (len(left) == 1) != c.kept {
				t.Errorf("%s: %s: %d left", view, what, len(left))
			}
			_ = d.Drop()
		}
	}
}

// Drafts that take too much together let no other one be made.
func TestTheSizeOfDraftsIsLimited(t *testing.T) {
	tree := folder(t)
	d := made(t, tree, Copy)
	if err := os.WriteFile(d.path("tree", "big"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := d.Head().Size; n < 1<<20 || n > 2<<20 {
		t.Errorf("%d bytes", n)
	}
	if err := d.Set(func(h *Head) { h.State = Rejected }); err != nil {
		t.Fatal(err)
	}
	if x, err := Create(t.Context(), Options{Dir: filepath.Dir(d.Dir), Project: tree, View: Copy}); err != nil {
		t.Fatal(err)
	} else if err := x.Drop(); err != nil {
		t.Fatal(err)
	}
	if err := d.Set(func(h *Head) { h.Size = MaxSize + 1 }); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), Options{Dir: filepath.Dir(d.Dir), Project: tree, View: Copy}); !errors.Is(err, ErrTooMany) {
		t.Errorf("%v", err)
	}
}

// A draft in which programs have written since the last Keep may be incomplete after a crash of the machine, and then the proposal says so.
func TestADraftThatTheDiskMayNotHave(t *testing.T) {
	tree := folder(t)
	d := made(t, tree, "")
	noted := func() bool {
		p, err := d.Propose(nil, 0o022)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(p.Notes, "\n"), "The computer was restarted")
	}
	in(t, d, "echo x > new.txt")
	if d.Head().Boot == "" || noted() {
		t.Errorf("boot %q, noted %v", d.Head().Boot, noted())
	}
	if err := d.Set(func(h *Head) { h.Boot = "another run of the system" }); err != nil {
		t.Fatal(err)
	}
	if !noted() {
		t.Error("it does not say that files may be incomplete")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Keep(ended); err != nil || d.Head().Boot == "" {
		t.Errorf("stored after its end: %v", err)
	}
	if err := d.Keep(t.Context()); err != nil || noted() {
		t.Errorf("kept: %v", err)
	}
	if again, err := Load(d.Dir); err != nil || again.Head().Boot != "" || again.Head().Size == 0 {
		t.Errorf("%+v %v", again, err)
	}
}

// A draft that is only likely to be needed is not worth a copy of the project.
func TestNoCopyAhead(t *testing.T) {
	tree := folder(t)
	dir := t.TempDir()
	for view, want := range map[View]error{Copy: ErrCopies, Bind: ErrCopies, Overlay: nil} {
		d, err := Create(t.Context(), Options{Dir: dir, Project: tree, View: view, NoCopy: true})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", view, err)
		}
		if err == nil {
			err = d.Drop()
		} else {
			err = nil
		}
		if list, _ := os.ReadDir(dir); err != nil || len(list) != 0 {
			t.Errorf("%s: %v %v", view, list, err)
		}
	}
}

// A commit in a repository inside of the project is not landed either, and a repository that is made in the draft lands as plain files. Both are
// said. Reading such a repository is no news.
func TestRepositoriesInsideOfTheProject(t *testing.T) {
	for _, view := range views(t) {
		tree := folder(t)
		git(t, tree, "init -q -b main inner && cd inner && echo i > i.txt && git add -A && git -c user.name=n -c user.email=n@n commit -qm i")
		d := made(t, tree, view)
		note := func() string {
			_, p := changed(t, d)
			return strings.Join(p.Notes, "\n")
		}
		in(t, d, "cd inner && git status && touch .git/x")
		if said := note(); said != "" {
			t.Errorf("%s: %s", view, said)
		}
		in(t, d, "cd inner && echo more >> i.txt && "+committed+"; cd .. && git init -q made && cd made && echo m > m && git add -A && "+committed)
		if said := note(); !strings.Contains(said, "in inner was changed") || !strings.Contains(said, "in made was changed") {
			t.Errorf("%s: %s", view, said)
		}
		if names, _ := changed(t, d); !slices.Equal(names, []string{"inner/i.txt", "made/m"}) {
			t.Errorf("%s: %q", view, names)
		}
	}
}

// A folder that is too large to copy is named, because programs in a copy find it empty.
func TestACopyNamesWhatItLacks(t *testing.T) {
	tree := t.TempDir()
	for path, size := range map[string]int64{"big/lib.a": maxShared + 1, "small/lib.a": 10, "a.txt": 3} {
		path = filepath.Join(tree, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil { // sparse
			t.Fatal(err)
		}
	}
	ignored := func(path string, dir bool) bool { return dir && path != tree }
	d, err := Create(t.Context(), Options{Dir: t.TempDir(), Project: tree, View: Copy, Ignored: ignored})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Drop()
	if lacks, err := d.Lacks(); err != nil || !slices.Equal(lacks, []string{"big"}) {
		t.Errorf("%q, %v", lacks, err)
	}
}
