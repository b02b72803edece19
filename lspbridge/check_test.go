package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/fakelsp"
	"github.com/pillion-dev/pillion/tools/change"
)

// Several servers answer for one file: together they are as certain as the least certain of them, in whatever order they
// come, and one that is missing never leaves the answer fresh.
func TestMergeIsTheLeastCertain(t *testing.T) {
	all := []change.Certainty{change.Fresh, change.Partial, change.Pending, change.Unavailable}
	for _, a := range all {
		for _, b := range all {
			want := change.LeastCertain(a, b)
			switch {
			case a == change.Unavailable && b == change.Unavailable:
				want = change.Unavailable
			case a == change.Unavailable: // the other one has looked, or will
				want = change.LeastCertain(change.Partial, b)
			case b == change.Unavailable:
				want = change.LeastCertain(change.Partial, a)
			}
			d := merge(nil, []*slot{{}, {}}, []serverVerdict{{state: a, reason: "a"}, {state: b, reason: "b"}})
			if d.Certainty != want {
				t.Errorf("%s beside %s: %s, want %s", a, b, d.Certainty, want)
			}
			if d.Reason != "a; b" {
				t.Errorf("%s beside %s: reason %q", a, b, d.Reason)
			}
		}
	}
}

func TestMergeOfLintersAndMuteServers(t *testing.T) {
	main, linter := &slot{}, &slot{spec: Server{Extra: true}}
	mute := serverVerdict{state: change.Unavailable, mute: true, reason: "says nothing"}
	fresh := serverVerdict{state: change.Fresh}
	for _, c := range []struct {
		name   string
		order  []*slot
		parts  []serverVerdict
		want   change.Certainty
		reason string
	}{
		{"a linter that is not installed", []*slot{main, linter}, []serverVerdict{fresh, {state: change.Unavailable, reason: "not installed"}}, change.Fresh, ""},
		{"a linter that is at it", []*slot{main, linter}, []serverVerdict{fresh, {state: change.Pending, reason: "slow"}}, change.Pending, "slow"},
		{"a server for names beside one for problems", []*slot{main, main}, []serverVerdict{mute, fresh}, change.Fresh, ""},
		{"only servers for names", []*slot{main, main}, []serverVerdict{mute, mute}, change.Unavailable, "says nothing"},
		{"only a linter that is not installed", []*slot{linter}, []serverVerdict{{state: change.Unavailable, reason: "not installed"}}, change.Unavailable, ""},
		{"one says why for two", []*slot{main, main}, []serverVerdict{{state: change.Pending, reason: "x"}, {state: change.Partial, reason: "x"}}, change.Pending, "x"},
	} {
		d := merge(nil, c.order, c.parts)
		if d.Certainty != c.want || d.Reason != c.reason {
			t.Errorf("%s: %s %q, want %s %q", c.name, d.Certainty, d.Reason, c.want, c.reason)
		}
	}
}

func TestMergeAddsUp(t *testing.T) {
	p := func(n int) change.Problem {
		return change.Problem{Path: "/a", Line: n, Column: 1, Severity: change.SeverityError, Message: fmt.Sprint(n)}
	}
	d := merge([]Proposal{{Path: "/a"}}, []*slot{{}, {}}, []serverVerdict{
		{state: change.Fresh, introduced: []change.Problem{p(1)}, fixed: []change.Problem{p(2)}, unchanged: 3, files: map[string]*fileDiags{"/a": {pushed: []change.Problem{p(1)}}}, versions: map[string]int32{"/a": 4}},
		{state: change.Fresh, introduced: []change.Problem{p(1), p(5)}, fixed: []change.Problem{p(6)}, unchanged: 4, files: map[string]*fileDiags{"/a": {pushed: []change.Problem{p(1), p(5)}}}, versions: map[string]int32{"/a": 2}},
	})
	if len(d.Introduced) != 2 || len(d.Fixed) != 2 || d.Unchanged != 7 {
		t.Errorf("%+v", d.Verdict)
	}
	if len(d.Files) != 1 || len(d.Files[0].Items) != 2 || d.Files[0].Version != 4 || d.Files[0].Certainty != change.Fresh {
		t.Errorf("%+v", d.Files)
	}
}

// Code that is broken silences analysers, and a file that cannot be parsed hides its errors: what vanishes then is unknown.
func TestWhatABreakHidesIsNotFixed(t *testing.T) {
	at := func(path, server, source, code string, s change.Severity, m string) change.Problem {
		return change.Problem{Path: path, Line: 1, Column: 1, Server: server, Source: source, Code: code, Severity: s, Message: m}
	}
	err, warn := change.SeverityError, change.SeverityWarning
	typeError := at("/p/a.go", "gopls", "compiler", "UndeclaredName", err, "undefined: x")
	elsewhere := at("/q/b.go", "gopls", "compiler", "UndeclaredName", err, "undefined: y")
	unused := at("/p/a.go", "gopls", "unusedfunc", "", warn, "unused")
	syntax := at("/p/a.go", "gopls", "syntax", "", err, "expected ';'")
	for _, c := range []struct {
		name              string
		introduced, fixed []change.Problem
		want              int
	}{
		{"nothing is broken", nil, []change.Problem{unused, typeError}, 2},
		{"a warning comes", []change.Problem{unused}, []change.Problem{unused, typeError}, 2},
		{"an error comes: warnings are unknown", []change.Problem{typeError}, []change.Problem{unused, elsewhere}, 1},
		{"an error comes, and then a warning", []change.Problem{typeError, unused}, []change.Problem{unused, elsewhere}, 1},
		{"it cannot be parsed: errors of the package are unknown too", []change.Problem{syntax}, []change.Problem{typeError, unused, elsewhere}, 1},
		{"one error of syntax for another", []change.Problem{syntax}, []change.Problem{syntax}, 1},
		{"TypeScript's syntax", []change.Problem{at("/p/a.ts", "typescript", "typescript", "1005", err, "';' expected.")}, []change.Problem{at("/p/b.ts", "typescript", "typescript", "2304", err, "no x")}, 0},
		{"TypeScript's types", []change.Problem{at("/p/a.ts", "typescript", "typescript", "2322", err, "not assignable")}, []change.Problem{at("/p/b.ts", "typescript", "typescript", "2304", err, "no x")}, 1},
		{"another's words", []change.Problem{at("/p/a.py", "pyright", "Pyright", "", err, "Expected expression")}, []change.Problem{at("/p/a.py", "pyright", "Pyright", "reportX", err, "no x")}, 0},
	} {
		if got := stillKnown(c.introduced, c.fixed); len(got) != c.want {
			t.Errorf("%s: %d left of %d, want %d: %v", c.name, len(got), len(c.fixed), c.want, got)
		}
	}
}

func TestNewlyFound(t *testing.T) {
	problem := func(path string, s change.Severity) change.Problem {
		return change.Problem{Path: path, Severity: s, Message: "x"}
	}
	const touched, other = "/p/touched.go", "/p/other.go"
	found := []change.Problem{problem(touched, change.SeverityWarning), problem(other, change.SeverityWarning), problem(other, change.SeverityError)}
	for _, c := range []struct {
		name  string
		fixed []change.Problem
		want  int
	}{
		{"no error is gone: all of it is new", []change.Problem{problem(touched, change.SeverityWarning)}, 3},
		{"an error is gone: warnings in files that are not touched were there before", []change.Problem{problem(touched, change.SeverityError)}, 2},
	} {
		got := newlyFound(found, c.fixed, []string{touched})
		if len(got) != c.want {
			t.Errorf("%s: %d left, want %d: %v", c.name, len(got), c.want, got)
		}
		if len(found) != 3 || found[1].Path != other || found[1].IsError() {
			t.Fatalf("%s: the list that was given has changed: %v", c.name, found)
		}
	}
}

// A server that crashed while it was asked is asked once more when it runs again. One that runs and has no answer yet is not, nor one that
// has answered: its documents would be sent twice.
func TestOnlyACrashedServerIsAskedAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		state change.Certainty
		die   bool
		asked int
		want  change.Certainty
	}{
		{"answered", change.Fresh, false, 1, change.Fresh},
		{"answered, then crashed", change.Partial, true, 1, change.Partial},
		{"slow", change.Pending, false, 1, change.Pending},
		{"crashed", change.Pending, true, 2, change.Fresh},
		{"crashed twice", change.Pending, true, 2, change.Pending},
	} {
		bubble(t, func(t *testing.T) {
			f := newFaked(t, Quirks{}, fakelsp.Options{}, map[string]string{"a.fake": "x"})
			defer f.Close(context.Background())
			asked := 0
			d := f.askServers(t.Context(), []Proposal{{Path: f.path, Text: "y"}}, func(_ context.Context, cl *client, _ []Proposal) serverVerdict {
				if asked++; asked > 1 && c.want == change.Fresh {
					return serverVerdict{state: change.Fresh}
				}
				if c.die {
					f.server().Die()
					<-cl.peer.Done()
					synctest.Wait()
				}
				return serverVerdict{state: c.state, reason: "x"}
			})
			if asked != c.asked || d.Certainty != c.want {
				t.Errorf("%s: asked %d times, %s; want %d, %s", c.name, asked, d.Certainty, c.asked, c.want)
			}
		})
	}
}

// Where no server is known for the files nothing is wrong with the set-up, and no model can do anything about it.
func TestFilesThatNoServerIsFor(t *testing.T) {
	f := newFaked(t, Quirks{}, fakelsp.Options{}, nil)
	defer f.Close(context.Background())
	d := f.Check(t.Context(), []Proposal{{Path: "/p/a.txt"}, {Path: "/p/b.txt"}, {Path: "/p/Makefile"}})
	if !d.Unserved || d.Certainty != change.Unavailable || d.Reason != "no language server for .txt, Makefile" {
		t.Errorf("%+v", d.Verdict)
	}
}

// Without an answer it may still come, unless the server is not there or has never said anything.
func TestFailState(t *testing.T) {
	for _, c := range []struct {
		err  error
		want change.Certainty
	}{
		{unavailable{}, change.Unavailable}, {fmt.Errorf("x: %w", errMute), change.Unavailable}, {context.DeadlineExceeded, change.Pending}, {errors.New("x"), change.Pending},
	} {
		if got := failState(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// The person who waits for a verdict reads what each server does meanwhile: it starts, or it says what it works on. A linter's work holds
// nothing up, and a server of two files is named once.
func TestWhatAServerIsBusyWith(t *testing.T) {
	for _, extra := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			begin := make(chan struct{})
			f := newFaked(t, Quirks{}, fakelsp.Options{Push: true, On: func(_ context.Context, _ *fakelsp.Server, method string, _ json.RawMessage) (any, bool, error) {
				if method == "initialize" {
					<-begin
				}
				return nil, false, nil
			}}, map[string]string{"a.fake": "x", "b.fake": "y"})
			f.rows = func() []Server {
				return []Server{{ID: "fake", Extensions: []string{".fake"}, Extra: extra}, {ID: "idle", Extensions: []string{".idle"}}}
			}
			defer f.Close(context.Background())
			files := []Proposal{{Path: f.path}, {Path: filepath.FromSlash("/p/b.fake")}, {Path: filepath.FromSlash("/p/c.idle")}}
			look := func(step, want string) {
				t.Helper()
				synctest.Wait()
				if got := f.Busy(files); got != want {
					t.Errorf("extra %t: %s: %q, want %q", extra, step, got, want)
				}
			}
			work := func(value string) {
				f.server().Peer().Notify(t.Context(), "$/progress", json.RawMessage(`{"token":1,"value":`+value+`}`))
			}
			look("nothing was asked", "")
			go f.Diagnostics(f.ctx(time.Minute), f.path)
			look("it does not answer yet", "fake is starting")
			close(begin)
			look("it runs", "")
			work(`{"kind":"begin","title":"indexing","message":"3/9"}`)
			if extra {
				look("a linter works", "")
			} else {
				look("it works", "fake is still busy: indexing (3/9)")
			}
			work(`{"kind":"end"}`)
			look("its work ended", "")
			f.server().Die()
			look("it crashed and will be restarted", "fake is starting")
		})
	}
}

// A server is told once that a file was created: the next write of it is a change. What was deleted was not created.
func TestAFileIsNewOnce(t *testing.T) {
	dir := t.TempDir()
	made, gone, there := filepath.Join(dir, "made"), filepath.Join(dir, "gone"), filepath.Join(dir, "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files := []Proposal{{Path: made}, {Path: gone, Delete: true}, {Path: there}}
	var n newFiles
	n.note(files)
	for i, want := range []bool{true, false} {
		if got := n.take(files); got[made] != want || got[gone] || got[there] {
			t.Errorf("write %d: %v", i, got)
		}
	}
	// Proposals that are never written do not pile up.
	for i := range 2 * maxNewFiles {
		n.note([]Proposal{{Path: filepath.Join(dir, fmt.Sprint(i))}})
		if len(n.paths) > maxNewFiles+1 {
			t.Fatalf("%d paths are kept", len(n.paths))
		}
	}
	last := []Proposal{{Path: filepath.Join(dir, fmt.Sprint(2*maxNewFiles-1))}}
	if !n.take(last)[last[0].Path] {
		t.Error("the last proposal is forgotten")
	}
}

// A file that no server has read anew has no difference, one that is gone has lost its problems, and each file is compared once.
func TestCompareOfSnapshots(t *testing.T) {
	diags := func(messages ...string) *fileDiags {
		f := &fileDiags{}
		for _, m := range messages {
			f.pushed = append(f.pushed, change.Problem{Path: "/p/a", Line: 1, Severity: change.SeverityWarning, Message: m})
		}
		return f
	}
	same := diags("x", "y")
	for _, c := range []struct {
		name                         string
		before, after                map[string]*fileDiags
		introduced, fixed, unchanged int
	}{
		{"the changed file, without a new report", map[string]*fileDiags{"/p/a": same}, map[string]*fileDiags{"/p/a": same}, 0, 0, 2},
		{"another file, without a new report", map[string]*fileDiags{"/p/b": same}, map[string]*fileDiags{"/p/b": same}, 0, 0, 0},
		{"another file, with one", map[string]*fileDiags{"/p/b": same}, map[string]*fileDiags{"/p/b": diags("y", "z")}, 1, 1, 0},
		{"another file, for the first time", nil, map[string]*fileDiags{"/p/b": same}, 2, 0, 0},
		{"a file that is gone", map[string]*fileDiags{"/p/a": same}, nil, 0, 2, 0},
		{"the changed file", map[string]*fileDiags{"/p/a": same}, map[string]*fileDiags{"/p/a": diags("x", "z")}, 1, 1, 1},
	} {
		v := compare(c.before, c.after, []string{"/p/a"})
		if len(v.introduced) != c.introduced || len(v.fixed) != c.fixed || v.unchanged != c.unchanged || v.state != change.Fresh {
			t.Errorf("%s: introduced %v, fixed %v, %d unchanged, %s", c.name, v.introduced, v.fixed, v.unchanged, v.state)
		}
	}
	// An error hides what else the server would say, so a warning that disappears with it is not fixed.
	broken := &fileDiags{pushed: []change.Problem{{Path: "/p/a", Line: 1, Severity: change.SeverityError, Message: "e"}}}
	if v := compare(map[string]*fileDiags{"/p/a": same}, map[string]*fileDiags{"/p/a": broken}, []string{"/p/a"}); len(v.introduced) != 1 || len(v.fixed) != 0 {
		t.Errorf("introduced %v, fixed %v", v.introduced, v.fixed)
	}
	// And a warning that appears elsewhere when an error is gone was there before.
	found := &fileDiags{pushed: []change.Problem{{Path: "/p/b", Line: 1, Severity: change.SeverityWarning, Message: "w"}}}
	if v := compare(map[string]*fileDiags{"/p/a": broken}, map[string]*fileDiags{"/p/b": found}, []string{"/p/a"}); len(v.introduced) != 0 || len(v.fixed) != 1 {
		t.Errorf("introduced %v, fixed %v", v.introduced, v.fixed)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		problem change.Problem
		want    bool
	}{
		{change.Problem{Server: "gopls", Source: "syntax"}, true},
		{change.Problem{Server: "gopls", Source: "go list"}, true},
		{change.Problem{Server: "gopls", Source: "compiler", Message: "expected int"}, false},
		{change.Problem{Server: typescriptID, Code: "1005"}, true},
		{change.Problem{Server: typescriptID, Code: "2322", Message: "expected 2 arguments"}, false},
		{change.Problem{Server: typescriptID, Code: "18046"}, false},
		{change.Problem{Server: typescriptID}, false},
		{change.Problem{Server: "pyright", Message: "Expected expression"}, true},
		{change.Problem{Server: "x", Message: "Syntax error"}, true},
		{change.Problem{Server: "x", Message: "Unterminated string"}, true},
		{change.Problem{Server: "x", Message: "unclosed brace"}, true},
		{change.Problem{Server: "x", Message: "no such name"}, false},
	} {
		c.problem.Severity = change.SeverityError
		if got := isSyntax(c.problem); got != c.want {
			t.Errorf("%+v: %t", c.problem, got)
		}
		c.problem.Severity = change.SeverityWarning
		if isSyntax(c.problem) {
			t.Errorf("a warning stops no analysis: %+v", c.problem)
		}
	}
}

func TestMissesModule(t *testing.T) {
	for _, c := range []struct {
		message, file string
		want          bool
	}{
		{"Cannot find module './Shape' or its corresponding type declarations.", "/p/shape.ts", true},
		{`Import "pkg.shape" could not be resolved`, "/p/pkg/Shape.py", true},
		{`"Shape" is unknown import symbol`, "/p/shape.py", true},
		{"undefined: shape", "/p/shape.ts", false},
		{"Cannot find module './other'", "/p/shape.ts", false},
		{"Cannot find module './other'", "/p/a.ts", false},
		{"Cannot find module './other'", "/p/module.ts", false},
		{"Cannot find module './reshape/shape-of/shape2'", "/p/shape.ts", false},
		{"Cannot find module './reshape/shape.js'. Did you mean 'x'?", "/p/shape.ts", true},
		{"Cannot find module './shape.test'", "/p/shape.test.ts", true},
		{"Cannot find module './shape'", "/p/.ts", false},
		{`Import "reshaped.shapes" could not be resolved`, "/p/be.py", false},
		{"Cannot find module './lib'", "/p/lib/index.ts", true},
		{"Cannot find module './index'", "/p/lib/index.ts", false},
		{`Import "lib" could not be resolved`, "/p/lib/__init__.py", true},
		{`Import "lib" could not be resolved`, "/p/lib/main.py", false},
	} {
		if got := missesModule(change.Problem{Message: c.message}, []string{"/q/unnamed.x", c.file}); got != c.want {
			t.Errorf("%s: %s: %t", c.file, c.message, got)
		}
	}
}

// Some servers read new files from the disk only. What they say of a proposal with such files is partial, and that they cannot import them
// is not reported; everything else is.
func TestWhatAServerCannotSeeYet(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there.ts")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	made, deep := filepath.Join(dir, "made.ts"), filepath.Join(dir, "new", "deep.ts")
	introduced := []change.Problem{{Message: "Cannot find module './made'"}, {Message: "Cannot find module './new/deep'"}, {Message: "Cannot find module './there'"}, {Message: "made is not a function"}}
	const unseen, deleted = "fake sees new files only after they are written", "deleted files were checked as empty ones"
	for _, c := range []struct {
		blind  string
		files  []Proposal
		reason string
		left   int
	}{
		{"", []Proposal{{Path: made}, {Path: deep}}, "", 4},
		{"file", []Proposal{{Path: there}}, "", 4},
		{"file", []Proposal{{Path: made}, {Path: there}}, unseen, 3},
		{"file", []Proposal{{Path: made}, {Path: deep}}, unseen, 2},
		{"dir", []Proposal{{Path: made}, {Path: there}}, "", 4},
		{"dir", []Proposal{{Path: deep}}, unseen, 3},
		{"", []Proposal{{Path: there, Delete: true}, {Path: made}}, deleted, 4},
		{"file", []Proposal{{Path: made, Delete: true}}, deleted, 4},
		{"file", []Proposal{{Path: there, Delete: true}, {Path: made}}, unseen, 3},
	} {
		cl := newClient(Server{ID: "fake", Quirks: Quirks{BlindToNew: c.blind}}, dir, host{}, nil)
		v := serverVerdict{state: change.Fresh, introduced: slices.Clone(introduced)}
		cl.markUnseen(&v, c.files, false)
		want := change.Fresh
		if c.reason != "" {
			want = change.Partial
		}
		if v.state != want || v.reason != c.reason || len(v.introduced) != c.left {
			t.Errorf("blind to new %q, %v: %s %q, introduced %v", c.blind, c.files, v.state, v.reason, v.introduced)
		}
	}
	cl := newClient(Server{ID: "fake", hooks: hooks{unloaded: unloadedPackage}}, dir, host{}, nil)
	v := serverVerdict{state: change.Fresh, introduced: []change.Problem{{Source: "go list", Message: "initialization failed: packages.Load error: x"}, {Source: "compiler", Message: "initialization failed: packages.Load error: x"}}}
	cl.markUnseen(&v, []Proposal{{Path: there}}, false)
	if v.state != change.Partial || v.reason != "fake cannot load new packages before they are written" || len(v.introduced) != 1 {
		t.Errorf("not loaded: %s %q %v", v.state, v.reason, v.introduced)
	}
}

// A server that is known to miss problems of a file makes a fresh verdict partial; one that is not fresh keeps its reason.
func TestAKnownGapIsNamed(t *testing.T) {
	cl := newClient(Server{ID: "fake", hooks: hooks{gap: func(path, _ string, before, introduced []change.Problem) string {
		if len(before)+len(introduced) > 0 {
			return path + " hides its problems"
		}
		return ""
	}}}, "/p", host{text: func(string) (string, bool) { return "", true }}, nil)
	before := map[string]*fileDiags{"/p/b": {pushed: []change.Problem{{Message: "x"}}}}
	for _, c := range []struct {
		v     serverVerdict
		paths []string
		state change.Certainty
		why   string
	}{
		{serverVerdict{state: change.Fresh}, []string{"/p/a", "/p/b"}, change.Partial, "/p/b hides its problems"},
		{serverVerdict{state: change.Fresh}, []string{"/p/a"}, change.Fresh, ""},
		{serverVerdict{state: change.Fresh, introduced: []change.Problem{{Message: "x"}}}, []string{"/p/a"}, change.Partial, "/p/a hides its problems"},
		{serverVerdict{state: change.Pending, reason: "slow"}, []string{"/p/b"}, change.Pending, "slow"},
	} {
		cl.markGap(&c.v, before, c.paths)
		if c.v.state != c.state || c.v.reason != c.why {
			t.Errorf("%v: %s %q, want %s %q", c.paths, c.v.state, c.v.reason, c.state, c.why)
		}
	}
}

// A server that accepts no texts says nothing about a proposal, so it does not take the freshness of another's answer.
func TestAServerThatReadsTheDiskLeavesTheOthersFresh(t *testing.T) {
	silent := newClient(Server{ID: "fake"}, "/p", host{}, nil).publishedVerdict()
	if d := merge(nil, []*slot{{}, {}}, []serverVerdict{silent, {state: change.Fresh}}); d.Certainty != change.Fresh || d.Reason != "" {
		t.Errorf("%+v", d.Verdict)
	}
	if d := merge(nil, []*slot{{}}, []serverVerdict{silent}); d.Certainty != change.Unavailable || d.Reason != silent.reason {
		t.Errorf("%+v", d.Verdict)
	}
}
