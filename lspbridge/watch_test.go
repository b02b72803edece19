package lspbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
)

// A server that registered for *.fake files hears of what other programs do, in every way they do it.
func TestWatcher(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	write(t, in("a.fake"), "BAD a\n")
	write(t, in("sub/b.fake"), "BAD b\n")
	var mu sync.Mutex
	events := map[string]bool{}
	heard := make(chan struct{}, 1000)
	var server *fakelsp.Server
	m := New(Options{Root: root, Idle: -1, Dial: func(Server, string) (io.ReadCloser, io.WriteCloser, error) {
		server = fakelsp.New(fakelsp.Options{Pull: true, On: func(ctx context.Context, s *fakelsp.Server, method string, params json.RawMessage) (any, bool, error) {
			switch method {
			case "initialized":
				err := s.Peer().Call(ctx, "client/registerCapability", json.RawMessage(`{"registrations":[{"id":"1","method":"workspace/didChangeWatchedFiles","registerOptions":{"watchers":[{"globPattern":"**/*.fake"}]}}]}`), nil)
				return nil, true, err
			case "workspace/didChangeWatchedFiles":
				var p struct {
					Changes []struct {
						URI  string
						Type int
					}
				}
				_ = json.Unmarshal(params, &p)
				mu.Lock()
				for _, c := range p.Changes {
					events[strings.TrimPrefix(c.URI, "file://"+root+"/")+" "+[]string{"", "created", "changed", "deleted"}[c.Type]] = true
				}
				mu.Unlock()
				heard <- struct{}{}
			}
			return nil, false, nil
		}})
		r, w := server.Pipes()
		return r, w, nil
	}})
	m.rows = func() []Server { return []Server{{ID: "fake", Extensions: []string{".fake"}}} }
	defer m.Close(context.Background())
	ctx := longer(t)
	if r := m.Diagnostics(ctx, in("a.fake")); messages(r.Items) != "a.fake: a" {
		t.Fatalf("%s %q", r.Certainty, messages(r.Items))
	}
	// The watcher starts behind the first server; it watches once it has told of something.
	wait := func(want string) {
		t.Helper()
		for {
			mu.Lock()
			ok := events[want]
			mu.Unlock()
			if ok {
				return
			}
			select {
			case <-heard:
			case <-ctx.Done():
				t.Fatalf("never heard of %q, only of %v", want, events)
			}
		}
	}
	m.mu.Lock()
	w := m.watcher
	m.mu.Unlock()
	if w == nil {
		t.Fatal("no watcher runs")
	}
	<-w.ready

	write(t, in("new.fake"), "x")
	wait("new.fake created")
	write(t, in("sub/b.fake"), "BAD other\n")
	wait("sub/b.fake changed")
	if err := os.Rename(in("new.fake"), in("moved.fake")); err != nil {
		t.Fatal(err)
	}
	wait("new.fake deleted")
	wait("moved.fake created")
	write(t, in("tmp"), "BAD atomically\n")
	if err := os.Rename(in("tmp"), in("a.fake")); err != nil {
		t.Fatal(err)
	}
	wait("a.fake changed")
	if r := m.Diagnostics(ctx, in("a.fake")); messages(r.Items) != "a.fake: atomically" {
		t.Errorf("the open file is not read again: %q", messages(r.Items))
	}
	write(t, in("deep/er/still/c.fake"), "x") // the folders' watches come after the file
	wait("deep/er/still/c.fake created")
	if err := os.RemoveAll(in("deep")); err != nil {
		t.Fatal(err)
	}
	wait("deep/er/still/c.fake deleted")

	// A flush waits for all that was written before it, and for no pause: the answer comes behind the events.
	if runtime.GOOS == "linux" && w.mark == nil {
		t.Error("no mark is watched")
	}
	for k := range 200 {
		name := []string{"p%d.fake", "sub/p%d.fake"}[k%2]
		name = fmt.Sprintf(name, k)
		write(t, in(name), "x")
		m.Flush(ctx)
		m.Diagnostics(ctx, in("a.fake")) // the server reads its messages in order
		mu.Lock()
		if !events[name+" created"] {
			t.Errorf("%s is not told after the flush", name)
		}
		mu.Unlock()
	}
	// Questions that come together are all answered.
	var all sync.WaitGroup
	for k := range 50 {
		all.Go(func() {
			write(t, in(fmt.Sprintf("q%d.fake", k)), "x")
			m.Flush(ctx)
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Error("a flush was not answered")
	}

	// Our own write is told at once, and its echo from the disk is not told again.
	write(t, in("a.fake"), "ours\n")
	m.Changed(ctx, []Proposal{{Path: in("a.fake"), Text: "ours\n"}})
	write(t, in("node_modules/x/n.fake"), "x")
	write(t, in("last.fake"), "x")
	wait("last.fake created")
	mu.Lock()
	defer mu.Unlock()
	for e := range events {
		if strings.Contains(e, "node_modules") {
			t.Errorf("told of %s", e)
		}
	}
	if n := len(slices.DeleteFunc(server.Seen(), func(m string) bool { return m != "textDocument/didOpen" })); n == 0 {
		t.Error("nothing was opened")
	}
}

// What was missed while the queue overflowed is found by looking.
func TestRescan(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"stays", "goes", "changes"} {
		write(t, filepath.Join(root, f), "x")
	}
	m := New(Options{Root: root})
	m.watchSoon()
	w := m.watcher
	<-w.ready
	_ = w.fs.Close() // nothing is reported any more
	<-w.done
	write(t, filepath.Join(root, "comes"), "x")
	write(t, filepath.Join(root, "changes"), "y")
	_ = os.Remove(filepath.Join(root, "goes"))
	_ = os.Chtimes(filepath.Join(root, "stays"), w.since.Add(-1e12), w.since.Add(-1e12))
	var got []string
	for _, e := range w.rescan(map[string]bool{}) {
		got = append(got, filepath.Base(e.path)+" "+[]string{"", "created", "changed", "deleted"}[e.kind])
	}
	slices.Sort(got)
	if s := strings.Join(got, ", "); s != "changes changed, comes created, goes deleted" {
		t.Error(s)
	}
}
