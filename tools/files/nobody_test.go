//go:build unix

package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asNobody is the child of TestAsAnotherUser: it tries to write each file of the folder and says how that ended.
func asNobody(dir string) {
	out := map[string]string{}
	for name, op := range map[string]Op{
		"shared/theirs": {Kind: Write, Base: Hash([]byte("old"))},
		"shared/locked": {Kind: Write, Base: Hash([]byte("old"))},
		"shared/new":    {Kind: Write},
		"root/open":     {Kind: Write, Base: Hash([]byte("old"))},
		"root/new":      {Kind: Write},
		"root/gone":     {Kind: Remove, Base: Hash([]byte("old"))},
	} {
		op.Path, op.Data = filepath.Join(dir, name), []byte("new")
		err := Commit(bg, []Op{op}, nil)
		switch {
		case err == nil:
			out[name] = "written"
		case errors.Is(err, fs.ErrPermission):
			out[name] = "refused"
		default:
			out[name] = err.Error()
		}
	}
	json.NewEncoder(os.Stdout).Encode(out)
	os.Exit(0)
}

// What belongs to somebody else keeps its owner where we may write it at all, and is refused in words where not.
func TestAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	dir, err := os.MkdirTemp("", "pillion")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755)
	for name, mode := range map[string]fs.FileMode{"shared/theirs": 0o666, "shared/locked": 0o644, "root/open": 0o666, "root/gone": 0o666} {
		os.Chmod(write(t, filepath.Join(dir, name), "old"), mode)
	}
	os.Chmod(filepath.Join(dir, "shared"), 0o777)
	self := filepath.Join(dir, "self")
	if b, err := os.ReadFile(os.Args[0]); err != nil || os.WriteFile(self, b, 0o755) != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PILLION_TEST_NOBODY="+dir, "GOCOVERDIR="+filepath.Join(dir, "shared")) // with -cover the other user writes too
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, b)
	}
	var got map[string]string
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%v %s", err, b)
	}
	for name, want := range map[string]string{
		"shared/theirs": "written", "shared/locked": "refused", "shared/new": "written", "root/open": "written", "root/new": "refused", "root/gone": "refused",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
		fi, err := os.Stat(filepath.Join(dir, name))
		if strings.HasSuffix(name, "new") {
			continue
		}
		if err != nil || fi.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s is no longer root's: %v", name, err)
		}
		if text := map[string]string{"written": "new", "refused": "old"}[want]; read(t, filepath.Join(dir, name)) != text {
			t.Errorf("%s holds %q", name, read(t, filepath.Join(dir, name)))
		}
	}
	clean(t, dir)
}
