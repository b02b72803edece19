//go:build unix

package store

import (
	"bufio"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// both runs a test on a new file of SQLite and on a new schema of a private PostgreSQL server.
func both(t *testing.T, f func(t *testing.T, where string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, file(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, schema(t)) })
}

var schemas int

// schema is the address of a schema that does not exist yet.
func schema(t testing.TB) string {
	t.Helper()
	base, err := startCluster()
	if err != nil {
		t.Skip(err)
	}
	schemas++
	name := fmt.Sprintf("s%d_%d", os.Getpid(), schemas)
	return base + "&search_path=" + name + "&application_name=" + name
}

// cluster is the server of this test run: only reachable through a socket in its own folder.
var cluster struct {
	cmd  *exec.Cmd
	dir  string
	done chan struct{} // closed when nobody reads its log any more
}

var startCluster = sync.OnceValues(func() (string, error) {
	bin := postgresBin()
	if bin == "" {
		return "", fmt.Errorf("PostgreSQL is not installed: initdb is neither on PATH nor in /usr/lib/postgresql (Debian: apt install postgresql)")
	}
	dir, err := os.MkdirTemp("", "pillion-pg")
	if err != nil {
		return "", err
	}
	cluster.dir = dir
	as, err := unprivileged(dir)
	if err != nil {
		return "", err
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, as
		cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir)
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb: %v: %s", err, out)
	}
	cmd := run("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "log_checkpoints=off")
	log, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	cluster.cmd = cmd
	ready := make(chan error, 1)
	cluster.done = make(chan struct{})
	go func() {
		defer close(cluster.done)
		var all strings.Builder
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "ready to accept connections") {
				ready <- nil
			}
			all.WriteString(lines.Text() + "\n")
		}
		select {
		case ready <- fmt.Errorf("postgres ended: %s", all.String()):
		default:
		}
	}()
	if err := <-ready; err != nil {
		return "", err
	}
	return "postgres:///postgres?user=tester&host=" + url.QueryEscape(dir), nil
})

func stopCluster() {
	if cluster.cmd != nil {
		cluster.cmd.Process.Signal(syscall.SIGQUIT) // at once; the data goes anyway
		<-cluster.done
		cluster.cmd.Wait()
	}
	if cluster.dir != "" {
		os.RemoveAll(cluster.dir)
	}
}

// postgresBin is where initdb is: PATH, or the newest of Debian's folders.
func postgresBin() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(all) == 0 {
		return ""
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(all, func(a, b string) int { return version(a) - version(b) }))
}

// unprivileged is how the server is started: it refuses root, so root becomes nobody.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	as := dieWithUs()
	if os.Getuid() != 0 {
		return as, nil
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return as, os.Chown(dir, uid, gid)
}

// admin is a connection of the server's owner.
func admin(t testing.TB, where string) *sql.DB {
	t.Helper()
	d, _, err := newPostgres(where).pool(1, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// cut ends the connections of a schema's writers, as a network does.
func cut(t testing.TB, d *sql.DB, where string) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND application_name = $1`, param(t, where, "search_path")); err != nil {
		t.Fatal(err)
	}
}

func param(t testing.TB, where, name string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}
