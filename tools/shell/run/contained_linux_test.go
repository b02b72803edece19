package run

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

func containedIn(t testing.TB, root string) *sandbox.ContainOptions {
	t.Helper()
	if ok, why := sandbox.CanContain(); !ok {
		t.Skip(why)
	}
	return &sandbox.ContainOptions{Root: root, Dir: root, Home: filepath.Join(filepath.Dir(root), "home"), Getenv: os.Getenv}
}

// contained runs a command contained in root.
func contained(t *testing.T, root, command string) Outcome {
	t.Helper()
	return run(t, Command{Text: command, Dir: root, Contained: containedIn(t, root), Timeout: time.Minute})
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: it makes the system calls of this test")
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What runs without a question cannot write, whatever it is: each of these is what an analysis could miss.
func TestAContainedCommandWritesNothing(t *testing.T) {
	needPython(t)
	base := t.TempDir()
	root := filepath.Join(base, "project")
	writeFile(t, filepath.Join(root, "a"), "a")
	writeFile(t, filepath.Join(root, ".git", "config"), "")
	writeFile(t, filepath.Join(base, "out"), "out")
	if err := os.Symlink(base, filepath.Join(root, "up")); err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]string{
		"redirect":                   "echo x >a",
		"append":                     "echo x >>a",
		"create":                     "echo x >new",
		"create outside":             "echo x >../new",
		"through a link":             "echo x >up/out",
		"remove":                     "rm -f a",
		"rename":                     "mv a b",
		"hard link":                  "ln a b",
		"symbolic link":              "ln -s a b",
		"folder":                     "mkdir d",
		"FIFO":                       "mkfifo f",
		"mode":                       "chmod 777 a",
		"time":                       "touch -d 2001-01-01 a",
		"access time":                "touch -a -d 2001-01-01 a",
		"empty it":                   "truncate -s0 a",
		"empty it by path":           `python3 -c 'import os; os.truncate("a", 0)'`,
		"empty it, open for reading": `python3 -c 'import os; os.open("a", os.O_RDONLY|os.O_TRUNC)'`,
		"owner":                      "chown 1 a",
		"attribute":                  `python3 -c 'import os; os.setxattr("a", "user.x", b"1")'`,
		"awk":                        `awk 'BEGIN { print "x" > "new" }'`,
		"sed in place":               "sed -i s/a/b/ a",
		"system /tmp":                "echo x >" + filepath.Join(os.TempDir(), "pillion-outside-"+strconv.Itoa(os.Getpid())),
		"git configuration":          "git config a.b c",
		"in a namespace of its own":  "unshare -rm sh -c 'mount -t tmpfs none .; echo x >a'",
		"as another architecture":    `python3 -c 'import ctypes; ctypes.CDLL(None).syscall(0x40000000|85, b"a", 0o777)>=0 or exit(1)'`,
		"io_uring":                   `python3 -c 'import ctypes; b=ctypes.create_string_buffer(256); ctypes.CDLL(None).syscall(425, 4, b)>=0 or exit(1)'`,
	} {
		t.Run(name, func(t *testing.T) {
			before := snapshot(t, base)
			if out := contained(t, root, command); out.Exit == 0 {
				t.Errorf("it went through: %q", out.Output.Head)
			}
			if after := snapshot(t, base); after != before {
				t.Errorf("something changed:\n%s\n%s", before, after)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(os.TempDir(), "pillion-outside-"+strconv.Itoa(os.Getpid()))); err == nil {
		t.Error("a file in the system's temporary folder")
	}
}

// snapshot is everything below a folder that a command could change.
func snapshot(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), st.Uid, st.Mtim, st.Ctim)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// No socket of any family, type or age: the servers here listen, some only after the command began.
func TestAContainedCommandHasNoSocket(t *testing.T) {
	needPython(t)
	root := t.TempDir()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	stream, err := net.Listen("unix", filepath.Join(root, "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	datagram, err := net.ListenPacket("unixgram", filepath.Join(root, "datagram"))
	if err != nil {
		t.Fatal(err)
	}
	defer datagram.Close()
	abstract, err := net.Listen("unix", "@pillion-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	arrived := make(chan string, 8)
	for _, l := range []net.Listener{tcp, stream, abstract} {
		go func() {
			if c, err := l.Accept(); err == nil {
				arrived <- l.Addr().String()
				c.Close()
			}
		}()
	}
	go func() {
		if _, from, err := datagram.ReadFrom(make([]byte, 8)); err == nil {
			arrived <- fmt.Sprint("datagram ", from)
		}
	}()
	python := func(code string) string { return "python3 -c '" + code + "'" }
	for name, command := range map[string]string{
		"TCP":      python(fmt.Sprintf(`import socket; socket.create_connection(("127.0.0.1", %d))`, tcp.Addr().(*net.TCPAddr).Port)),
		"bash":     fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d", tcp.Addr().(*net.TCPAddr).Port),
		"UDP":      python(`import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))`),
		"raw":      python(`import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)`),
		"netlink":  python(`import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)`),
		"packet":   python(`import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)`),
		"vsock":    python(`import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)`),
		"kernel":   python(`import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)`),
		"Unix":     python(`import socket; socket.socket(socket.AF_UNIX).connect("stream")`),
		"datagram": python(`import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "datagram")`),
		"abstract": python(fmt.Sprintf(`import socket; socket.socket(socket.AF_UNIX).connect("\0pillion-test-%d")`, os.Getpid())),
		// The kernel gives a datagram pair's end every address in its reach.
		"datagram pair": python(`import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", "datagram")`),
	} {
		t.Run(name, func(t *testing.T) {
			if out := contained(t, root, command); out.Exit == 0 {
				t.Errorf("it went through: %q", out.Output.Head)
			}
		})
	}
	t.Run("made after the command began", func(t *testing.T) {
		late := filepath.Join(root, "late")
		began := make(chan bool, 1)
		r := &Runner{}
		defer r.Close()
		done := make(chan Outcome)
		go func() {
			out, _ := r.Run(t.Context(), Command{
				Text: `echo up; until test -S late; do :; done; ` + python(`import socket; socket.socket(socket.AF_UNIX).connect("late")`),
				Dir:  root, Contained: containedIn(t, root), Timeout: time.Minute,
				Raw: func([]byte) {
					select {
					case began <- true:
					default:
					}
				},
			})
			done <- out
		}()
		<-began
		l, err := net.Listen("unix", late)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if out := <-done; out.Exit == 0 {
			t.Errorf("it went through: %q", out.Output.Head)
		}
	})
	t.Run("what is not outside works", func(t *testing.T) {
		out := contained(t, root, python(`import socket; a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))`))
		if out.Exit != 0 {
			t.Errorf("a pair of its own: %q", out.Output.Head)
		}
	})
	select {
	case who := <-arrived:
		t.Error("reached", who)
	default:
	}
}

// Keys are in the environment of this program and its relatives, in the home folder, and in files the rules hide.
func TestAContainedCommandSeesNoKey(t *testing.T) {
	base := t.TempDir()
	root, home := filepath.Join(base, "project"), filepath.Join(base, "home")
	const key = "sk-secret-000000000000000"
	writeFile(t, filepath.Join(home, ".ssh", "id_rsa"), key)
	writeFile(t, filepath.Join(home, ".aws", "credentials"), key)
	writeFile(t, filepath.Join(home, ".local", "share", "pillion", "auth.json"), key)
	writeFile(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = me\n")
	writeFile(t, filepath.Join(root, ".env"), key)
	writeFile(t, filepath.Join(root, "web", ".env"), key)
	deep := filepath.Join("packages", "b", "c", "d", "e", "f")
	writeFile(t, filepath.Join(root, deep, ".env"), key)
	writeFile(t, filepath.Join(root, "node_modules", "x", "y", ".env"), key)
	writeFile(t, filepath.Join(root, deep, "a"), "fine")
	writeFile(t, filepath.Join(root, "web", "a"), "fine")
	writeFile(t, filepath.Join(root, "a"), "fine")
	o := containedIn(t, root)
	o.Hidden = func(p string) bool { return filepath.Base(p) == ".env" }
	t.Setenv("MY_API_KEY", key)
	for name, c := range map[string]struct {
		command string
		ok      bool
	}{
		"private key":                {"cat " + home + "/.ssh/id_rsa", false},
		"a glob":                     {"ls " + home + "/.ssh/* && cat " + home + "/.ssh/*", false},
		"credentials":                {"cat " + home + "/.aws/credentials", false},
		"Pillion's own":              {"cat " + home + "/.local/share/pillion/auth.json", false},
		"through a link":             {"cat /proc/self/cwd/../home/.ssh/id_rsa", false},
		"this program's environment": {"tr '\\0' '\\n' </proc/$PPID/environ", false},
		"this program's memory":      {"cat /proc/$PPID/mem", false},
		"this program's open files":  {"ls -l /proc/$PPID/fd/", false},
		"a hidden file":              {"cat .env", false},
		"a hidden file further down": {"cat web/.env", false},
		"a hidden file far below":    {"cat " + deep + "/.env", false},
		"a package's hidden file":    {"cat node_modules/x/y/.env", false},
		"a hidden file found":        {"grep -r secret .", false},
		"the project":                {"cat a web/a " + deep + "/a && ls -a . web", true},
		"git's configuration":        {"HOME=" + home + " git config user.name", true},
		"the system":                 {"cat /etc/passwd >/dev/null && ls /usr/bin >/dev/null", true},
	} {
		t.Run(name, func(t *testing.T) {
			opts := *o
			out := run(t, Command{Text: c.command, Dir: root, Contained: &opts, Timeout: time.Minute})
			if (out.Exit == 0) != c.ok {
				t.Errorf("exit %d: %q", out.Exit, out.Output.Head)
			}
			if strings.Contains(out.Output.Head, key) {
				t.Error("the key was printed")
			}
		})
	}
}

// Among the system's configuration lie keys that root could read.
func TestAContainedCommandSeesNoKeyOfTheSystem(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers"} {
		if text, err := os.ReadFile(path); err != nil || len(text) == 0 {
			continue
		}
		if out := contained(t, root, "cat "+path); out.Exit == 0 || out.Output.Head == "" {
			t.Errorf("%s was read", path)
		}
	}
	if out := contained(t, root, "cat /etc/passwd && test -n \"$(ls /etc /usr/bin)\" && id"); out.Exit != 0 {
		t.Errorf("the rest of the system cannot be read: %+v", out)
	}
}

func TestAContainedCommandReachesNoOtherProcess(t *testing.T) {
	needPython(t)
	root := t.TempDir()
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	pid := victim.Process.Pid
	for name, command := range map[string]string{
		"signal":        fmt.Sprintf("kill -STOP %d", pid),
		"priority":      fmt.Sprintf("renice -n 19 -p %d", pid),
		"limits":        fmt.Sprintf(`python3 -c 'import resource; resource.prlimit(%d, resource.RLIMIT_NOFILE, (1, 1))'`, pid),
		"affinity":      fmt.Sprintf(`python3 -c 'import os; os.sched_setaffinity(%d, {0})'`, pid),
		"tracing":       fmt.Sprintf(`python3 -c 'import ctypes; ctypes.CDLL(None).ptrace(16, %d, 0, 0)==0 or exit(1)'`, pid),
		"arguments":     fmt.Sprintf("cat /proc/%d/cmdline", pid),
		"status":        fmt.Sprintf("cat /proc/%d/status", pid),
		"all arguments": `test -n "$(cat /proc/[0-9]*/cmdline 2>/dev/null)"`,
		"list":          "ps -eo args | grep -q '^sleep 1000'",
		"shared memory": `python3 -c 'import ctypes; ctypes.CDLL(None).shmget(1, 4096, 0o1666)>=0 or exit(1)'`,
	} {
		t.Run(name, func(t *testing.T) {
			if out := contained(t, root, command); out.Exit == 0 {
				t.Errorf("it went through: %q", out.Output.Head)
			}
		})
	}
	t.Run("its own", func(t *testing.T) {
		if out := contained(t, root, "sleep 1000 & kill $! && timeout 5 true && nice true"); out.Exit != 0 {
			t.Errorf("%q", out.Output.Head)
		}
	})
}

// A terminal obeys what is printed on it and hears what is typed: another program's is neither written nor read.
func TestAContainedCommandReachesNoOtherTerminal(t *testing.T) {
	ours, theirs, err := openPTY()
	if err != nil {
		t.Skip("no pseudo-terminal:", err)
	}
	defer ours.Close()
	defer theirs.Close()
	name := theirs.Name()
	if err := os.Chmod(name, 0o666); err != nil {
		t.Fatal(err)
	}
	for what, command := range map[string]string{"written": "echo x >" + name, "read": ": <" + name, "both": ": <>" + name} {
		if out := contained(t, t.TempDir(), command); out.Exit == 0 {
			t.Errorf("it can be %s: %+v", what, out)
		}
	}
}

func TestAContainedCommandIsBounded(t *testing.T) {
	needPython(t)
	root := t.TempDir()
	out := contained(t, root, "ulimit -t; ulimit -d; ulimit -f; ulimit -c")
	if out.Output.Head != "600\n8388608\n1048576\n0\n" {
		t.Errorf("limits %q", out.Output.Head)
	}
	if out := contained(t, root, `python3 -c 'x = bytearray(9 << 30)'`); out.Exit == 0 || !strings.Contains(out.Output.Head, "MemoryError") {
		t.Errorf("%+v", out)
	}
}

// However the limit is held, a bomb meets it, nothing of it is left, and other programs start as before.
func TestAContainedForkBombIsBounded(t *testing.T) {
	needPython(t)
	const forks = `import os, time
n = 0
try:
    while n < 3000:
        if os.fork() == 0:
            time.sleep(100)
            os._exit(0)
        n += 1
except BlockingIOError:
    print("refused after", n, flush=True)
time.sleep(100)
`
	for name, noGroup := range map[string]bool{"control group": false, "no control group": true} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			writeFile(t, filepath.Join(root, "bomb.py"), forks)
			r := &Runner{}
			defer r.Close()
			r.cells.limit = sandbox.NewProcessLimit()
			r.cells.limit.Most, r.cells.limit.NoGroup = 100, noGroup
			// Whether the kernel holds the limit here must not be decided by what is tested.
			held := os.Geteuid() != 0 || !noGroup && groupsWork(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			refused := make(chan struct{})
			var once sync.Once
			c := Command{Text: "python3 bomb.py", Dir: root, Contained: containedIn(t, root), Timeout: time.Minute, OnOutput: func(tail string) {
				if strings.Contains(tail, "refused") {
					once.Do(func() { close(refused) })
				}
			}}
			ended := make(chan Outcome, 1)
			go func() { out, _ := r.Run(ctx, c); ended <- out }()
			select {
			case <-refused: // by the kernel: the command itself lives
				if out, err := exec.Command("true").CombinedOutput(); err != nil {
					t.Errorf("a program of the person's does not start: %v %s", err, out)
				}
				cancel()
				if out := <-ended; !strings.Contains(out.Output.Head, "refused after") {
					t.Errorf("%+v", out)
				}
			case out := <-ended: // by this program, which kills it
				if held || out.Signal == "" || out.TimedOut {
					t.Errorf("%+v", out)
				}
			}
			r.Close()
			noneLeftIn(t, root)
			if groups, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/pillion-contained.%d.*", os.Getpid())); len(groups) > 0 {
				t.Errorf("control groups are left: %q", groups)
			}
		})
	}
}

// groupsWork tries whether this process may make control groups for processes.
func groupsWork(t *testing.T) bool {
	t.Helper()
	l := sandbox.NewProcessLimit()
	defer l.Close()
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	return l.Admit(child.Process.Pid) == nil && l.Held()
}

// noneLeftIn looks for processes that work in a folder.
func noneLeftIn(t *testing.T, root string) {
	t.Helper()
	places, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range places {
		if at, err := os.Readlink(l); err == nil && at == root {
			t.Errorf("%s is left", l)
		}
	}
}

// A bomb that no program ends on purpose: its shell is gone at once, and its processes have lost their parents.
func TestAContainedForkBombOfTheShellEnds(t *testing.T) {
	for name, noGroup := range map[string]bool{"control group": false, "no control group": true} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			r := &Runner{}
			defer r.Close()
			r.cells.limit = sandbox.NewProcessLimit()
			r.cells.limit.Most, r.cells.limit.NoGroup = 100, noGroup
			if _, err := r.Run(t.Context(), Command{Text: ":(){ :|:& };:; sleep 100", Dir: root, Contained: containedIn(t, root), Timeout: time.Second}); err != nil {
				t.Fatal(err)
			}
			r.Close()
			noneLeftIn(t, root)
		})
	}
}

// Each command has a temporary folder that is empty, works, and is empty again afterwards.
func TestAContainedCommandHasATemporaryFolderOfItsOwn(t *testing.T) {
	root := t.TempDir()
	r := &Runner{}
	c := Command{Text: "ls -A $TMPDIR; f=$(mktemp) && echo x >$f && mv $f $f.2 && cat $f.2 && cat <<<here && echo $TMPDIR", Dir: root, Contained: containedIn(t, root)}
	var dir string
	for range 2 {
		out, err := r.Run(t.Context(), c)
		if err != nil || out.Exit != 0 || !strings.HasPrefix(out.Output.Head, "x\nhere\n") {
			t.Fatalf("%+v %v", out, err)
		}
		dir = strings.TrimSpace(strings.TrimPrefix(out.Output.Head, "x\nhere\n"))
	}
	r.Close()
	if _, err := os.Stat(dir); err == nil {
		t.Error(dir, "is still there")
	}
}

// The thread that serves the next command must read what is there now, not what stood there under the same names.
func TestContainmentFollowsTheFiles(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "project")
	writeFile(t, filepath.Join(root, "a"), "one")
	r := &Runner{}
	defer r.Close()
	cat := func(want string, ok bool) {
		t.Helper()
		o := containedIn(t, root)
		o.Hidden = func(p string) bool { return filepath.Base(p) == ".env" }
		out, err := r.Run(t.Context(), Command{Text: "cat " + want, Dir: root, Contained: o})
		if err != nil || (out.Exit == 0) != ok {
			t.Errorf("cat %s: %+v %v", want, out, err)
		}
	}
	cat("a", true)
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "a"), "two")
	cat("a", true)
	cat("../project.old/a", false)
	writeFile(t, filepath.Join(root, ".env"), "key")
	cat(".env", false)
	cat("a", true)
	writeFile(t, filepath.Join(root, "new"), "three")
	cat("new", true)
}

// A command that failed at what containment keeps from it names the place; one that failed by itself does not.
func TestContainmentIsNamedWhereItStoppedACommand(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "project")
	writeFile(t, filepath.Join(root, "a"), "a")
	writeFile(t, filepath.Join(base, "out"), "out")
	for command, want := range map[string]string{
		"cat ../out":                filepath.Join(base, "out"),
		"echo x >a":                 filepath.Join(root, "a"),
		"echo x >../made":           filepath.Join(base, "made"),
		"cat nothing":               "",
		"ls /proc/1/nothing; false": "",
		"false":                     "",
	} {
		got := contained(t, root, command).Kept
		if got != "" && !filepath.IsAbs(got) {
			got = filepath.Join(root, got)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

func TestContainedCommandsEndLikeOthers(t *testing.T) {
	root := t.TempDir()
	if out := contained(t, root, "exit 7"); out.Exit != 7 {
		t.Errorf("%+v", out)
	}
	r := &Runner{}
	defer r.Close()
	out, err := r.Run(t.Context(), Command{Text: "setsid -f sh -c 'echo $$; exec sleep 1000'; sleep 1000", Dir: root, Contained: containedIn(t, root), Timeout: 300 * time.Millisecond})
	if err != nil || !out.TimedOut || out.Output.Head == "" {
		t.Fatalf("%+v %v", out, err)
	}
	gone(t, firstNumber(t, out.Output.Head))
}

// Nothing of this program itself is restricted: containment is a thread's.
func TestContainmentLeavesThisProgramAlone(t *testing.T) {
	root := t.TempDir()
	for range 30 {
		contained(t, root, "true")
	}
	var failed []string
	for range 50 { // on whatever thread
		if l, err := net.Listen("unix", filepath.Join(root, "s")); err != nil {
			failed = append(failed, err.Error())
		} else {
			l.Close()
		}
		if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o644); err != nil {
			failed = append(failed, err.Error())
		}
	}
	if len(failed) > 0 {
		t.Error(failed)
	}
}

func BenchmarkTrue(b *testing.B) {
	r := &Runner{}
	defer r.Close()
	dir := b.TempDir()
	for _, how := range []string{"plain", "contained"} {
		b.Run(how, func(b *testing.B) {
			for b.Loop() {
				c := Command{Text: "true", Dir: dir}
				if how == "contained" {
					c.Contained = containedIn(b, dir)
				}
				if out, err := r.Run(b.Context(), c); err != nil || out.Exit != 0 {
					b.Fatalf("%+v %v", out, err)
				}
			}
		})
	}
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
	cmd := exec.Command(filepath.Join(folder, "tests"), "-test.v", "-test.timeout", "5m", "-test.run", "^Test(AContained|Containment|ContainedCommands)")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "HOME="+folder+"/home", "TMPDIR="+folder+"/tmp", "PILLION_TEST_FOLDER="+folder, "GOCOVERDIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if passed := strings.Count(string(out), "--- PASS"); err != nil || passed < 30 {
		t.Errorf("as user %d: %v, %d tests passed\n%s", nobody, err, passed, out)
	}
}
