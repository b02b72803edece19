package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
)

// The databases of testdata/databases, with their checkpoints, were written by the binaries of the days that they are named after, each with two turns: an edit
// that was accepted, then one that was not written. Today's program shows such a session and goes on with it. Add one when a schema or
// the events of a session change; never write an old one again.
func TestDatabasesOfOldBinariesGoOn(t *testing.T) {
	files, err := filepath.Glob("testdata/databases/*/pillion.db.gz")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pillion.db")
			unpack(t, file, path)
			if blobs := filepath.Join(filepath.Dir(file), "checkpoints"); isDirectory(blobs) {
				if err := os.CopyFS(path+".checkpoints", os.DirFS(blobs)); err != nil {
					t.Fatal(err)
				}
			}
			st := store.New(path)
			t.Cleanup(func() { _ = st.Close() })
			listed, err := st.Sessions(t.Context(), "")
			if err != nil || len(listed) != 1 || listed[0].Cwd != "/home/ada/proj" || listed[0].Title != "make it big" {
				t.Fatalf("%+v, %v", listed, err)
			}
			cwd := t.TempDir()
			write(t, filepath.Join(cwd, "a.txt"), "ONE\ntwo\n")
			r := newRig(t, st, cwd)
			r.ed.request("initialize", knowing)
			r.ed.send(opens("load", listed[0].ID, cwd))
			shown := map[string]int{}
			for {
				m, line := r.ed.receive()
				if m["id"] == "load" {
					if m["error"] != nil {
						t.Fatal(line)
					}
					break
				}
				for _, part := range []string{`"make it big"`, `"and the other line"`, `"Done: ONE."`, `"Second answer."`, `"newText":"ONE`, `"status":"failed"`, `"sessionUpdate":"plan"`} {
					shown[part] += strings.Count(line, part)
				}
			}
			for part, n := range shown {
				if n == 0 {
					t.Errorf("loading shows no %s", part)
				}
			}
			r.ed.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"go on"}]}}`, listed[0].ID))
			r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
			asked := fmt.Sprintf("%+v", messages(r.model.seen[0]))
			at := 0
			for _, part := range []string{"make it big", "call_2", "Done: ONE.", "and the other line", "Second answer.", "go on"} {
				i := strings.Index(asked[at:], part)
				if i < 0 {
					t.Fatalf("the model is not told %q, or not in its place: %s", part, asked)
				}
				at += i
			}
		})
	}
}

// messages are a request's messages as text.
func messages(q *provider.Request) (out []string) {
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			out = append(out, fmt.Sprintf("%s %+v", m.Role, p))
		}
	}
	return out
}

func unpack(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, z); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func isDirectory(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
