package lspbridge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

var benchProject = flag.String("project", "", "a Go file of a big project, which is not written to, for BenchmarkGopls")

// What an edit costs in a real project; the bench command has the same beside a raw client.
//
//	go test ./lspbridge -run xxx -bench Gopls -benchtime 20x -project ~/src/tools/go/packages/golist.go
func BenchmarkGopls(b *testing.B) {
	if *benchProject == "" {
		b.Skip("no -project")
	}
	path := *benchProject
	base, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	now := string(base)
	m := New(Options{Root: new(markers).search().root(path, "/", []string{"go.mod"}), NoWatch: true, Idle: -1, Log: slog.New(slog.DiscardHandler),
		Buffer: func(p string) (string, bool) { return now, p == path }})
	defer m.Close(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh {
		b.Fatal(r.Certainty, r.Reason)
	}
	n := 0
	text := func() string { n++; return string(base) + fmt.Sprintf("\nvar _ = missing%dx\n", n) }
	named := func(b *testing.B, d Delta) {
		if d.Certainty != change.Fresh || !strings.Contains(messages(d.Files[0].Items), fmt.Sprintf("missing%dx", n)) {
			b.Fatalf("%d: %s %s: %s", n, d.Certainty, d.Reason, messages(d.Files[0].Items))
		}
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			named(b, m.Check(ctx, []Proposal{{Path: path, Text: text()}}))
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			now = text()
			named(b, m.Changed(ctx, []Proposal{{Path: path, Text: now}}))
		}
	})
	b.Run("check, then changed", func(b *testing.B) {
		for b.Loop() {
			t := text()
			named(b, m.Check(ctx, []Proposal{{Path: path, Text: t}}))
			now = t
			named(b, m.Changed(ctx, []Proposal{{Path: path, Text: t}}))
		}
	})
}

// heap is what is in use after a collection, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

// The bridge's own memory with many documents of 4 KB open; the server's end is a fake one's and counted out.
func BenchmarkOpenDocuments(b *testing.B) {
	const files = 1000
	root := b.TempDir()
	body := strings.Repeat("a line of forty characters, more or less\n", 100)
	var paths []string
	for i := range files {
		p := filepath.Join(root, fmt.Sprintf("d%d", i%50), fmt.Sprintf("f%d.fake", i))
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			b.Fatal(err)
		}
		paths = append(paths, p)
	}
	for b.Loop() {
		quiet := fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
			return nil, method == "textDocument/didOpen", nil
		}}
		m := New(Options{Root: root, NoWatch: true, Idle: -1, Dial: func(Server, string) (io.ReadCloser, io.WriteCloser, error) {
			r, w := fakelsp.New(quiet).Pipes()
			return r, w, nil
		}})
		m.rows = func() []Server { return []Server{{ID: "fake", Extensions: []string{".fake"}}} }
		before := heap()
		c, err := m.slotsFor(paths[0])[0].get(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		c.sync(paths) // all at once: the limit on open documents lets them be
		if err := c.call(context.Background(), "shutdown", nil, nil); err != nil {
			b.Fatal(err) // answered after all of them were read
		}
		b.ReportMetric((heap()-before)/(1<<20), "MB")
		b.ReportMetric(float64(len(c.docs.paths())), "documents")
		m.Close(context.Background())
	}
}

// Watching a tree of 50,000 files in 2,500 folders.
func BenchmarkWatch(b *testing.B) {
	root := b.TempDir()
	for d := range 2500 {
		dir := filepath.Join(root, fmt.Sprintf("a%d", d%50), fmt.Sprintf("b%d", d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 20 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.go", f)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		before := heap()
		m := New(Options{Root: root, Idle: -1})
		m.watchSoon()
		m.mu.Lock()
		w := m.watcher
		m.mu.Unlock()
		<-w.ready
		b.ReportMetric((heap()-before)/(1<<20), "MB")
		b.ReportMetric(float64(len(w.known)), "files")
		m.Close(context.Background())
	}
}
