package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
	"go.lsp.dev/protocol"
)

// bubble is synctest.Test. jsonrpc2 keeps channels in a sync.Pool, and a channel of one bubble must not be met in
// another: two collections empty it.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	runtime.GC()
	runtime.GC()
	synctest.Test(t, f)
	runtime.GC()
	runtime.GC()
}

// faked is a manager whose one server is scripted. Time in these tests is synctest's.
type faked struct {
	*Manager
	t       *testing.T
	mu      sync.Mutex
	texts   map[string]string // what the person sees
	servers []*fakelsp.Server
	notices []string
	path    string
}

func newFaked(t *testing.T, quirks Quirks, o fakelsp.Options, files map[string]string) *faked {
	t.Helper()
	f := &faked{t: t, texts: map[string]string{}, path: filepath.FromSlash("/p/a.fake")}
	for name, text := range files {
		f.texts[filepath.Join(filepath.FromSlash("/p"), name)] = text
	}
	f.Manager = New(Options{Root: filepath.FromSlash("/p"), NoWatch: true, Idle: -1,
		Buffer: func(path string) (string, bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			text, ok := f.texts[path]
			return text, ok
		},
		Notice: func(_, text string) { f.mu.Lock(); f.notices = append(f.notices, text); f.mu.Unlock() },
		Dial: func(Server, string) (io.ReadCloser, io.WriteCloser, error) {
			s := fakelsp.New(o)
			f.mu.Lock()
			f.servers = append(f.servers, s)
			f.mu.Unlock()
			r, w := s.Pipes()
			return r, w, nil
		}})
	f.rows = func() []Server { return []Server{{ID: "fake", Extensions: []string{".fake"}, Quirks: quirks}} }
	return f
}

func (f *faked) server() *fakelsp.Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers[len(f.servers)-1]
}

func (f *faked) edit(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts[f.path] = text
}

func (f *faked) ctx(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	f.t.Cleanup(cancel)
	return ctx
}

// afterOpening lets the publishes of a document leave from the second version after each opening on.
func afterOpening() func(uri string, version int32) bool {
	var mu sync.Mutex
	last := map[string]int32{}
	return func(uri string, version int32) bool {
		mu.Lock()
		defer mu.Unlock()
		opened := version <= last[uri] || last[uri] == 0
		last[uri] = version
		return !opened
	}
}

// The same questions to every kind of server: what is wrong, what would a proposal change, is everything put back.
func TestEveryStrategy(t *testing.T) {
	for name, c := range map[string]struct {
		q Quirks
		o fakelsp.Options
	}{
		"marker": {Quirks{EndMarker: true}, fakelsp.Options{Push: true, Versions: true, Marker: true}},
		// Every document is first diagnosed after its first change.
		"late marker":      {Quirks{EndMarker: true, LateNew: true}, fakelsp.Options{Push: true, Versions: true, Marker: true, Hold: afterOpening()}},
		"pull":             {Quirks{}, fakelsp.Options{Pull: true}},
		"pull and push":    {Quirks{}, fakelsp.Options{Pull: true, Push: true, Versions: true}},
		"versioned push":   {Quirks{}, fakelsp.Options{Push: true, Versions: true}},
		"unversioned push": {Quirks{}, fakelsp.Options{Push: true}},
		"full sync":        {Quirks{}, fakelsp.Options{Push: true, Versions: true, Capabilities: map[string]any{"textDocumentSync": map[string]any{"openClose": true, "change": 1, "save": true}}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const text = "fine\nBAD one\nBAD two\n"
				f := newFaked(t, c.q, c.o, map[string]string{"a.fake": text, "b.fake": "BAD b\n"})
				defer f.Close(context.Background())
				ctx := f.ctx(time.Minute)
				if r := f.Diagnostics(ctx, f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one\na.fake: two" {
					t.Fatalf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
				}
				for range 3 {
					d := f.Check(ctx, []Proposal{
						{Path: f.path, Text: "a line more\nfine\nBAD two\nBAD three\n"},
						{Path: filepath.FromSlash("/p/new.fake"), Text: "BAD new\n"},
						{Path: filepath.FromSlash("/p/b.fake"), Delete: true},
					})
					if d.Certainty != change.Partial || messages(d.Introduced) != "a.fake: three\nnew.fake: new" || messages(d.Fixed) != "a.fake: one\nb.fake: b" || d.Unchanged != 1 {
						t.Fatalf("%s %q: introduced %q, fixed %q, unchanged %d", d.Certainty, d.Reason, messages(d.Introduced), messages(d.Fixed), d.Unchanged)
					}
				}
				synctest.Wait()
				if got, _, _ := f.server().Text("file:///p/a.fake"); got != text {
					t.Errorf("the overlay stayed: %q", got)
				}
				if _, _, open := f.server().Text("file:///p/new.fake"); open {
					t.Error("the new file stayed open")
				}
				if r := f.Diagnostics(ctx, f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one\na.fake: two" {
					t.Errorf("afterwards %s %q: %q", r.Certainty, r.Reason, messages(r.Items))
				}
				f.edit("BAD two\n")
				d := f.Changed(ctx, []Proposal{{Path: f.path, Text: "BAD two\n"}})
				if d.Certainty != change.Fresh || messages(d.Fixed) != "a.fake: one" || len(d.Introduced) != 0 || d.Unchanged != 1 || messages(d.Files[0].Items) != "a.fake: two" {
					t.Errorf("written: %s %q, fixed %q, introduced %q", d.Certainty, d.Reason, messages(d.Fixed), messages(d.Introduced))
				}
			})
		})
	}
}

// Each of these servers is broken in one way. The question ends in time and with the truth.
func TestFaults(t *testing.T) {
	publishes := fakelsp.Options{Push: true, Versions: true}
	for _, c := range []struct {
		name   string
		o      fakelsp.Options
		state  change.Certainty
		reason string
		says   string
	}{
		{"never initialises", fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "initialize" {
				<-ctx.Done()
			}
			return nil, false, nil
		}}, change.Pending, "fake is starting", ""},
		{"never publishes", fakelsp.Options{}, change.Pending, "has not answered yet", ""},
		{"publishes for an older version only", fakelsp.Options{Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didOpen" {
				s.Publish("file:///p/a.fake", 0, nil)
			}
			return nil, false, nil
		}}, change.Fresh, "", ""}, // unversioned: it is taken for what it is
		{"logs to stdout", fakelsp.Options{Push: true, Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			s.Raw("debug: got " + m + "\n\n")
			return nil, false, nil
		}}, change.Fresh, "", "a.fake: one"},
		{"sends what is no JSON", fakelsp.Options{Push: true, Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			s.Raw("Content-Length: 7\r\n\r\n{nope} ")
			return nil, false, nil
		}}, change.Fresh, "", "a.fake: one"},
		{"asks what nobody knows", fakelsp.Options{Push: true, Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didOpen" {
				if err := s.Peer().Call(context.Background(), "fake/whoAreYou", nil, nil); err == nil {
					return nil, true, nil // then nothing is published, and the test fails
				}
				var conf []json.RawMessage
				err := s.Peer().Call(context.Background(), "workspace/configuration", json.RawMessage(`{"items":[{"section":"x"},{}]}`), &conf)
				return nil, err != nil || len(conf) != 2, nil
			}
			return nil, false, nil
		}}, change.Fresh, "", "a.fake: one"},
		{"has one odd problem among good ones", fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didOpen" {
				const list = `[null,7,{"message":"no range"},{"range":{"start":{"line":-1,"character":1.0},"end":{"line":99999999999,"character":0}},"severity":null,"code":{"value":3,"target":"x"},"message":"one"}]`
				_ = s.Peer().Notify(context.Background(), "textDocument/publishDiagnostics", json.RawMessage(`{"uri":"file:///p/a.fake","version":1,"diagnostics":`+list+`}`))
			}
			return nil, true, nil
		}}, change.Fresh, "", "a.fake: one"},
		{"publishes twice, the empty one first", fakelsp.Options{Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didOpen" {
				s.Publish("file:///p/a.fake", 1, nil)
				time.Sleep(100 * time.Millisecond)
				s.Publish("file:///p/a.fake", 1, fakelsp.Problems("BAD one"))
			}
			return nil, false, nil
		}}, change.Fresh, "", "a.fake: one"},
		{"pull answers null", fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return nil, m == "textDocument/diagnostic", nil
		}}, change.Pending, "without a report", ""},
		{"pull answers something else", fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return map[string]string{"contents": "hover"}, m == "textDocument/diagnostic", nil
		}}, change.Pending, "without a report", ""},
		{"pull answers the wrong shape", fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return "what?", m == "textDocument/diagnostic", nil
		}}, change.Pending, "wrong shape", ""},
		{"pull answers that nothing has changed", fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return map[string]string{"kind": "unchanged", "resultId": "1"}, m == "textDocument/diagnostic", nil
		}}, change.Pending, "unchanged", ""},
		{"announces capabilities of odd types", fakelsp.Options{Push: true, Versions: true, Capabilities: map[string]any{
			"executeCommandProvider": true, "positionEncoding": 8, "renameProvider": "yes", "workspace": []int{1}}}, change.Fresh, "", "a.fake: one"},
		{"pull fails", fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			return nil, m == "textDocument/diagnostic", errors.New("boom\nstack")
		}}, change.Pending, "fake: boom", ""},
		{"never answers a pull", fakelsp.Options{Pull: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/diagnostic" {
				<-ctx.Done()
			}
			return nil, false, nil
		}}, change.Pending, "has not answered yet", ""},
		{"never answers shutdown", fakelsp.Options{Push: true, Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "shutdown" {
				<-ctx.Done()
			}
			return nil, m == "exit", nil
		}}, change.Fresh, "", "a.fake: one"},
		{"is fine", publishes, change.Fresh, "", "a.fake: one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFaked(t, Quirks{}, c.o, map[string]string{"a.fake": "BAD one\n"})
				r := f.Diagnostics(f.ctx(3*time.Second), f.path)
				if r.Certainty != c.state || !strings.Contains(r.Reason, c.reason) || messages(r.Items) != c.says {
					t.Errorf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
				}
				if strings.Contains(r.Reason, "\n") {
					t.Errorf("the reason has several lines: %q", r.Reason)
				}
				start := time.Now()
				f.Close(context.Background())
				if d := time.Since(start); d > 3*time.Second {
					t.Errorf("Close took %v", d)
				}
			})
		})
	}
}

// A publish that has just come may be the first of two, also for whoever asks only after it has come.
func TestAPublishOfAMomentAgoMayNotBeTheLast(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Versions: true}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		f.Diagnostics(f.ctx(100*time.Millisecond), f.path) // opens it, and gives up
		synctest.Wait()
		f.server().Publish("file:///p/a.fake", 1, nil)
		synctest.Wait()
		time.AfterFunc(pushSettle/2, func() { f.server().Publish("file:///p/a.fake", 1, fakelsp.Problems("BAD one")) })
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || messages(r.Items) != "a.fake: one" {
			t.Errorf("%s %q: %q", r.Certainty, r.Reason, messages(r.Items))
		}
		start := time.Now()
		time.Sleep(time.Second)
		f.server().Publish("file:///p/a.fake", 1, fakelsp.Problems("BAD one"))
		synctest.Wait()
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || time.Since(start) > time.Second {
			t.Errorf("what is only said again was waited for: %s after %v", r.Certainty, time.Since(start))
		}
	})
}

// A late publish is for the version it names, and not for the one we asked about.
func TestR17LatePublishesAreNotFresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		held := true
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, Hold: func(_ string, v int32) bool { return v == 1 || !held }},
			map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(3*time.Second), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		f.edit("fine\n")
		d := f.Changed(f.ctx(time.Second), []Proposal{{Path: f.path, Text: "fine\n"}})
		if d.Certainty != change.Pending || len(d.Fixed) != 0 {
			t.Errorf("nothing was said of version 2, but the answer is %s, fixed %q", d.Certainty, messages(d.Fixed))
		}
		f.server().Publish("file:///p/a.fake", 1, fakelsp.Problems("BAD late"))
		synctest.Wait()
		if r := f.Diagnostics(f.ctx(time.Second), f.path); r.Certainty != change.Pending || strings.Contains(messages(r.Items), "late") {
			t.Errorf("version 1's publish counted: %s %q", r.Certainty, messages(r.Items))
		}
		f.server().Publish("file:///p/a.fake", 2, nil)
		if r := f.Diagnostics(f.ctx(time.Second), f.path); r.Certainty != change.Fresh || len(r.Items) != 0 {
			t.Errorf("version 2's did not: %s %q", r.Certainty, messages(r.Items))
		}
	})
}

// An unversioned server that says nothing on a clean edit: "not known" after a while, never an old answer as a new one.
func TestCleanEditWithoutPublish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Hold: func(_ string, v int32) bool { return v == 1 }}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(3*time.Second), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		start := time.Now()
		f.edit("fine\n")
		d := f.Changed(f.ctx(time.Minute), []Proposal{{Path: f.path, Text: "fine\n"}})
		if took := time.Since(start); d.Certainty != change.Pending || !strings.Contains(d.Reason, "published nothing") || took > 5*time.Second {
			t.Errorf("%s %q after %v", d.Certainty, d.Reason, took)
		}
	})
}

func TestDeathBetweenChangeAndDiagnostics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		deaths := 0
		f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, Versions: true, On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "textDocument/didChange" && deaths == 0 {
				deaths++
				s.Die()
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		if r := f.Diagnostics(f.ctx(3*time.Second), f.path); r.Certainty != change.Fresh {
			t.Fatal(r)
		}
		d := f.Check(f.ctx(10*time.Second), []Proposal{{Path: f.path, Text: "fine\n"}})
		if d.Certainty != change.Fresh || messages(d.Fixed) != "a.fake: one" {
			t.Errorf("%s %q, fixed %q", d.Certainty, d.Reason, messages(d.Fixed))
		}
		if len(f.servers) != 2 {
			t.Errorf("%d starts", len(f.servers))
		}
	})
}

func TestServerThatNeverStarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			s.Die()
			return nil, true, nil
		}}, map[string]string{"a.fake": "x"})
		defer f.Close(context.Background())
		began := time.Now()
		r := f.Diagnostics(f.ctx(time.Minute), f.path)
		if r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "does not start") || !strings.Contains(r.Reason, "pillion doctor") {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
		if took := time.Since(began); took > firstBackoff {
			t.Errorf("the answer took %v", took)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.servers) != 2 || len(f.notices) != 1 {
			t.Errorf("%d starts, notices %q", len(f.servers), f.notices)
		}
	})
}

func TestServerThatCrashesAlways(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{On: func(ctx context.Context, s *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			if m == "initialize" {
				return nil, false, nil
			}
			s.Die()
			return nil, true, nil
		}}, map[string]string{"a.fake": "x"})
		defer f.Close(context.Background())
		var r FileReport
		for range maxCrashes {
			if r = f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty == change.Unavailable {
				break
			}
		}
		if r.Certainty != change.Unavailable || !strings.Contains(r.Reason, "crashed 5 times") {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
		for range 3 {
			f.Diagnostics(f.ctx(time.Minute), f.path)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.servers) != 5 || len(f.notices) != 1 {
			t.Errorf("%d starts, notices %q", len(f.servers), f.notices)
		}
	})
}

// Answers of null and of odd shapes are empty answers or errors, never a crash.
func TestNullAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := map[string]any{}
		for _, k := range []string{"hover", "definition", "references", "documentSymbol", "workspaceSymbol", "callHierarchy", "rename", "documentFormatting", "codeAction"} {
			all[k+"Provider"] = true
		}
		f := newFaked(t, Quirks{}, fakelsp.Options{Capabilities: all, On: func(_ context.Context, _ *fakelsp.Server, m string, _ json.RawMessage) (any, bool, error) {
			own := m == "initialize" || m == "shutdown" || strings.Contains(m, "/did")
			return nil, !own, nil
		}}, map[string]string{"a.fake": "fine\n"})
		defer f.Close(context.Background())
		ctx, at := f.ctx(time.Minute), Position{}
		_, e1 := f.Hover(ctx, f.path, at)
		_, e2 := f.Definition(ctx, f.path, at)
		_, e3 := f.DocumentSymbols(ctx, f.path)
		_, e4 := f.WorkspaceSymbols(ctx, f.path, "x")
		_, e5 := f.IncomingCalls(ctx, f.path, at)
		_, e6 := f.Format(ctx, f.path)
		_, e7 := f.CodeActions(ctx, f.path, Range{}, nil, nil)
		if err := errors.Join(e1, e2, e3, e4, e5, e6, e7); err != nil {
			t.Error(err)
		}
		if _, err := f.Rename(ctx, f.path, at, "x"); err == nil {
			t.Error("renaming nothing went well")
		}
		if _, err := f.TypeDefinition(ctx, f.path, at); !errors.Is(err, ErrUnsupported) {
			t.Errorf("what was not announced was asked: %v", err)
		}
		if slices.Contains(f.server().Seen(), "textDocument/typeDefinition") {
			t.Error("what was not announced was asked")
		}
	})
}

func TestIdleServerIsStoppedAndComesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true}, map[string]string{"a.fake": "BAD one\n"})
		f.o.Idle = 10 * time.Minute
		defer f.Close(context.Background())
		f.Diagnostics(f.ctx(3*time.Second), f.path)
		first := f.server()
		<-first.Done()
		if r := f.Diagnostics(f.ctx(3*time.Second), f.path); r.Certainty != change.Fresh || len(r.Items) != 1 || f.server() == first {
			t.Errorf("%s %q", r.Certainty, r.Reason)
		}
	})
}

// A machine that has little memory left gets that of an unused server back sooner, unless servers are never to be stopped.
func TestScarceMemory(t *testing.T) {
	for idle, want := range map[time.Duration]time.Duration{10 * time.Minute: 2 * time.Minute, 30 * time.Second: time.Minute, -1: 0} {
		bubble(t, func(t *testing.T) {
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true}, map[string]string{"a.fake": "BAD one\n"})
			f.o.Idle, f.scarce = idle, func() bool { return true }
			defer f.Close(context.Background())
			f.Diagnostics(f.ctx(3*time.Second), f.path)
			began, hour := time.Now(), time.After(time.Hour)
			select {
			case <-f.server().Done():
				if took := time.Since(began); want == 0 || took > want {
					t.Errorf("idle %v: it was stopped after %v", idle, took)
				}
			case <-hour:
				if want != 0 {
					t.Errorf("idle %v: it was not stopped", idle)
				}
			}
		})
	}
}

// A question may take longer than a server may be unused.
func TestServerIsNotStoppedWhileAQuestionWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
			if method == protocol.MethodTextDocumentDiagnostic {
				time.Sleep(25 * time.Minute)
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "BAD one\n"})
		f.o.Idle = 10 * time.Minute
		defer f.Close(context.Background())
		r := f.Diagnostics(f.ctx(time.Hour), f.path)
		if r.Certainty != change.Fresh || len(r.Items) != 1 || len(f.servers) != 1 {
			t.Errorf("%s %q, %d servers were started", r.Certainty, r.Reason, len(f.servers))
		}
		answered := time.Now()
		<-f.server().Done()
		if unused := time.Since(answered); unused < 9*time.Minute || unused > 12*time.Minute {
			t.Errorf("it was stopped %v after the answer", unused)
		}
	})
}

// Who waits for the start of a server that is stopped meanwhile gets the next one.
func TestServerStoppedDuringItsStartIsStartedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true, On: func(_ context.Context, _ *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
			if method == protocol.MethodInitialize {
				time.Sleep(5 * time.Second)
			}
			return nil, false, nil
		}}, map[string]string{"a.fake": "BAD one\n"})
		defer f.Close(context.Background())
		time.AfterFunc(time.Second, func() { f.running()[0].stop(context.Background(), "idle") })
		if r := f.Diagnostics(f.ctx(time.Minute), f.path); r.Certainty != change.Fresh || len(r.Items) != 1 || len(f.servers) != 2 {
			t.Errorf("%s %q, %d servers were started", r.Certainty, r.Reason, len(f.servers))
		}
	})
}

// What a server has answered stays valid when it dies right after; what it has not is asked of the next one.
func TestAnAnswerOutlivesItsServer(t *testing.T) {
	for state, want := range map[change.Certainty]int{change.Fresh: 1, change.Partial: 1, change.Pending: 2} {
		bubble(t, func(t *testing.T) {
			f := newFaked(t, Quirks{}, fakelsp.Options{Pull: true}, map[string]string{"a.fake": "fine\n"})
			defer f.Close(context.Background())
			asked := 0
			d := f.askServers(f.ctx(time.Minute), []Proposal{{Path: f.path}}, func(_ context.Context, c *client, _ []Proposal) serverVerdict {
				asked++
				f.server().Die()
				<-c.gone
				return serverVerdict{state: state}
			})
			if asked != want || d.Certainty != state {
				t.Errorf("%s: asked %d times, %s", state, asked, d.Certainty)
			}
		})
	}
}
