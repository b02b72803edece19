package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// bench is a session without an editor whose person is a function.
type bench struct {
	t    testing.TB
	dir  string
	env  Env
	host tools.Host

	mu      sync.Mutex
	updates []tools.Update // guarded by mu
}

func newBench(t testing.TB, person func(permission.Request) (permission.Reply, error)) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir}
	b.env = Env{Cwd: dir, Root: dir, Tracker: &files.Tracker{}, Locks: &files.Locks{}}
	b.host.Gate = gate(person)
	return b
}

// gate asks its person about everything; nil allows by rule.
type gate func(permission.Request) (permission.Reply, error)

func (g gate) Ask(_ context.Context, r permission.Request) (permission.Reply, error) {
	if g == nil {
		return permission.Reply{Kind: permission.Once}, nil
	}
	return g(r)
}

func (g gate) Would(context.Context, permission.Request) permission.Action {
	if g == nil {
		return permission.Allow
	}
	return permission.Ask
}

func (b *bench) call(tool tools.Tool, input string) (tools.Result, error) {
	b.t.Helper()
	call := &tools.Call{SessionID: "s", CallID: "c", Tool: tool.ID, Host: b.host, OnMetadata: func(u tools.Update) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.updates = append(b.updates, u)
	}}
	return tools.Invoke(context.Background(), tool, json.RawMessage(input), call, tools.CapOptions{})
}

func (b *bench) put(name, text string) string {
	b.t.Helper()
	p := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) text(name string) string {
	b.t.Helper()
	x, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(x)
}

// know marks a file as read.
func (b *bench) know(name string) {
	b.t.Helper()
	f, err := files.Open(filepath.Join(b.dir, name), b.env.Buffers)
	if err != nil {
		b.t.Fatal(err)
	}
	b.env.Tracker.Read(f)
}

func kindOf(err error) string {
	var e *tools.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func yes(permission.Request) (permission.Reply, error) { return permission.Reply{Asked: true}, nil }

// While the person thinks, somebody changes other lines: both changes are kept and the model is told.
func TestFileThatMovedWhileAskingIsMerged(t *testing.T) {
	var b *bench
	b = newBench(t, func(permission.Request) (permission.Reply, error) {
		b.put("a", "zero\n1\n2\n3\n4\n5\n")
		return yes(permission.Request{})
	})
	b.put("a", "1\n2\n3\n4\n5\n")
	b.know("a")
	r, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"4","newString":"four"}`)
	if err != nil || b.text("a") != "zero\n1\n2\n3\nfour\n5\n" || !strings.Contains(r.Output, "+zero") {
		t.Errorf("%q %v\n%s", b.text("a"), err, r.Output)
	}
}

func TestFileThatMovedInTheSameLinesIsStale(t *testing.T) {
	var b *bench
	b = newBench(t, func(permission.Request) (permission.Reply, error) {
		b.put("a", "1\ntheirs\n3\n")
		return yes(permission.Request{})
	})
	b.put("a", "1\n2\n3\n")
	b.know("a")
	_, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"2","newString":"ours"}`)
	if kindOf(err) != "stale" || b.text("a") != "1\ntheirs\n3\n" || !strings.Contains(err.Error(), "+theirs") {
		t.Errorf("%q %v", b.text("a"), err)
	}
	// The error said what is there now, so the next try needs no read.
	if _, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"theirs","newString":"ours"}`); err != nil || b.text("a") != "1\nours\n3\n" {
		t.Errorf("%v %q", err, b.text("a"))
	}
}

// The path leads elsewhere once it is allowed: a link was swapped in.
func TestPathSwappedForALinkWhileAsking(t *testing.T) {
	var b *bench
	outside := filepath.Join(t.TempDir(), "victim")
	os.WriteFile(outside, []byte("1\n"), 0o644)
	b = newBench(t, func(permission.Request) (permission.Reply, error) {
		os.Remove(filepath.Join(b.dir, "a"))
		os.Symlink(outside, filepath.Join(b.dir, "a"))
		return yes(permission.Request{})
	})
	b.put("a", "1\n")
	b.know("a")
	_, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"1","newString":"2"}`)
	if x, _ := os.ReadFile(outside); kindOf(err) != "stale" || string(x) != "1\n" {
		t.Errorf("%v, outside holds %q", err, x)
	}
}

func TestAnswerThatIsNotUnderstoodIsNoYes(t *testing.T) {
	for _, d := range []change.Decisions{{Default: "yes"}, {Hunks: map[string]change.Decision{"9.9": {Kind: change.Accept}}}, {Hunks: map[string]change.Decision{"1.1": {Kind: "yes"}}}} {
		b := newBench(t, func(permission.Request) (permission.Reply, error) { return permission.Reply{Decisions: &d}, nil })
		if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x"}`); err == nil {
			t.Errorf("%v was taken for a yes", d)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "a")); err == nil {
			t.Errorf("%v: written", d)
		}
	}
}

func TestNobodyToAsk(t *testing.T) {
	b := newBench(t, nil)
	b.host.Gate = nil
	if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x"}`); !errors.Is(err, permission.ErrRejected) {
		t.Error(err)
	}
}

func TestTwoEditsOfOneFileAtOnceBothCount(t *testing.T) {
	both := make(chan struct{}, 2)
	open := make(chan struct{})
	b := newBench(t, func(permission.Request) (permission.Reply, error) {
		both <- struct{}{}
		<-open
		return yes(permission.Request{})
	})
	var text []string
	for i := range 20 {
		text = append(text, fmt.Sprintf("line%02d\n", i))
	}
	b.put("a", strings.Join(text, ""))
	b.know("a")
	var wg sync.WaitGroup
	for _, n := range []string{"line03", "line15"} {
		wg.Go(func() {
			if _, err := b.call(Edit(b.env), fmt.Sprintf(`{"filePath":"a","oldString":%q,"newString":"changed"}`, n)); err != nil {
				t.Error(err)
			}
		})
	}
	<-both
	<-both
	close(open)
	wg.Wait()
	if got := strings.Count(b.text("a"), "changed\n"); got != 2 {
		t.Errorf("%d of 2 edits are in the file", got)
	}
}

func TestCardShowsHowItStands(t *testing.T) {
	b := newBench(t, yes)
	b.env.Bridge = fakeBridge{lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{{Path: "x", Severity: change.SeverityError}}}}}
	if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, u := range b.updates {
		set := u.Change
		s := string(u.ChangeState)
		if set.Verdict != nil {
			s += fmt.Sprint("+", len(set.Verdict.Introduced))
		}
		states = append(states, s)
		if u.ChangeState == "writing" { // for the session's record only
			continue
		}
		if d, _ := u.Metadata["diff"].(string); d == "" || len(u.Locations) != 1 {
			t.Errorf("update %+v", u)
		}
	}
	if got := strings.Join(states, " "); got != "proposed proposed+1 writing applied applied+1" {
		t.Errorf("states %q", got)
	}
}

// slowBridge needs longer than the question waits, and ends with the context.
type slowBridge struct {
	fakeBridge
	takes  time.Duration
	ended  *bool
	checks *int
}

func (b slowBridge) Check(ctx context.Context, _ []lspbridge.Proposal) lspbridge.Delta {
	*b.checks++
	defer func() { *b.ended = true }()
	select {
	case <-time.After(b.takes):
		return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh, Fixed: make([]change.Problem, 2)}}
	case <-ctx.Done():
		return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Pending}}
	}
}

func TestR18TheQuestionDoesNotWaitForASlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var b *bench
		var ended bool
		var checks int
		b = newBench(t, func(r permission.Request) (permission.Reply, error) {
			if d := r.Change.Verdict; d == nil || d.Certainty != change.Pending || time.Since(start) > 2*time.Second {
				t.Errorf("asked after %v with %+v", time.Since(start), d)
			}
			time.Sleep(10 * time.Second) // the person thinks; the clock is synctest's
			return yes(r)
		})
		b.env.Bridge = slowBridge{takes: 5 * time.Second, ended: &ended, checks: &checks}
		if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
			t.Fatal(err)
		}
		late := false
		for _, u := range b.updates {
			d := u.Change.Verdict
			late = late || u.ChangeState == "proposed" && d != nil && d.Certainty == change.Fresh && len(d.Fixed) == 2
		}
		if !late {
			t.Error("the card was never updated with the late answer")
		}
	})
}

func TestOverlayIsGoneBeforeTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended bool
		var checks int
		b := newBench(t, yes)
		b.env.Bridge = slowBridge{takes: time.Hour, ended: &ended, checks: &checks}
		b.env.Applier = applierFunc(func(context.Context, *change.Set) error {
			if !ended {
				t.Error("written while the proposal is still overlaid in the servers")
			}
			return nil
		})
		if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil {
			t.Fatal(err)
		}
	})
}

func TestR18ARuleThatAllowsWaitsForNoCheck(t *testing.T) {
	var ended bool
	var checks int
	b := newBench(t, nil)
	b.env.Bridge = slowBridge{takes: time.Hour, ended: &ended, checks: &checks}
	if _, err := b.call(Write(b.env), `{"filePath":"a","content":"x\n"}`); err != nil || checks != 0 {
		t.Errorf("%d checks, %v", checks, err)
	}
}

type applierFunc func(context.Context, *change.Set) error

func (f applierFunc) Apply(ctx context.Context, s *change.Set) error { return f(ctx, s) }

func TestEditorThatRefuses(t *testing.T) {
	b := newBench(t, yes)
	b.env.Applier = applierFunc(func(context.Context, *change.Set) error { return errors.New("the document was closed") })
	b.put("a", "1\n")
	b.know("a")
	_, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"1","newString":"2"}`)
	if kindOf(err) != "write_failed" || !strings.Contains(err.Error(), "document was closed") || b.text("a") != "1\n" {
		t.Error(err)
	}
	if last := b.updates[len(b.updates)-1]; last.ChangeState != "failed" {
		t.Errorf("the card says %s", last.ChangeState)
	}
}

// The editor formats on save: the model learns what the file is now.
func TestWhatTheEditorChangedFurtherIsTold(t *testing.T) {
	b := newBench(t, yes)
	b.env.Applier = applierFunc(func(context.Context, *change.Set) error { b.put("a", "X\nextra\n"); return nil })
	r, err := b.call(Write(b.env), `{"filePath":"a","content":"X\n"}`)
	if err != nil || !strings.Contains(r.Output, "+extra") {
		t.Errorf("%v\n%s", err, r.Output)
	}
	if _, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"extra","newString":"x"}`); err != nil {
		t.Errorf("the present text is not known: %v", err)
	}
}

func TestUnsavedTextWithoutAnEditorThatTakesEdits(t *testing.T) {
	b := newBench(t, yes)
	p := b.put("a", "disk\n")
	b.env.Buffers = buffers{p: {Path: p, Text: "unsaved\n", Version: 1, Dirty: true}}
	b.know("a")
	_, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"unsaved","newString":"x"}`)
	if err == nil || !strings.Contains(err.Error(), "save or close it") || b.text("a") != "disk\n" {
		t.Error(err)
	}
}

func TestChangeFilesOfALanguageServer(t *testing.T) {
	b := newBench(t, yes)
	a, c := b.put("a.go", "old()\n"), b.put("c.go", "x\nold()\n")
	call := &tools.Call{Tool: "lsp", Host: b.host}
	r, err := b.env.changes().changeFiles(context.Background(), call, "Rename old to new", []lspbridge.FileEdit{
		{Path: a, NewPath: filepath.Join(b.dir, "b.go"), Kind: "rename", Old: "old()\n", New: "new()\n"},
		{Path: c, Kind: "edit", Old: "x\nold()\n", New: "x\nnew()\n"},
		{Path: filepath.Join(b.dir, "d", "d.go"), Kind: "create", New: "d\n"},
	})
	if err != nil || b.text("b.go") != "new()\n" || b.text("c.go") != "x\nnew()\n" || b.text("d/d.go") != "d\n" {
		t.Fatalf("%v", err)
	}
	if _, err := os.Stat(a); err == nil || r.Title != "Rename old to new" {
		t.Errorf("a.go is still there, or title %q", r.Title)
	}
	// Computed from another text: merged where that is certain, else refused.
	_, err = b.env.changes().changeFiles(context.Background(), call, "x", []lspbridge.FileEdit{{Path: c, Kind: "edit", Old: "x\nother()\n", New: "x\nthird()\n"}})
	if kindOf(err) != "stale" {
		t.Error(err)
	}
}

func TestUndoThroughEnv(t *testing.T) {
	b := newBench(t, yes)
	b.put("a", "1\n2\n3\n4\n5\n")
	b.know("a")
	if _, err := b.call(Write(b.env), `{"filePath":"a","content":"one\n2\n3\n4\nfive\n"}`); err != nil {
		t.Fatal(err)
	}
	set := b.updates[len(b.updates)-1].Change
	b.put("a", "one\n2\nmine\n4\nfive\n")
	undo, err := set.Undo("u", []string{"1.1"}, NewWriter(b.env).Present)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewWriter(b.env).Apply(context.Background(), undo); err != nil || b.text("a") != "1\n2\nmine\n4\nfive\n" {
		t.Errorf("%v %q", err, b.text("a"))
	}
	// What the person did is news to the model.
	if _, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"five ","newString":"5"}`); kindOf(err) != "stale" || !strings.Contains(err.Error(), "mine") {
		t.Error(err)
	}
}

func TestMetadataIsOpenCodes(t *testing.T) {
	var asked permission.Request
	b := newBench(t, func(r permission.Request) (permission.Reply, error) { asked = r; return yes(r) })
	b.put("a", "1\n2\n")
	b.know("a")
	r, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"2","newString":"3\n4"}`)
	if err != nil {
		t.Fatal(err)
	}
	fd := r.Metadata["filediff"].(map[string]any)
	if fd["file"] != filepath.Join(b.dir, "a") || fd["additions"] != 2 || fd["deletions"] != 1 || !strings.Contains(fd["patch"].(string), "+3\n+4\n") {
		t.Errorf("filediff %v", fd)
	}
	if r.Metadata["diff"] != asked.Metadata["diff"] || r.Metadata["diagnostics"] == nil || asked.Metadata["filepath"] != filepath.Join(b.dir, "a") {
		t.Errorf("result %v\nasked %v", r.Metadata, asked.Metadata)
	}
	if asked.Permission != "edit" || asked.Always[0] != "*" || asked.Tool != "edit" || asked.CallID != "c" {
		t.Errorf("%+v", asked)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func big(n int) string {
	var sb strings.Builder
	for i := range n {
		fmt.Fprintf(&sb, "\tthis is line %d of a long file, with some text on it\n", i)
	}
	return sb.String()
}

// The page's number is 10 ms on a file of 10,000 lines, besides the language server.
func BenchmarkEdit10000Lines(b *testing.B) {
	s := newBench(b, yes)
	s.put("a", big(10_000))
	s.know("a")
	edit := Edit(s.env)
	for i := 0; b.Loop(); i++ {
		if _, err := s.call(edit, fmt.Sprintf(`{"filePath":"a","oldString":"line %d of a","newString":"line %d of a"}`, 5000+i, 5001+i)); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.put("a", big(10_000))
		s.know("a")
		s.updates = nil
		b.StartTimer()
	}
}

func BenchmarkReadSmall(b *testing.B) {
	s := newBench(b, nil)
	s.put("a", big(50))
	read := Read(s.env)
	for b.Loop() {
		if _, err := s.call(read, `{"filePath":"a"}`); err != nil {
			b.Fatal(err)
		}
		s.updates = nil
	}
}

// countOutside allows all and counts the questions about places outside.
type countOutside struct{ n *int }

func (c countOutside) Ask(_ context.Context, r permission.Request) (permission.Reply, error) {
	if r.Permission == "external_directory" {
		*c.n++
	}
	return permission.Reply{}, nil
}

// The page's number for a step is 5 ms, model, events and question included.
func BenchmarkEditSmall(b *testing.B) {
	s := newBench(b, yes)
	s.put("a", big(50)+"x 0\n")
	s.know("a")
	edit := Edit(s.env)
	for i := 0; b.Loop(); i++ {
		if _, err := s.call(edit, fmt.Sprintf(`{"filePath":"a","oldString":"x %d\n","newString":"x %d\n"}`, i, i+1)); err != nil {
			b.Fatal(err)
		}
		s.updates = nil
	}
}

func TestR19ErrorsAreCappedPerFileAndInFiles(t *testing.T) {
	set := change.New("c", []change.File{{Path: "/p/own.go", Kind: change.Edit, Old: "a", New: "b"}})
	d := &lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	for i := range 8 {
		path := fmt.Sprintf("/p/other%d.go", i)
		if i == 7 {
			path = "/p/own.go"
		}
		for k := range 25 {
			x := change.Problem{Path: path, Severity: change.SeverityError, Message: fmt.Sprint("m", k)}
			x.Line, x.Column = k+1, 1
			d.Introduced = append(d.Introduced, x)
		}
	}
	got := problemText(d, set)
	if n := strings.Count(got, "ERROR ["); n != 20*6 {
		t.Errorf("%d errors told, want 20 of the file and 20 each of 5 others", n)
	}
	if strings.Count(got, "... and 5 more") != 6 || !strings.Contains(got, "new errors in 2 more files") {
		t.Errorf("the rest is not mentioned:\n%s", got)
	}
	if !strings.HasPrefix(got, "\n\nLSP errors detected in this file, please fix:\n<diagnostics file=\"/p/own.go\">\nERROR [1:1] m0\n") {
		t.Errorf("begins with %.200q", got)
	}
}

// The person types just while the editor is told: the change is merged onto the new text and tried again.
func TestTypingBetweenComparisonAndWrite(t *testing.T) {
	b := newBench(t, yes)
	p := b.put("a", "disk\n")
	bufs := buffers{p: {Path: p, Text: "1\n2\n3\n4\n", Version: 1, Dirty: true}}
	b.env.Buffers = bufs
	tries := 0
	b.env.Applier = applierFunc(func(ctx context.Context, set *change.Set) error {
		if tries++; tries == 1 {
			bufs[p] = files.Buffer{Path: p, Text: "1\n2\n3\n4\ntyped\n", Version: 2, Dirty: true}
		}
		return editor{bufs, &b.env}.Apply(ctx, set)
	})
	b.know("a")
	r, err := b.call(Edit(b.env), `{"filePath":"a","oldString":"1","newString":"one"}`)
	if err != nil || tries != 2 || bufs[p].Text != "one\n2\n3\n4\ntyped\n" || !strings.Contains(r.Output, "+typed") {
		t.Errorf("%v after %d tries: %q\n%s", err, tries, bufs[p].Text, r.Output)
	}
	if b.text("a") != "disk\n" {
		t.Error("the disk was written")
	}
}
