package lspbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

func (f *faked) told() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.notices)
}

func TestGarbageIsGivenUpSoon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			for i := 0; ctx.Err() == nil; i++ {
				s.Raw(fmt.Sprintf("%d bottles of beer\n", i))
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return nil, true, nil
		}}, map[string]string{"a.fake": "x"})
		defer f.Close(context.Background())
		began := time.Now()
		r := f.Diagnostics(f.ctx(time.Minute), f.path)
		if took := time.Since(began); r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "0 bottles of beer") || took > 11*time.Second {
			t.Errorf("%s %q after %v", r.Certainty, r.Reason, took)
		}
		if f.Diagnostics(f.ctx(time.Minute), f.path); len(f.servers) != 1 || len(f.told()) != 1 {
			t.Errorf("%d starts, told %q", len(f.servers), f.told())
		}
	})
}

func TestServerThatNeverAnswersItsStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			<-ctx.Done()
			return nil, true, nil
		}}, map[string]string{"a.fake": "x"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "did not answer within 30s") {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
		if len(f.servers) != 1 || len(f.told()) != 1 {
			t.Errorf("%d starts, told %q", len(f.servers), f.told())
		}
	})
}

// A server that has no diagnostics costs the budget twice, and then nothing; once it speaks it is waited for again.
func TestServerWithoutDiagnostics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		var took time.Duration
		var d Delta
		for i := range 4 {
			began := time.Now()
			d = f.Check(context.Background(), []Proposal{{Path: f.path, Text: fmt.Sprintf("BAD %d\n", i)}})
			took = time.Since(began)
		}
		if d.Certainty != change.Unavailable || !strings.Contains(d.Reason, "publishes no problems") || took > 200*time.Millisecond {
			t.Errorf("%s %q after %v", d.Certainty, d.Reason, took)
		}
		_, v, _ := f.server().Text("file:///p/a.fake")
		f.server().Publish("file:///p/a.fake", v, fakelsp.Problems("BAD late"))
		synctest.Wait()
		if r := f.Diagnostics(f.ctx(time.Second), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: late" {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
	})
}

// A server that stops answering is told of once, is not waited for, and is started again.
func TestFrozenServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"hoverProvider": true}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Second), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		first := f.server()
		first.Freeze()
		var d Delta
		for range 12 {
			d = f.Check(context.Background(), []Proposal{{Path: f.path, Text: "fine\n"}})
		}
		time.Sleep(probeTimeout)
		began := time.Now()
		d = f.Check(context.Background(), []Proposal{{Path: f.path, Text: "fine\n"}})
		if took := time.Since(began); took > 2*frozenWait+10*time.Millisecond || d.Certainty != change.Pending || !strings.Contains(d.Reason, "fake does not answer") {
			t.Errorf("%s %q after %v", d.Certainty, d.Reason, took)
		}
		if told := f.told(); len(told) != 1 || !strings.Contains(told[0], "has not answered for 15s") {
			t.Errorf("told %q", told)
		}
		<-first.Done()
		if d = f.Check(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "fine\n"}}); d.Certainty != change.Fresh || len(d.Fixed) != 1 {
			t.Errorf("after the new start %s %q", d.Certainty, d.Reason)
		}
	})
}

// Answers that come twice, too late, out of order or as a flood change nothing of the next one.
func TestOddAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, Capabilities: map[string]any{"hoverProvider": true},
			On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
				switch m {
				case "textDocument/didOpen":
					for id := range 2 { // of initialize, once more
						b := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"contents":"twice"}}`, id)
						s.Raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b))
					}
					big := `{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":"file:///p/a.fake","diagnostics":[],"x":"` + strings.Repeat("x", 100<<20) + `"}}`
					s.Raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(big), big))
				case "textDocument/hover":
					time.Sleep(2 * time.Second) // its asker is gone by then
					return map[string]string{"contents": "late"}, true, nil
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one" {
			t.Fatalf("%s %q %q", r.Certainty, r.Reason, messages(r.Items))
		}
		if _, err := f.Hover(f.ctx(time.Second), f.path, Position{}); err == nil {
			t.Error("the hover came in time")
		}
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one" {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
	})
}

// A server that is missing is told of once, and found as soon as it is there.
func TestServerInstalledMeanwhile(t *testing.T) {
	root, bin := t.TempDir(), t.TempDir()
	told := make(chan string, 10)
	m := New(Options{Root: root, Bin: []string{bin}, NoWatch: true, Notice: func(_, text string) { told <- text },
		Servers: map[string]ServerConfig{"later": {Command: []string{"pillion-later-server"}, Extensions: []string{".later"}}}})
	defer m.Close(context.Background())
	path := filepath.Join(root, "a.later")
	write(t, path, "x")
	ask := func() FileReport { return m.Diagnostics(longer(t), path) }
	for range 2 {
		if r := ask(); r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "pillion-later-server not found") {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
	}
	if text := <-told; !strings.Contains(text, ".later") || len(told) != 0 {
		t.Errorf("told %q and %d more", text, len(told))
	}
	program := filepath.Join(bin, "pillion-later-server")
	put := func(script string) {
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, s := range m.running() {
			s.mu.Lock()
			s.looked = time.Time{} // as if the pause between looks were over
			s.mu.Unlock()
		}
	}
	put("#!/bin/sh\necho 'error: first attempt' >&2\nexit 3\n")
	if r := ask(); r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "exit status 3: error: first attempt") {
		t.Errorf("%s %q", r.Certainty, r.Reason)
	}
	put("#!/bin/sh\necho 'the second attempt is another program' >&2\nexit 4\n")
	if r := ask(); r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "exit status 4: the second attempt") {
		t.Errorf("%s %q", r.Certainty, r.Reason)
	}
}

// A server that is loading says how far it is, and is waited for, not probed.
func TestLoadingIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "initialized" {
				for _, v := range []string{`{"kind":"begin","title":"Indexing"}`, `{"kind":"report","message":"3/10\n crates","percentage":30}`, `{"kind":"report"}`} {
					_ = s.Peer().Notify(context.Background(), "$/progress", json.RawMessage(`{"token":7,"value":`+v+`}`))
				}
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "x"})
		defer f.Close(context.Background())
		var r FileReport
		for range 8 {
			r = f.Diagnostics(f.ctx(3*time.Second), f.path)
		}
		if r.Certainty != change.Pending || r.Reason != "fake is still busy: Indexing (3/10 crates 30 %)" || len(f.told()) != 0 {
			t.Errorf("%s %q, told %q", r.Certainty, r.Reason, f.told())
		}
	})
}
