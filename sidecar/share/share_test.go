//go:build unix

package share

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
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
	l, err := Listen("1", "/work", func() []Session { return []Session{{ID: "ses_1", Cwd: "/work", State: "idle"}} })
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
	if _, err := Listen("1", "/", nil); err == nil {
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
