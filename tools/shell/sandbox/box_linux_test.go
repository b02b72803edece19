package sandbox_test

import (
	"context"
	"fmt"
	"net"
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

	"github.com/pillion-dev/pillion/tools/shell/run"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// The test binary is its own helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Arg {
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func needSandbox(t *testing.T) sandbox.Support {
	t.Helper()
	s := sandbox.Probe()
	if !s.Usable() {
		t.Skip("no sandbox here:", s.Why)
	}
	return s
}

// outsideTemp makes a folder that is not below the temporary folders, which commands may write to.
func outsideTemp(t *testing.T) string {
	t.Helper()
	for _, base := range []string{"", "/var/lib", "/root", "/opt", os.Getenv("HOME"), os.Getenv("PILLION_TEST_FOLDER")} {
		if base == "" { // this repository's own
			if wd, err := os.Getwd(); err == nil {
				base = filepath.Join(filepath.Dir(filepath.Dir(wd)), ".scratch")
				_ = os.MkdirAll(base, 0o755)
			}
		}
		if dir, err := os.MkdirTemp(base, "pillion-test-*"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			if real, err := filepath.EvalSymlinks(dir); err == nil && !strings.HasPrefix(real, "/tmp/") && !strings.HasPrefix(real, "/var/tmp/") {
				return real
			}
		}
	}
	t.Skip("no folder outside of /tmp can be written")
	return ""
}

func protectedForTest(real string) (string, bool) {
	switch base := filepath.Base(real); {
	case base == ".envrc", base == "pillion.json", strings.HasSuffix(real, ".vscode/settings.json"), strings.HasSuffix(real, ".vscode/tasks.json"), strings.Contains(real+"/", "/.git/"), strings.Contains(real+"/", "/.husky/"):
		return "protected", true
	}
	return "", false
}

func boxFor(t *testing.T, root string) *sandbox.Box {
	t.Helper()
	return sandbox.New(sandbox.Options{Root: root, Dir: root, Home: filepath.Dir(root), Protected: protectedForTest})
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSandboxKeepsWritesInTheProject(t *testing.T) {
	needSandbox(t)
	base := outsideTemp(t)
	root := filepath.Join(base, "project")
	put(t, filepath.Join(root, "in.txt"), "in")
	put(t, filepath.Join(base, "out.txt"), "out")
	put(t, filepath.Join(base, "dir", "f"), "f")
	for name, c := range map[string]struct {
		command string
		ok      bool
	}{
		"read outside":                  {"cat ../out.txt", true},
		"write inside":                  {"echo x >new && mkdir d && mv new d/ && ln d/new l && rm in.txt && echo y >in.txt", true},
		"write in /tmp":                 {"f=$(mktemp) && echo x >$f && rm $f", true},
		"devices":                       {"echo x >/dev/null && head -c1 /dev/urandom >/dev/null && : 2>/dev/stderr", true},
		"a pipe":                        {"echo x | cat >/dev/stdout", true},
		"write outside":                 {"echo x >../out.txt", false},
		"append outside":                {"echo x >>../out.txt", false},
		"create outside":                {"echo x >../created", false},
		"remove outside":                {"rm -f ../out.txt", false},
		"move outside":                  {"mv ../out.txt in2", false},
		"link from outside and write":   {"ln ../out.txt l2 && echo x >l2", false},
		"make a folder outside":         {"mkdir ../d2", false},
		"truncate outside":              {"truncate -s0 ../out.txt", false},
		"through a link":                {"ln -s .. up && echo x >up/created", false},
		"through /proc":                 {"echo x >/proc/self/cwd/../out.txt", false},
		"in a child of a child":         {"sh -c 'sh -c \"echo x >../created\"'", false},
		"signal outside":                {"kill -0 $PPID", false},
		"trace outside":                 {"cat /proc/$PPID/mem >/dev/null", false},
		"move the project":              {"mv ../project ../elsewhere", false},
		"a device of one's own":         {"mknod dev b 1 1", false},
		"another program's environment": {"cat /proc/$PPID/environ >/dev/null", false},
	} {
		t.Run(name, func(t *testing.T) {
			box := boxFor(t, root)
			out := runIn(t, run.Command{Text: c.command, Dir: root, Sandbox: box, Timeout: time.Minute})
			if (out.Exit == 0) != c.ok {
				t.Errorf("exit %d: %s", out.Exit, out.Output.Head)
			}
			if !c.ok && strings.Contains(name, "side") && !strings.HasPrefix(name, "signal") && box.Stopped(out.ForSandbox()) == "" {
				t.Errorf("the restriction is not named: %q", out.Output.Head)
			}
			if b, err := os.ReadFile(filepath.Join(base, "out.txt")); err != nil || string(b) != "out" {
				t.Errorf("outside: %q %v", b, err)
			}
			if _, err := os.Stat(filepath.Join(base, "created")); err == nil {
				t.Error("a file was made outside")
			}
		})
	}
}

func TestSandboxKeepsModesOutside(t *testing.T) {
	if s := needSandbox(t); !s.Mounts {
		t.Skip("no mounts of one's own here")
	}
	base := outsideTemp(t)
	root := filepath.Join(base, "project")
	put(t, filepath.Join(root, "a"), "")
	put(t, filepath.Join(base, "out.txt"), "out")
	out := runIn(t, run.Command{Text: "chmod 000 ../out.txt; touch ../out.txt; chmod 700 a", Dir: root, Sandbox: boxFor(t, root)})
	info, err := os.Stat(filepath.Join(base, "out.txt"))
	if err != nil || info.Mode().Perm() != 0o644 || out.Exit != 0 || strings.Count(out.Output.Head, "Read-only file system") != 2 {
		t.Errorf("%v %v %+v", info.Mode(), err, out)
	}
}

func TestSandboxKeepsProtectedFiles(t *testing.T) {
	support := needSandbox(t)
	if !support.Mounts {
		t.Skip("no mounts of one's own here, so files inside the project cannot be kept")
	}
	base := outsideTemp(t)
	root := filepath.Join(base, "project")
	if err := exec.Command("git", "init", "-q", root).Run(); err != nil {
		t.Skip("git is not installed:", err)
	}
	config, err := os.ReadFile(filepath.Join(root, ".git", "config"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".vscode/settings.json", ".vscode/other.json", "pillion.json", "sub/.envrc", "sub/deep/pillion.json"} {
		put(t, filepath.Join(root, p), "mine")
	}
	for name, command := range map[string]string{
		"a hook":                  "echo x >.git/hooks/pre-commit",
		"git's configuration":     "echo x >>.git/config",
		"by git":                  "git config core.fsmonitor ./evil",
		"moved over":              "echo x >n && mv -f n .git/config",
		"removed":                 "rm -f .vscode/settings.json",
		"its folder moved":        "mv .vscode v && mkdir .vscode && echo x >.vscode/settings.json",
		"git's folder moved":      "mv .git g && cp -r g .git && echo x >.git/config",
		"the folder above moved":  "mv sub s",
		"the folder two above":    "mv sub/deep sub/d",
		"our own rules":           "echo x >pillion.json",
		"deeper":                  "echo x >sub/.envrc",
		"unmounted":               "umount .git/config || mount -o remount,rw .git/config",
		"through another name":    "cd sub/.. && echo x >./.vscode/../pillion.json",
		"in a namespace within":   "unshare -rm sh -c 'umount pillion.json; echo x >pillion.json'",
		"linked from another one": "ln pillion.json copy && echo x >copy",
	} {
		t.Run(name, func(t *testing.T) {
			box := boxFor(t, root)
			out := runIn(t, run.Command{Text: command, Dir: root, Sandbox: box, Timeout: time.Minute})
			if out.Exit == 0 {
				t.Errorf("it went through: %s", out.Output.Head)
			}
			for _, p := range []string{".vscode/settings.json", "pillion.json", "sub/.envrc", "sub/deep/pillion.json"} {
				if b, err := os.ReadFile(filepath.Join(root, p)); err != nil || string(b) != "mine" {
					t.Errorf("%s: %q %v", p, b, err)
				}
			}
			if b, err := os.ReadFile(filepath.Join(root, ".git", "config")); err != nil || string(b) != string(config) {
				t.Errorf(".git/config: %q %v", b, err)
			}
			if _, err := os.Stat(filepath.Join(root, ".git", "hooks", "pre-commit")); err == nil {
				t.Error("a hook came into being")
			}
		})
	}
	t.Run("git works", func(t *testing.T) {
		out := runIn(t, run.Command{Text: "echo x >a.txt && git add a.txt && git -c user.name=a -c user.email=a@b commit -qm one && git checkout -qb two && git gc -q && git stash list && git log --oneline", Dir: root, Sandbox: boxFor(t, root)})
		if out.Exit != 0 {
			t.Errorf("%+v", out)
		}
	})
	t.Run("what the person has allowed", func(t *testing.T) {
		box := sandbox.New(sandbox.Options{Root: root, Dir: root, Protected: protectedForTest, Allowed: []string{filepath.Join(root, "pillion.json"), filepath.Join(root, ".git", "config")}})
		out := runIn(t, run.Command{Text: "echo new >pillion.json && git config a.b c", Dir: root, Sandbox: box})
		if out.Exit != 0 {
			t.Errorf("%+v", out)
		}
	})
}

func TestAProtectedFileThatComesIntoBeingIsMovedAway(t *testing.T) {
	needSandbox(t)
	root, away := t.TempDir(), t.TempDir()
	box := sandbox.New(sandbox.Options{Root: root, Dir: root, Protected: protectedForTest, Quarantine: filepath.Join(away, "q")})
	out := runIn(t, run.Command{Text: "echo evil >.envrc; mkdir .vscode; echo evil >.vscode/tasks.json; mkdir .husky; echo evil >.husky/pre-commit; echo ok >ok", Dir: root, Sandbox: box})
	said := box.Settle()
	if out.Exit != 0 || len(said) != 3 {
		t.Fatalf("%+v %q", out, said)
	}
	for _, p := range []string{".envrc", ".vscode/tasks.json", ".husky"} {
		if _, err := os.Lstat(filepath.Join(root, p)); err == nil {
			t.Errorf("%s is still there", p)
		}
	}
	kept, _ := filepath.Glob(filepath.Join(away, "q", "*"))
	if len(kept) != 3 {
		t.Errorf("kept %q", kept)
	}
	if _, err := os.Stat(filepath.Join(root, "ok")); err != nil {
		t.Error(err)
	}
}

// In whatever depth, by whatever way, and what was there before stays.
func TestAProtectedFileThatComesIntoBeingAnywhereIsMovedAway(t *testing.T) {
	support := needSandbox(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	without := support
	without.Mounts, without.Netns, without.Userns = false, false, false
	for name, with := range map[string]sandbox.Support{"with a view of its own": support, "without": without} {
		t.Run(name, func(t *testing.T) {
			root, away := t.TempDir(), t.TempDir()
			const deep = "a/b/c/d/e/f/g"
			put(t, filepath.Join(root, deep, ".vscode", "settings.json"), "{}")
			put(t, filepath.Join(root, "sub", "x"), "")
			put(t, filepath.Join(root, "made", "tasks.json"), "old")
			put(t, filepath.Join(root, "repo", ".git", "hooks", "pre-push"), "theirs")
			put(t, filepath.Join(root, "repo", ".git", "config"), "[core]\n\tpager = less\n")
			for what, c := range map[string]struct{ command, path string }{
				"deep":                         {"mkdir -p " + deep + "/h/.vscode; echo evil >" + deep + "/h/.vscode/tasks.json", deep + "/h/.vscode/tasks.json"},
				"beside one":                   {"echo evil >" + deep + "/.vscode/tasks.json", deep + "/.vscode/tasks.json"},
				"an old file moved":            {"mkdir sub/.vscode; mv made/tasks.json sub/.vscode/", "sub/.vscode/tasks.json"},
				"an old folder moved":          {"mv made sub/.vscode", "sub/.vscode/tasks.json"},
				"a link":                       {"mkdir sub/.vscode; ln -s ../../made/tasks.json sub/.vscode/tasks.json", "sub/.vscode/tasks.json"},
				"the hook of a new repository": {"git init -q sub; echo evil >sub/.git/hooks/post-commit", "sub/.git/hooks/post-commit"},
				"a new repository's settings":  {"git init -q sub; git -C sub config core.fsmonitor evil", "sub/.git/config"},
				"a repository by a file":       {"mkdir -p other/hooks; echo evil >other/hooks/pre-commit; echo 'gitdir: ../other' >sub/.git", "other/hooks/pre-commit"},
				"another hook":                 {"echo evil >repo/.git/hooks/post-merge", "repo/.git/hooks/post-merge"},
				"nothing":                      {"git init -q sub; git -C sub config user.name x; mkdir -p x/y; echo a >x/y/z", ""},
			} {
				for _, dir := range []string{"sub", "x", "other", "made"} {
					if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
						t.Fatal(err)
					}
				}
				put(t, filepath.Join(root, "sub", "x"), "")
				put(t, filepath.Join(root, "made", "tasks.json"), "old")
				box := sandbox.New(sandbox.Options{Root: root, Dir: root, Protected: protectedForTest, Support: func() sandbox.Support { return with }, Quarantine: filepath.Join(away, what)})
				out := runIn(t, run.Command{Text: c.command, Dir: root, Sandbox: box})
				said := box.Settle()
				if c.path == "" {
					if out.Exit != 0 || len(said) != 0 {
						t.Errorf("%s: %+v %q", what, out, said)
					}
					continue
				}
				if _, err := os.Lstat(filepath.Join(root, c.path)); err == nil || len(said) != 1 && out.Exit == 0 {
					t.Errorf("%s: is still there, or nothing was said: %v %+v %q", what, err, out, said)
				}
			}
			for path, want := range map[string]string{deep + "/.vscode/settings.json": "{}", "repo/.git/hooks/pre-push": "theirs", "repo/.git/config": "[core]\n\tpager = less\n"} {
				if got, err := os.ReadFile(filepath.Join(root, path)); string(got) != want {
					t.Errorf("%s: %q %v", path, got, err)
				}
			}
		})
	}
}

func TestSandboxLetsALinkedWorktreeReachItsRepository(t *testing.T) {
	needSandbox(t)
	base := outsideTemp(t)
	main, linked := filepath.Join(base, "main"), filepath.Join(base, "linked")
	script := "git init -q main && cd main && git config user.name a && git config user.email a@b && echo x >a && git add a && git commit -qm one && git worktree add -q ../linked"
	if out, err := (func() ([]byte, error) { c := exec.Command("sh", "-c", script); c.Dir = base; return c.CombinedOutput() })(); err != nil {
		t.Skipf("git: %v %s", err, out)
	}
	out := runIn(t, run.Command{Text: "echo y >>a && git commit -qam two && git log --oneline && ! echo z >../main/b && ! echo x >../c", Dir: linked, Sandbox: boxFor(t, linked)})
	if out.Exit != 0 {
		t.Errorf("from the linked one: %+v", out)
	}
	out = runIn(t, run.Command{Text: "echo z >../linked/b && ! echo x >../c", Dir: main, Sandbox: boxFor(t, main)})
	if out.Exit != 0 {
		t.Errorf("from the main one: %+v", out)
	}
	out = runIn(t, run.Command{Text: "echo x >../main/.git/hooks/pre-commit", Dir: linked, Sandbox: boxFor(t, linked)})
	if sandbox.Probe().Mounts && out.Exit == 0 {
		t.Error("a hook from the linked worktree")
	}
}

func TestSandboxHasNoNetworkButItsOwn(t *testing.T) {
	s := needSandbox(t)
	if !s.Netns && s.Landlock < 4 {
		t.Skip("no network restriction here")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	root := t.TempDir()
	command := fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", l.Addr().(*net.TCPAddr).Port)
	box := boxFor(t, root)
	out := runIn(t, run.Command{Text: command, Dir: root, Sandbox: box, Shell: needBash(t)})
	if out.Exit == 0 || box.Stopped(out.ForSandbox()) == "" {
		t.Errorf("connected: %+v, said %q", out, box.Stopped(out.ForSandbox()))
	}
	open := sandbox.New(sandbox.Options{Root: root, Dir: root, Network: true})
	if out := runIn(t, run.Command{Text: command, Dir: root, Sandbox: open, Shell: needBash(t)}); out.Exit != 0 {
		t.Errorf("with the network open: %+v", out)
	}
	if !s.Netns {
		return
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: loopback inside is not tried")
	}
	own := `python3 -c 'import socket; s=socket.create_server(("127.0.0.1",0)); c=socket.create_connection(s.getsockname()); print("loopback")'`
	if out := runIn(t, run.Command{Text: own, Dir: root, Sandbox: box}); out.Output.Head != "loopback\n" {
		t.Errorf("loopback inside: %+v", out)
	}
}

func needBash(t *testing.T) string {
	t.Helper()
	p, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	return p
}

func TestSandboxMasksSocketsOfOtherPrograms(t *testing.T) {
	if s := needSandbox(t); !s.Mounts {
		t.Skip("no mounts of one's own here")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	root := t.TempDir()
	path := filepath.Join(root, "s.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out := runIn(t, run.Command{Text: `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("s.sock")'`, Dir: root, Sandbox: boxFor(t, root)})
	if out.Exit == 0 {
		t.Errorf("connected: %+v", out)
	}
}

// Sockets of other programs are out of reach whenever they were made and of whichever kind, under each of their names,
// while a command's own work. The programs here listen outside and inside the project.
func TestSandboxReachesNoSocketOfOtherPrograms(t *testing.T) {
	support := needSandbox(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	without := support
	without.Mounts, without.Netns, without.Userns, without.Cgroup = false, false, false, ""
	for name, with := range map[string]sandbox.Support{"all": support, "less": without} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			box := sandbox.New(sandbox.Options{Root: root, Dir: root, Support: func() sandbox.Support { return with }})
			// Made after the box, as after the beginning of a command.
			path := filepath.Join(root, "s.sock")
			stream, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			packets, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(root, "d.sock"), Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer packets.Close()
			sequence, err := net.Listen("unixpacket", filepath.Join(root, "q.sock"))
			if err != nil {
				t.Fatal(err)
			}
			defer sequence.Close()
			abstract, err := net.Listen("unix", "@pillion-test-"+strconv.Itoa(os.Getpid())+name)
			if err != nil {
				t.Fatal(err)
			}
			defer abstract.Close()
			if err := os.Symlink("s.sock", filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			const program = "import socket as s, os, threading\n"
			reach := map[string]string{
				"stream":                   `s.socket(s.AF_UNIX).connect("s.sock")`,
				"by its whole path":        `s.socket(s.AF_UNIX).connect("` + path + `")`,
				"through a link":           `s.socket(s.AF_UNIX).connect("link")`,
				"through /proc":            `s.socket(s.AF_UNIX).connect("/proc/self/cwd/s.sock")`,
				"as a hard link":           `os.link("s.sock", "hard"); s.socket(s.AF_UNIX).connect("hard")`,
				"packets":                  `s.socket(s.AF_UNIX, s.SOCK_SEQPACKET).connect("q.sock")`,
				"datagrams":                `s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b"x", "d.sock")`,
				"a pair of datagrams":      `a, b = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); a.sendto(b"x", "d.sock")`,
				"abstract":                 `s.socket(s.AF_UNIX).connect("\\0pillion-test-` + strconv.Itoa(os.Getpid()) + name + `")`,
				"a virtual machine's host": `s.socket(40, s.SOCK_STREAM)`,
				"from a thread":            "e = []\ndef f():\n try:\n  s.socket(s.AF_UNIX).connect('s.sock')\n except OSError as x: e.append(x)\nt = threading.Thread(target=f); t.start(); t.join()\nif e: raise e[0]",
				"nothing there":            `s.socket(s.AF_UNIX).connect("nothing")`,
			}
			for what, text := range reach {
				put(t, filepath.Join(root, "reach.py"), program+text)
				if out := runIn(t, run.Command{Text: "python3 reach.py", Dir: root, Sandbox: box}); out.Exit != 1 || !strings.Contains(out.Output.Head, "Error") {
					t.Errorf("%s: %d %s", what, out.Exit, out.Output.Head)
				}
			}
			packets.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			if n, err := packets.Read(make([]byte, 8)); err == nil {
				t.Errorf("a datagram of %d bytes arrived", n)
			}
			if !with.Mounts {
				return
			}
			put(t, filepath.Join(root, "own.py"), program+`
l = s.socket(s.AF_UNIX); l.bind("own"); l.listen()
if os.fork() == 0:
    c = s.socket(s.AF_UNIX); c.connect("own"); c.send(b"hello"); os._exit(0)
while True:
    c = l.accept()[0]
    got = c.recv(9)
    if got: break  # the other was looked at who listens
os.wait(); l.close(); print(got)
n = s.socket(s.AF_UNIX); n.setblocking(False)
try: n.connect("own")
except ConnectionRefusedError: print("refused")
t = s.socket(); t.bind(("127.0.0.1", 0)); t.listen(); s.create_connection(t.getsockname()); print("tcp")
`)
			out := runIn(t, run.Command{Text: "python3 own.py", Dir: root, Sandbox: box})
			if want := "b'hello'\nrefused\ntcp\n"; out.Exit != 0 || out.Output.Head != want {
				t.Errorf("a command's own sockets: %d %q, want %q", out.Exit, out.Output.Head, want)
			}
		})
	}
}

// The bomb runs into its limit, the time limit ends it, and nothing of it is left.
func TestAForkBombEnds(t *testing.T) {
	s := needSandbox(t)
	if s.Cgroup == "" && os.Geteuid() == 0 {
		t.Skip("root is exempt from RLIMIT_NPROC and there is no control group for processes here")
	}
	root := t.TempDir()
	box := boxFor(t, root)
	box.Processes = 60
	r := &run.Runner{}
	out, err := r.Run(t.Context(), run.Command{Text: ":(){ :|:& };:; sleep 100", Dir: root, Sandbox: box, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if !out.TimedOut {
		t.Logf("it ended by itself: %+v", out)
	}
	if why := box.Stopped(out.ForSandbox()); !strings.Contains(why, "60 processes") {
		t.Errorf("said %q of %.300q", why, out.Output.Head)
	}
	if n := below2(t, root); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	for deadline := time.Now().Add(time.Minute); s.Cgroup != ""; time.Sleep(10 * time.Millisecond) { // other test processes have groups too, and remove them after the death
		left, _ := filepath.Glob(filepath.Join(s.Cgroup, "pillion.*"))
		left = slices.DeleteFunc(left, func(group string) bool {
			pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(group), "pillion."))
			return err != nil || syscall.Kill(pid, 0) == nil
		})
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("control groups left: %q", left)
		}
	}
}

// below2 counts processes that work in dir.
func below2(t *testing.T, dir string) (n int) {
	t.Helper()
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == dir {
			n++
		}
	}
	return n
}

func TestSandboxedCommandsEndLikeOthers(t *testing.T) {
	needSandbox(t)
	root := t.TempDir()
	out := runIn(t, run.Command{Text: "exit 7", Dir: root, Sandbox: boxFor(t, root)})
	if out.Exit != 7 {
		t.Errorf("%+v", out)
	}
	out = runIn(t, run.Command{Text: "kill -SEGV $$", Dir: root, Sandbox: boxFor(t, root)})
	if out.Signal != "segmentation fault" {
		t.Errorf("%+v", out)
	}
	r := &run.Runner{}
	out, err := r.Run(t.Context(), run.Command{Text: "setsid -f sh -c 'echo $$; touch up; exec sleep 1000'; until test -e up; do sleep 0.01; done; cat", Dir: root, Sandbox: boxFor(t, root)})
	if err != nil || out.Left != 1 {
		t.Errorf("%+v %v", out, err)
	}
	r.Close()
	gone(t, firstNumber(t, out.Output.Head))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan run.Outcome)
	started := make(chan bool, 1)
	go func() {
		out, _ := r.Run(ctx, run.Command{Text: "echo up; sleep 1000", Dir: root, Sandbox: boxFor(t, root), OnOutput: func(s string) {
			if strings.Contains(s, "up") {
				select {
				case started <- true:
				default:
				}
			}
		}})
		done <- out
	}()
	<-started
	cancel()
	if out := <-done; !out.Canceled {
		t.Errorf("%+v", out)
	}
	r.Close()
	if n := below2(t, root); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestASandboxThatCannotBeSetUpRunsNothing(t *testing.T) {
	needSandbox(t)
	root := t.TempDir()
	box := boxFor(t, root)
	box.Support.Cgroup = "/nonexistent"
	out := runIn(t, run.Command{Text: "echo ran", Dir: root, Sandbox: box})
	if out.Exit != 126 || strings.Contains(out.Output.Head, "ran\n") || !strings.Contains(out.Output.Head, "was not run") {
		t.Errorf("%+v", out)
	}
	box.Support = sandbox.Support{Why: "no Landlock"}
	if _, err := (&run.Runner{}).Run(t.Context(), run.Command{Text: "echo ran", Dir: root, Sandbox: box}); err == nil || !strings.Contains(err.Error(), "no Landlock") {
		t.Errorf("%v", err)
	}
}

// What a command writes to a package cache, the next command of the project sees, and nobody else: not the person, whose
// builds run outside of the sandbox, and not another project.
func TestSandboxKeepsPackageCachesApart(t *testing.T) {
	support := needSandbox(t)
	home := outsideTemp(t)
	one, two := filepath.Join(home, "one"), filepath.Join(home, "two")
	for _, path := range []string{one + "/a", two + "/a", home + "/mine/a", home + "/.npm/a", home + "/go/pkg/mod/m"} {
		put(t, path, "clean")
	}
	get := func(name string) string { return map[string]string{"TMPDIR": "/tmp"}[name] }
	without := support
	without.Mounts, without.Netns, without.Userns, without.Overlay = false, false, false, false
	run := func(root, command string, with sandbox.Support, want int) {
		t.Helper()
		box := sandbox.New(sandbox.Options{Root: root, Dir: root, Home: home, Getenv: get, Writable: []string{"~/mine", "relative", "/nonexistent", home, "/"}, Support: func() sandbox.Support { return with }})
		out := runIn(t, run.Command{Text: command, Dir: root, Sandbox: box, Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}})
		if out.Exit != want {
			t.Errorf("%s: %+v\n%q", command, out, box.Writable)
		}
	}
	if support.Overlay {
		run(one, "echo evil >~/.npm/a && echo evil >~/go/pkg/mod/m && touch ~/.npm/x && rm ~/go/pkg/mod/m", support, 0)
		run(one, `test "$(cat ~/.npm/a)" = evil && test -e ~/.npm/x && ! test -e ~/go/pkg/mod/m`, support, 0)
		run(two, `test "$(cat ~/.npm/a)" = clean && ! test -e ~/.npm/x && test "$(cat ~/go/pkg/mod/m)" = clean`, support, 0)
		run(one, "touch ~/.cache/pillion/sandbox/x", support, 1)
	} else {
		t.Log("no overlays here")
	}
	run(one, `! touch ~/.npm/x && test "$(cat ~/.npm/a)" = clean && mkdir -p "$npm_config_cache" && echo x >"$npm_config_cache/y"`, without, 0)
	run(one, `test -e "$npm_config_cache/y"`, without, 0)
	run(two, `! test -e "$npm_config_cache/y"`, without, 0)
	for _, path := range []string{"/.npm/a", "/go/pkg/mod/m"} {
		if got, err := os.ReadFile(home + path); string(got) != "clean" {
			t.Errorf("%s is %q outside of the sandbox: %v", path, got, err)
		}
	}
	run(one, "touch ~/mine/x && ! touch ~/.cache/x && ! touch ~/.bashrc && ! touch ../x", support, 0)
}

// Two commands of a project at once: the one that comes second has a copy that ends with it.
func TestCommandsBesideEachOtherHaveCachesOfTheirOwn(t *testing.T) {
	if s := needSandbox(t); !s.Overlay {
		t.Skip("no overlays here")
	}
	home := outsideTemp(t)
	root := filepath.Join(home, "p")
	put(t, filepath.Join(root, "a"), "")
	put(t, filepath.Join(home, ".npm", "a"), "")
	first := sandbox.New(sandbox.Options{Root: root, Dir: root, Home: home, Getenv: func(string) string { return "" }})
	second := sandbox.New(sandbox.Options{Root: root, Dir: root, Home: home, Getenv: func(string) string { return "" }})
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if out := runIn(t, run.Command{Text: "touch ~/.npm/second", Dir: root, Sandbox: second, Env: env}); out.Exit != 0 {
		t.Errorf("%+v", out)
	}
	if out := runIn(t, run.Command{Text: "! test -e ~/.npm/second && touch ~/.npm/first", Dir: root, Sandbox: first, Env: env}); out.Exit != 0 {
		t.Errorf("%+v", out)
	}
	if left, _ := filepath.Glob(home + "/.cache/pillion/sandbox/beside-*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func BenchmarkSandboxedCommand(b *testing.B) {
	if s := sandbox.Probe(); !s.Usable() {
		b.Skip(s.Why)
	}
	root := b.TempDir()
	r := &run.Runner{}
	defer r.Close()
	for b.Loop() {
		out, err := r.Run(b.Context(), run.Command{Text: "true", Dir: root, Sandbox: sandbox.New(sandbox.Options{Root: root, Dir: root})})
		if err != nil || out.Exit != 0 {
			b.Fatal(strconv.Itoa(out.Exit)+out.Output.Head, err)
		}
	}
}

// Where neither user namespaces nor control groups are allowed, Landlock alone still holds.
func TestSandboxByLandlockAlone(t *testing.T) {
	s := needSandbox(t)
	base := outsideTemp(t)
	root := filepath.Join(base, "project")
	put(t, filepath.Join(root, "a"), "")
	box := sandbox.New(sandbox.Options{Root: root, Dir: root, Support: func() sandbox.Support { return sandbox.Support{Landlock: s.Landlock} }})
	out := runIn(t, run.Command{Text: "echo x >b && mkdir d && mv b d/ && ! echo x >../b && ! kill -0 $PPID", Dir: root, Sandbox: box})
	if out.Exit != 0 {
		t.Errorf("%+v", out)
	}
	if s.Landlock < 4 {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out = runIn(t, run.Command{Text: fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", l.Addr().(*net.TCPAddr).Port), Dir: root, Sandbox: box, Shell: needBash(t)})
	if out.Exit == 0 || box.Stopped(out.ForSandbox()) == "" {
		t.Errorf("connected: %+v", out)
	}
}

func TestATerminalInTheSandbox(t *testing.T) {
	needSandbox(t)
	base := outsideTemp(t)
	root := filepath.Join(base, "project")
	put(t, filepath.Join(root, "a"), "")
	term := terminal(t, run.TerminalCommand{Text: "stty size; echo x >in && ! echo x >../out", Dir: root, Rows: 5, Cols: 6, Sandbox: boxFor(t, root)})
	code, _, err := term.Wait(t.Context())
	data, _ := term.Scrollback()
	if err != nil || code != 0 || !strings.HasPrefix(string(data), "5 6\r\n") {
		t.Errorf("%d %v %q", code, err, data)
	}
	if _, err := os.Stat(filepath.Join(base, "out")); err == nil {
		t.Error("it wrote outside")
	}
}

// Test runners and agents run programs in pseudo terminals. Those of other programs are not there: what is typed in them could be read.
func TestATerminalOfACommandsOwn(t *testing.T) {
	if s := needSandbox(t); !s.Mounts {
		t.Skip("no mounts here")
	}
	script, err := exec.LookPath("script") // util-linux
	if err != nil {
		t.Skip("script is not installed")
	}
	root := filepath.Join(outsideTemp(t), "project")
	put(t, filepath.Join(root, "a"), "")
	terminal(t, run.TerminalCommand{Text: "cat", Dir: root, Rows: 5, Cols: 6}) // has a number
	out := runIn(t, run.Command{Text: "ls /dev/pts; " + script + " -qec 'tty; test -t 0 && echo yes' /dev/null", Dir: root, Sandbox: boxFor(t, root), Shell: needBash(t)})
	if text := strings.ReplaceAll(out.Output.Head, "\r", ""); out.Exit != 0 || text != "ptmx\n/dev/pts/0\nyes\n" {
		t.Errorf("%d %q", out.Exit, text)
	}
}

// A home folder in /tmp, as in containers and test rigs, closes /tmp; there is a temporary folder all the same.
func TestAHomeInTheTemporaryFolder(t *testing.T) {
	needSandbox(t)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "work")
	put(t, filepath.Join(root, "a.txt"), "a\n")
	box := sandbox.New(sandbox.Options{Root: root, Dir: root, Home: home, Getenv: func(string) string { return "" }})
	out, err := (&run.Runner{}).Run(context.Background(), run.Command{
		Text: `f=$(mktemp) && echo x > "$f" && rm "$f" && echo made; echo x > ../outside; test -e ../outside || echo kept`,
		Dir:  root, Sandbox: box, Shell: needBash(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	if text := out.Output.Head; !strings.Contains(text, "made") || !strings.Contains(text, "kept") {
		t.Errorf("%s", text)
	}
}

func runIn(t *testing.T, c run.Command) run.Outcome {
	t.Helper()
	r := &run.Runner{}
	t.Cleanup(r.Close)
	out, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func firstNumber(t *testing.T, s string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.Fields(s)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// gone fails when a process is alive. A zombie counts as alive: nobody would ever remove it.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) { // a killed process takes a moment to be reaped
		if syscall.Kill(pid, 0) != nil {
			return
		}
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	t.Errorf("process %d is still there: %s", pid, stat)
}

func terminal(t *testing.T, c run.TerminalCommand) *run.Terminal {
	t.Helper()
	ts := &run.Terminals{}
	t.Cleanup(ts.Close)
	term, err := ts.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// Root has rights that others lack, and others get by a namespace what root has: the tests of the boundary run as both.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("all tests of this package run as an ordinary user anyway")
	}
	if testing.Short() {
		t.Skip("runs the tests of this package once more")
	}
	const nobody = 54321 // any number: no user of this name must exist
	folder, err := os.MkdirTemp("/opt", "pillion-user-")
	if err != nil {
		folder = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tests"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{folder, filepath.Join(folder, "home"), filepath.Join(folder, "tmp")} {
		_ = os.Mkdir(dir, 0o755)
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Skip("this root may not give files away:", err)
		}
	}
	cmd := exec.Command(filepath.Join(folder, "tests"), "-test.v", "-test.timeout", "5m", "-test.run", "^Test(A?Sandbox|AProtected|AForkBomb|ATerminal|CommandsBeside|Containment)")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "HOME="+folder+"/home", "TMPDIR="+folder+"/tmp", "PILLION_TEST_FOLDER="+folder, "GOCOVERDIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if passed := strings.Count(string(out), "--- PASS"); err != nil || passed < 20 {
		t.Errorf("as user %d: %v, %d tests passed\n%s", nobody, err, passed, out)
	}
}

// A command that nobody was asked about sees no key, whatever it does to the file first; one that a person allowed reads all.
func TestSandboxHidesKeysFromWhatNobodyWasAskedAbout(t *testing.T) {
	if !needSandbox(t).Mounts {
		t.Skip("no sandbox here: no mounts of one's own")
	}
	const key = "sk-secret-000000000000000"
	for name, command := range map[string]string{
		"by name":            "cat .env",
		"far below":          "cat packages/a/b/c/d/.env",
		"through a link":     "ln -s .env l; cat l",
		"by a hard link":     "ln .env l; cat l",
		"by the other name":  "cat second",
		"renamed":            "mv .env l; cat l",
		"its folder renamed": "mv packages/a p; cat p/b/c/d/.env",
		"copied":             "cp -r packages q; cat q/a/b/c/d/.env",
		"archived":           "tar cf x.tar . ; tar xf x.tar -O",
		"by git":             "git init -q .; git add -A; git diff --cached",
		"unmounted":          "umount .env; cat .env",
		"covered":            "mount --bind . /tmp; cat /tmp/.env",
		"in a namespace":     "unshare -Urm sh -c 'umount .env; cat .env'",
		"private key":        "cat ../.ssh/id_rsa",
		"private key by tar": "tar cf x.tar ../.ssh 2>/dev/null; tar xf x.tar -O",
		"cloud":              "cat ../.aws/credentials",
		"git's store":        "cat ../.config/git/credentials",
		"Pillion's":          "cat ../state/auth.json",
		"a program of its":   `printf 'while IFS= read -r l; do echo "$l"; done <../.ssh/id_rsa; cat .env' >t.sh; sh t.sh`,
	} {
		t.Run(name, func(t *testing.T) {
			base := outsideTemp(t)
			root := filepath.Join(base, "project")
			for _, file := range []string{".env", "packages/a/b/c/d/.env", "../.ssh/id_rsa", "../.aws/credentials", "../.config/git/credentials", "../state/auth.json"} {
				put(t, filepath.Join(root, file), key+"\n")
			}
			put(t, filepath.Join(base, "state", "tool-output", "long"), "the whole output\n")
			put(t, filepath.Join(root, "a.txt"), "fine\n")
			if err := os.Link(filepath.Join(root, ".env"), filepath.Join(root, "second")); err != nil {
				t.Fatal(err)
			}
			runIn := func(command string, hidden *sandbox.HiddenOptions) string {
				r := &run.Runner{}
				defer r.Close()
				box := sandbox.New(sandbox.Options{Root: root, Dir: root, Home: base, Protected: protectedForTest, Hidden: hidden, Getenv: func(name string) string {
					if name == "PATH" {
						return os.Getenv("PATH")
					}
					return ""
				}})
				out, err := r.Run(t.Context(), run.Command{Text: command, Dir: root, Sandbox: box, Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				return out.Output.Head + out.Output.Tail
			}
			hidden := &sandbox.HiddenOptions{Hidden: func(p string) bool { return filepath.Base(p) == ".env" }, State: filepath.Join(base, "state")}
			if out := runIn(command, hidden); strings.Contains(out, key) {
				t.Errorf("the key was printed: %s", out)
			}
			if out := runIn("cat a.txt; echo x >made; cat made; cat ../state/tool-output/long", hidden); !strings.Contains(out, "fine\nx\nthe whole output") {
				t.Errorf("the rest of the work: %s", out)
			}
			if got, err := os.ReadFile(filepath.Join(root, "second")); err != nil || string(got) != key+"\n" {
				t.Errorf("the file itself: %q %v", got, err)
			}
			if name == "by name" {
				if out := runIn(command, nil); !strings.Contains(out, key) {
					t.Errorf("what a person has allowed: %s", out)
				}
			}
		})
	}
}

// The kernel keeps keys that have no path: no mount hides them.
func TestSandboxReachesNoKeyring(t *testing.T) {
	needSandbox(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: it makes the system calls of this test")
	}
	root := filepath.Join(outsideTemp(t), "project")
	put(t, filepath.Join(root, "a"), "")
	command := fmt.Sprintf(`python3 -c 'import ctypes; c = ctypes.CDLL(None, use_errno=True); print([(c.syscall(n, 0, 0, 0, 0, 0), ctypes.get_errno()) for n in (%d, %d, %d)])'`, syscall.SYS_ADD_KEY, syscall.SYS_REQUEST_KEY, syscall.SYS_KEYCTL)
	out := runIn(t, run.Command{Text: command, Dir: root, Sandbox: boxFor(t, root), Timeout: time.Minute})
	if want := "[(-1, 1), (-1, 1), (-1, 1)]"; !strings.Contains(out.Output.Head, want) { // EPERM; the kernel itself would say EFAULT or more
		t.Errorf("%+v", out)
	}
}

// What other programs share by System V IPC has a key instead of a path, so neither mounts nor Landlock keep a command from it.
func TestSandboxReachesNoSharedMemory(t *testing.T) {
	needSandbox(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: it makes the system calls of this test")
	}
	const key = "shared by a program outside"
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600)
	if err != nil {
		t.Skip("no shared memory here:", err)
	}
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.SysvShmDetach(memory)
	copy(memory, key)
	root := filepath.Join(outsideTemp(t), "project")
	put(t, filepath.Join(root, "a"), "")
	command := fmt.Sprintf(`python3 -c 'import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p; p = c.shmat(%d, None, 0o10000); print("no memory" if p in (None, 2**64 - 1) else ctypes.string_at(p))'`, id)
	direct := runIn(t, run.Command{Text: command, Dir: root, Timeout: time.Minute})
	if !strings.Contains(direct.Output.Head, key) {
		t.Fatalf("outside the sandbox, so the test shows nothing: %+v", direct)
	}
	for name, change := range map[string]func(*sandbox.Box){"by a namespace": func(*sandbox.Box) {}, "by the filter": func(b *sandbox.Box) {
		b.Support.Mounts, b.Support.Netns, b.Support.Overlay, b.Support.Userns, b.Caches = false, false, false, false, nil
	}} {
		box := boxFor(t, root)
		change(box)
		if out := runIn(t, run.Command{Text: command, Dir: root, Sandbox: box, Timeout: time.Minute}); !strings.Contains(out.Output.Head, "no memory") {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// A command whose code nobody judged reads the project, the system and the toolchains, as a contained one, and writes as others do.
func TestSandboxReadsLittleWhereNobodyJudgedTheCode(t *testing.T) {
	if support := needSandbox(t); !support.Mounts {
		t.Skip("no sandbox here: no mounts of one's own")
	}
	base := outsideTemp(t)
	root := filepath.Join(base, "home", "project")
	put(t, filepath.Join(root, "a.txt"), "fine\n")
	put(t, filepath.Join(base, "home", "diary.txt"), "private\n")
	put(t, filepath.Join(base, "home", "other", "notes.txt"), "private\n")
	runIn := func(command string, little bool) string {
		r := &run.Runner{}
		defer r.Close()
		box := sandbox.New(sandbox.Options{Root: root, Dir: root, Home: filepath.Join(base, "home"), Protected: protectedForTest, ReadsLittle: little})
		out, err := r.Run(t.Context(), run.Command{Text: command, Dir: root, Sandbox: box, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return out.Output.Head + out.Output.Tail
	}
	for _, command := range []string{"cat ../diary.txt", "cat ../other/notes.txt", "cat < $PWD/../diary.txt", "cp ../diary.txt x; cat x", "ln ../diary.txt x; cat x", "ln -s ../diary.txt x; cat x", "cat /proc/$PPID/environ ../diary.txt", "tar cf - .. | tar xOf -"} {
		if out := runIn(command, true); strings.Contains(out, "private") {
			t.Errorf("%s: %s", command, out)
		}
	}
	if out := runIn("cat ../diary.txt", false); !strings.Contains(out, "private") {
		t.Errorf("what was judged: %s", out)
	}
	work := "cat a.txt; echo made >made; cat made; GIT_CONFIG_GLOBAL=/dev/null git --version | cut -c1-3; echo temp >$(mktemp); head -c 0 /dev/urandom; ls /usr/bin | head -n 1 >/dev/null && awk 'BEGIN { print \"awk\" }'; if command -v python3 >/dev/null; then python3 -c 'import json, threading; print(json.dumps(1))'; else echo 1; fi"
	if out := runIn(work, true); out != "fine\nmade\ngit\nawk\n1\n" {
		t.Errorf("the rest of the work: %q", out)
	}
}
