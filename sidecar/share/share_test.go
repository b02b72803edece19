//go:build unix

package share

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runtimeDir gives the test a folder of its own, with a path short enough for sockets.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return filepath.Join(dir, "pillion")
}

func listen(t *testing.T) *Listener {
	t.Helper()
	l, err := Listen(Options{Version: "1", Cwd: "/work", Sessions: func() []Session { return []Session{{ID: "ses_1", Cwd: "/work", State: "idle"}} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestWhoKnowsTheTokenGetsIn(t *testing.T) {
	dir := runtimeDir(t)
	l := listen(t)
	for path, want := range map[string]os.FileMode{dir: 0o700, l.Socket(): 0o600, infoFile(l.Socket()): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	all := List()
	if len(all) != 1 || all[0].PID != os.Getpid() || all[0].Cwd != "/work" {
		t.Fatalf("%+v", all)
	}
	c, w, err := Dial(context.Background(), all[0], Hello{Session: "ses_1"})
	if err != nil || len(w.Sessions) != 1 {
		t.Fatal(w, err)
	}
	in, err := l.Accept()
	if err != nil || in.Session != "ses_1" {
		t.Fatal(in, err)
	}
	go func() { _, _ = io.WriteString(c, "hello\n"); _ = c.Close() }()
	if b, err := io.ReadAll(in); string(b) != "hello\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if c, w, err := Dial(context.Background(), all[0], Hello{List: true}); err != nil || len(w.Sessions) != 1 {
		t.Error(w, err)
	} else if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
	if _, _, err := Dial(context.Background(), all[0], Hello{Session: "ses_2"}); err == nil || !strings.Contains(err.Error(), "ses_2") {
		t.Errorf("%v", err)
	}
}

func TestWhoDoesNotIsRefused(t *testing.T) {
	runtimeDir(t)
	l := listen(t)
	p := List()[0]
	p.Token = strings.Repeat("0", 64)
	if _, _, err := Dial(context.Background(), p, Hello{}); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("%v", err)
	}
	for _, said := range []string{"GET / HTTP/1.1\n", `{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n", strings.Repeat("x", maxLine+10), ""} {
		c, err := net.Dial("unix", l.Socket())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, said)
		_ = c.(*net.UnixConn).CloseWrite()
		b, _ := io.ReadAll(c)
		if strings.Contains(string(b), `"ok":true`) {
			t.Errorf("%.20q got in: %s", said, b)
		}
		_ = c.Close()
	}
	select {
	case c := <-l.ready:
		t.Errorf("accepted %v", c)
	default:
	}
}

func TestWhatADeadProcessLeftIsRemoved(t *testing.T) {
	dir := runtimeDir(t)
	l := listen(t)
	stale := filepath.Join(dir, "999999-dead.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as kill -9 leaves it
	_ = dead.Close()
	for _, name := range []string{infoFile(stale), filepath.Join(dir, "1-x.json")} {
		if err := os.WriteFile(name, []byte(`{"pid":1,"token":"x"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all := List(); len(all) != 1 || all[0].PID != os.Getpid() {
		t.Errorf("%+v", all)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	begun := time.Now()
	c, err := net.Dial("unix", l.Socket()) // a handshake that never comes
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.Close()
	if d := time.Since(begun); d > handshake/2 {
		t.Errorf("closing took %s", d)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("accepted after the end")
	}
}

func TestAFolderOfAnotherIsRefused(t *testing.T) {
	dir := runtimeDir(t)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Options{Version: "1", Cwd: "/"}); err == nil {
		t.Error("it listens in a file")
	}
	_ = os.Remove(dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	listen(t)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Questions need a folder that is open; they reach a process that is not joinable, and nothing else does.
func TestAQuestionReachesAProcessThatCannotBeJoined(t *testing.T) {
	runtimeDir(t)
	used := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l, err := Listen(Options{Version: "1", Cwd: "/work", Folder: func(path string) (time.Time, bool) { return used, path == "/work" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	p := List()[0]
	if !p.AsksOnly {
		t.Error("it looks joinable")
	}
	for _, h := range []Hello{{}, {List: true}, {Session: "ses_1"}, {Ask: "/other"}, {Ask: "work"}} {
		if _, _, err := Dial(context.Background(), p, h); err == nil {
			t.Errorf("%+v got in", h)
		}
	}
	if _, w, err := Dial(context.Background(), p, Hello{Ask: "/work"}); err != nil || !w.Used.Equal(used) {
		t.Errorf("%+v %v", w, err)
	}
	if c, err := l.Accept(); err != nil || c.Ask != "/work" {
		t.Errorf("%+v %v", c, err)
	}
}

// Another user is refused although they reach the socket and have the token.
func TestAnotherUserIsRefused(t *testing.T) {
	if socket := os.Getenv("SHARE_TEST_SOCKET"); socket != "" { // the child
		_, _, err := Dial(context.Background(), Process{Token: os.Getenv("SHARE_TEST_TOKEN"), socket: os.Getenv("SHARE_TEST_FOREIGN")}, Hello{List: true})
		fmt.Printf("dialled: %v\n", err)
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_ = write(c, Hello{Token: os.Getenv("SHARE_TEST_TOKEN"), List: true})
		b, _ := io.ReadAll(c)
		fmt.Printf("answered: %s\n", b)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := runtimeDir(t)
	l := listen(t)
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o755, l.Socket(): 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	// The test binary is in a folder that only root can enter.
	self := filepath.Join(filepath.Dir(dir), "self")
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, b, 0o755); err != nil {
		t.Fatal(err)
	}
	// The token is not even sent to a process of another user.
	foreign, err := net.Listen("unix", filepath.Join(dir, "foreign"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = foreign.Close() })
	if err := os.Chmod(foreign.Addr().String(), 0o777); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	go func() {
		c, err := foreign.Accept()
		if err != nil {
			heard <- err.Error()
			return
		}
		b, _ := io.ReadAll(c)
		heard <- string(b)
	}()
	cmd := exec.Command(self, "-test.run", "^TestAnotherUserIsRefused$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "SHARE_TEST_SOCKET="+l.Socket(), "SHARE_TEST_TOKEN="+l.token, "SHARE_TEST_FOREIGN="+foreign.Addr().String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, want := range []string{"dialled: this process is another user's", `answered: {"ok":false,"error":"this process is another user's"}`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if text := <-heard; text != "" {
		t.Errorf("the other user's process was sent %q", text)
	}
}
