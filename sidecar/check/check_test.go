package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/change"
)

// repository is a git repository with a commit of some files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, files)
	run(t, root, "init", "-q", "-b", "main")
	commit(t, root)
	return root
}

func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func commit(t *testing.T, root string) {
	t.Helper()
	run(t, root, "add", "-A")
	run(t, root, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "c")
}

func run(t *testing.T, root string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// show is a plan in words: what each file becomes, and what it was.
func show(t *testing.T, p *Plan) string {
	t.Helper()
	var out []string
	for _, f := range p.Files {
		switch {
		case f.Delete:
			out = append(out, "-"+p.rel(f.Path))
		default:
			out = append(out, fmt.Sprintf("%s: %s→%s", p.rel(f.Path), strings.TrimSpace(f.Old), strings.TrimSpace(f.Text)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func base(t *testing.T, p *Plan, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil {
		return "none"
	}
	return strings.TrimSpace(string(b))
}

func TestWorkingTree(t *testing.T) {
	root := repository(t, map[string]string{"a": "1\n", "sub/b": "2\n", "same": "s\n", "crlf": "x\n", ".gitignore": "node_modules\n*.log\n"})
	put(t, root, map[string]string{"a": "one\n", "new": "n\n", "crlf": "x\r\n", "x.log": "ignored", "node_modules/p/index.js": "p", "sub/compile_commands.json": `[{"directory":"` + root + `"}]`})
	run(t, root, "add", "a")
	if err := os.Remove(filepath.Join(root, "sub", "b")); err != nil {
		t.Fatal(err)
	}
	p, err := WorkingTree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := show(t, p); got != `-sub/b, a: 1→one, new: →n, sub/compile_commands.json: →[{"directory":"`+root+`"}]` {
		t.Errorf("changed: %s", got)
	}
	for name, want := range map[string]string{"a": "1", "sub/b": "2", "same": "s", "new": "none", "node_modules/p/index.js": "p", "x.log": "none", "sub/compile_commands.json": `[{"directory":"` + p.Dir + `"}]`} {
		if got := base(t, p, name); got != want {
			t.Errorf("before, %s was %s, want %s", name, got, want)
		}
	}
	if got := run(t, root, "status", "--porcelain"); !strings.HasPrefix(got, "M  a") {
		t.Errorf("the repository has changed: %s", got)
	}
	p.Close()
	if _, err := os.Stat(p.Dir); err == nil {
		t.Error("the copy is still there")
	}
	if b, err := os.ReadFile(filepath.Join(root, "node_modules", "p", "index.js")); err != nil || string(b) != "p" {
		t.Errorf("what was lent is gone: %v", err)
	}
}

func TestRange(t *testing.T) {
	root := repository(t, map[string]string{"a": "1\n", "b": "1\n", "gone": "g\n"})
	run(t, root, "checkout", "-qb", "topic")
	put(t, root, map[string]string{"a": "2\n", "new": "n\n"})
	if err := os.Remove(filepath.Join(root, "gone")); err != nil {
		t.Fatal(err)
	}
	commit(t, root)
	run(t, root, "checkout", "-q", "main")
	put(t, root, map[string]string{"b": "main\n"})
	commit(t, root)
	put(t, root, map[string]string{"a": "not committed\n"})
	for spec, want := range map[string]string{
		"topic":        "-gone, a: 1→2, new: →n",
		"main...topic": "-gone, a: 1→2, new: →n",
		"main..topic":  "-gone, a: 1→2, b: main→1, new: →n",
		"topic..":      "-new, a: 2→1, b: 1→main, gone: →g",
		"HEAD":         "b: 1→main",
	} {
		p, err := Range(t.Context(), root, spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if got := show(t, p); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
		p.Close()
	}
	for _, spec := range []string{"no-such-commit", "--output=/tmp/lsp-evil", "-x..HEAD"} {
		if p, err := Range(t.Context(), root, spec); err == nil {
			t.Errorf("%s: %s", spec, show(t, p))
		}
	}
}

// A repository's own settings start no program when it is only looked at.
func TestTheRepositoryRunsNothing(t *testing.T) {
	root := repository(t, map[string]string{"a.txt": "1\n", ".gitattributes": "* filter=evil diff=evil\n"})
	mark := filepath.Join(t.TempDir(), "ran")
	evil := "touch " + mark
	for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "core.pager", "diff.external"} {
		run(t, root, "config", key, evil)
	}
	put(t, root, map[string]string{"a.txt": "2\n"})
	p, err := WorkingTree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := show(t, p); got != "a.txt: 1→2" {
		t.Errorf("changed: %s", got)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program of the repository has run")
	}
}

func TestPatch(t *testing.T) {
	root := repository(t, map[string]string{"a": "1\n2\n"})
	p, err := Patch(root, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := show(t, p); got != "a: 1\n2→1\ntwo" || p.Dir != root {
		t.Errorf("%s in %s", got, p.Dir)
	}
	if p, err := Patch(root, "--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n"); err == nil {
		t.Errorf("outside: %s", show(t, p))
	}
}

// A patch whose change is there already, or that was made against another text, must not pass for one that changes nothing: a build would
// be green for a change that nobody looked at.
func TestAPatchOfAnotherStateIsRefused(t *testing.T) {
	before := "package a\n\nfunc One() int {\n\treturn 1\n}\n\nfunc Two() int {\n\treturn One() + One()\n}\n"
	for name, after := range map[string]string{
		"a line changed":    strings.Replace(before, "func One()", "func OneQx()", 1),
		"lines added":       strings.Replace(before, "\nfunc Two", "\nfunc Half() int { return 0 }\n\nfunc Two", 1),
		"lines removed":     strings.Replace(before, "func One() int {\n\treturn 1\n}\n\n", "", 1),
		"added at the end":  before + "\nfunc Three() int { return 3 }\n",
		"added before all":  "// A comment.\n" + before,
		"all but one line":  "package a\n",
		"two places of one": strings.Replace(strings.Replace(before, "return 1", "return 11", 1), "One() + One()", "2 * One()", 1),
	} {
		t.Run(name, func(t *testing.T) {
			root := repository(t, map[string]string{"a.go": before})
			put(t, root, map[string]string{"a.go": after})
			diff := run(t, root, "diff")
			if p, err := Patch(root, diff); err == nil {
				t.Errorf("it is there already, and the plan is %q", show(t, p))
			}
			run(t, root, "checkout", "-q", "a.go")
			if p, err := Patch(root, diff); err != nil || len(p.Files) != 1 || p.Files[0].Text != after {
				t.Errorf("before the change: %v", err)
			}
			put(t, root, map[string]string{"a.go": "// Moved down.\n// Two lines.\n" + strings.ReplaceAll(before, "One", "Uno")})
			if p, err := Patch(root, diff); err == nil && strings.Contains(diff, "One") {
				t.Errorf("other text, and the plan is %q", show(t, p))
			}
		})
	}
}

// fakeServers answer with one verdict after the other.
type fakeServers struct {
	verdicts []change.Verdict
	asked    int
}

func (s *fakeServers) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta {
	v := s.verdicts[min(s.asked, len(s.verdicts)-1)]
	s.asked++
	return lspbridge.Delta{Verdict: v}
}

func (s *fakeServers) Busy([]lspbridge.Proposal) string { return "" }

// loadingServers answer after a time; until then they say what they do.
type loadingServers struct{ began time.Time }

func (s *loadingServers) Check(ctx context.Context, _ []lspbridge.Proposal) lspbridge.Delta {
	select {
	case <-time.After(20 * time.Second):
		return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	case <-ctx.Done():
		return lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Pending, Reason: "gopls is loading"}}
	}
}

func (s *loadingServers) Busy([]lspbridge.Proposal) string {
	switch after := time.Since(s.began); {
	case after < 3*time.Second:
		return "gopls is starting"
	case after < 14*time.Second:
		return "gopls is loading /copy"
	}
	return "gopls is indexing"
}

// While servers load, a person reads what they do and what parsing alone finds, each once. A verdict that no server gave has both in its
// reason.
func TestRunTellsWhatItWaitsFor(t *testing.T) {
	const syntax = "; parsing alone finds a syntax error that this change introduces in a.go (at or before line 3)"
	plan := &Plan{Root: "/real", Dir: "/copy", Files: []lspbridge.Proposal{{Path: "/copy/a.go", Old: "package a\n\nfunc f() {\n}\n", Text: "package a\n\nfunc f( {\n}\n"}}}
	for limit, want := range map[time.Duration]change.Verdict{
		time.Minute:      {Certainty: change.Fresh},
		19 * time.Second: {Certainty: change.Pending, Reason: "gopls is loading" + syntax},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var told []string
			v := plan.Run(ctx, &loadingServers{began: time.Now()}, func(text string) { told = append(told, text) })
			if got := strings.Join(told, ", "); got != "gopls is starting"+syntax+", gopls is loading /real, gopls is indexing" {
				t.Errorf("told %s", got)
			}
			if v.Certainty != want.Certainty || v.Reason != want.Reason {
				t.Errorf("%s (%s), want %s (%s)", v.Certainty, v.Reason, want.Certainty, want.Reason)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_ = plan.Run(t.Context(), &fakeServers{verdicts: []change.Verdict{{Certainty: change.Fresh}}}, func(text string) { t.Errorf("told %s of servers that answered at once", text) })
	})
}

func TestRunWaitsForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Plan{Root: "/real", Dir: "/copy", Files: []lspbridge.Proposal{{Path: "/copy/a"}}}
		pending := change.Verdict{Certainty: change.Pending, Reason: "loading /copy"}
		s := &fakeServers{verdicts: []change.Verdict{pending, pending, {Certainty: change.Fresh, Introduced: []change.Problem{{Path: "/copy/sub/a"}, {Path: "/usr/include/x"}}}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		v := p.Run(ctx, s, nil)
		if s.asked != 3 || v.Certainty != change.Fresh || v.Introduced[0].Path != filepath.FromSlash("/real/sub/a") || v.Introduced[1].Path != "/usr/include/x" {
			t.Errorf("asked %d times: %+v", s.asked, v)
		}
		s = &fakeServers{verdicts: []change.Verdict{pending}}
		if v := p.Run(ctx, s, nil); v.Certainty != change.Pending || v.Reason != "loading /real" || s.asked < 10 {
			t.Errorf("asked %d times: %+v", s.asked, v)
		}
		if v := (&Plan{}).Run(ctx, nil, nil); v.Certainty != change.Fresh {
			t.Errorf("nothing has changed: %+v", v)
		}
	})
}

func TestJudge(t *testing.T) {
	e, w := change.Problem{Severity: change.SeverityError}, change.Problem{Severity: change.SeverityWarning}
	for _, c := range []struct {
		v             change.Verdict
		want, partial Outcome
	}{
		{change.Verdict{Certainty: change.Fresh}, Clean, Clean},
		{change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{w}}, Clean, Clean},
		{change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{w, e}}, Errors, Errors},
		{change.Verdict{Certainty: change.Partial, Introduced: []change.Problem{e}}, Errors, Errors},
		{change.Verdict{Certainty: change.Partial}, Uncertain, Clean},
		{change.Verdict{Certainty: change.Pending}, Uncertain, Uncertain},
		{change.Verdict{Certainty: change.Unavailable}, Uncertain, Uncertain},
		{change.Verdict{Certainty: change.Unavailable, Unserved: true}, Clean, Clean},
	} {
		if got, partial := Judge(c.v, false), Judge(c.v, true); got != c.want || partial != c.partial {
			t.Errorf("%+v: %d and %d, want %d and %d", c.v, got, partial, c.want, c.partial)
		}
	}
}

func TestSARIF(t *testing.T) {
	p := &Plan{Root: "/r", Dir: "/r", Files: []lspbridge.Proposal{{Path: "/r/a.go"}}}
	var b bytes.Buffer
	v := change.Verdict{Certainty: change.Partial, Reason: "one is missing", Introduced: []change.Problem{
		{Path: "/r/sub/a.go", Line: 3, Column: 4, EndLine: 3, EndColumn: 9, Severity: change.SeverityError, Server: "gopls", Code: "X", Message: "no <x>"},
		{Path: "/usr/x.h", Line: 1, Column: 1, Severity: change.SeverityHint, Message: "h"}}}
	if err := p.Write(&b, "sarif", "1", v); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID, Level string
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI, URIBaseID string }
						Region           struct{ StartLine, StartColumn, EndLine, EndColumn int }
					}
				}
			}
			Invocations []struct {
				ExecutionSuccessful        bool
				ToolExecutionNotifications []struct{ Message struct{ Text string } }
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	r := got.Runs[0]
	at := r.Results[0].Locations[0].PhysicalLocation
	if got.Version != "2.1.0" || r.Results[0].Level != "error" || r.Results[0].RuleID != "gopls/X" || r.Results[0].Message.Text != "no <x>" || at.ArtifactLocation.URI != "sub/a.go" || at.ArtifactLocation.URIBaseID != "%SRCROOT%" || at.Region.EndColumn != 9 {
		t.Errorf("%s", b.String())
	}
	if out := r.Results[1]; out.Level != "note" || out.Locations[0].PhysicalLocation.ArtifactLocation.URI != "/usr/x.h" {
		t.Errorf("%+v", out)
	}
	if n := r.Invocations[0]; !n.ExecutionSuccessful || len(n.ToolExecutionNotifications) != 1 || n.ToolExecutionNotifications[0].Message.Text != "partial: one is missing" {
		t.Errorf("%+v", n)
	}
}

// A patch of Git as CI has it: with a picture, a submodule, a link, or nothing in it. What no server checks does not keep the rest from being checked.
func TestAPatchWithoutTextIsLeftOut(t *testing.T) {
	code := "diff --git a/a.go b/a.go\nindex 1..2 100644\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-package a\n+package b\n"
	picture := "diff --git a/x.png b/x.png\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZPo\n\nliteral 3\nKcmZPn\n\n"
	differ := "diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\n"
	module := "diff --git a/sub b/sub\nindex 1111111..2222222 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n"
	link := "diff --git a/l b/l\nnew file mode 120000\nindex 0..1\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n"
	mail := "From 1 Mon Sep 17 00:00:00 2001\nSubject: x\n---\n a.go | 2 +-\n\n"
	said := "a.go: package a→package b"
	for _, c := range []struct{ patch, want, left string }{
		{"", "", ""}, {"\n", "", ""}, {code, said, ""},
		{picture + code, said, ""}, {code + differ, said, ""}, {mail + differ, "", ""}, {mail + picture + code, said, ""},
		{code + module, said, "sub"}, {link + module, "", "l sub"}, {strings.ReplaceAll(differ+code, "\n", "\r\n"), said, ""},
		{"diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1,2 @@\n-package a\n+package b\n+// index 1 160000\n", "a.go: package a→package b\n// index 1 160000", ""},
	} {
		root := repository(t, map[string]string{"a.go": "package a\n"})
		p, err := Patch(root, c.patch)
		if err != nil {
			t.Errorf("%q: %v", c.patch, err)
			continue
		}
		v := p.qualify(change.Verdict{Certainty: change.Fresh})
		if got := show(t, p); got != c.want || strings.Join(p.unchecked, " ") != c.left || (v.Certainty == change.Fresh) != (c.left == "") {
			t.Errorf("%q: %s, left out %q, %+v", c.patch, got, p.unchecked, v)
		}
	}
}

// Links and submodules are not checked, so a change of them is named, also where Git compares the states; else a build would take it for clean.
func TestChangedLinksAndSubmodulesAreNamed(t *testing.T) {
	sub := repository(t, map[string]string{"a.go": "package a\n"})
	root := repository(t, map[string]string{"a.go": "package a\n"})
	run(t, root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "third/sub")
	if err := os.Symlink("a.go", filepath.Join(root, "l.go")); err != nil {
		t.Skip(err)
	}
	left := func(what string, p *Plan, err error, want string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer p.Close()
		v := p.qualify(change.Verdict{Certainty: change.Fresh})
		if got := strings.Join(p.unchecked, " "); got != want || (v.Certainty == change.Fresh) != (want == "") {
			t.Errorf("%s: left out %q, want %q; %+v", what, got, want, v)
		}
	}
	working := func(what, want string) {
		t.Helper()
		p, err := WorkingTree(t.Context(), root)
		left(what, p, err, want)
	}
	working("new ones", "l.go third/sub")
	commit(t, root)
	run(t, root, "clone", "-q", sub, "untracked")
	working("nothing but a repository that is not added", "")
	p, err := Range(t.Context(), root, "HEAD")
	left("the commit that adds them", p, err, "l.go third/sub")
	put(t, root, map[string]string{"third/sub/a.go": "package b\n"})
	commit(t, filepath.Join(root, "third/sub"))
	working("the submodule at another commit", "third/sub")
	run(t, root, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qam", "c")
	p, err = Range(t.Context(), root, "HEAD~1..HEAD")
	left("that in a commit", p, err, "third/sub")
	if err := errors.Join(os.Remove(filepath.Join(root, "l.go")), os.Symlink("b.go", filepath.Join(root, "l.go"))); err != nil {
		t.Fatal(err)
	}
	working("a link to another file", "l.go")
	if err := errors.Join(os.Remove(filepath.Join(root, "l.go")), os.RemoveAll(filepath.Join(root, "third"))); err != nil {
		t.Fatal(err)
	}
	working("both deleted", "l.go third/sub")
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, root, "clone", "-q", root, clone)
	p, err = WorkingTree(t.Context(), clone)
	left("a clone without its submodule", p, err, "")
}

// The first commit changes everything from nothing. In a shallow clone the last commit has no parent either, but is not the first.
func TestTheFirstCommitIsChecked(t *testing.T) {
	root := repository(t, map[string]string{"a.go": "package a\n"})
	p, err := Range(t.Context(), root, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := show(t, p); got != "a.go: →package a" {
		t.Errorf("%q", got)
	}
}

// What cannot be read is explained: Git says only that a name is not valid.
func TestAMissingCommitIsExplained(t *testing.T) {
	root := repository(t, map[string]string{"a.go": "package a\n"})
	put(t, root, map[string]string{"a.go": "package b\n"})
	commit(t, root)
	shallow, none, empty := filepath.Join(t.TempDir(), "s"), t.TempDir(), t.TempDir()
	run(t, root, "clone", "-q", "--depth", "1", "file://"+filepath.ToSlash(root), shallow)
	run(t, empty, "init", "-q")
	for _, c := range []struct{ root, spec, want string }{
		{shallow, "HEAD~1..HEAD", "shallow; run git fetch --unshallow"}, {shallow, "HEAD", "shallow"},
		{none, "HEAD", "is in no Git repository"}, {none, "", "is in no Git repository"}, {empty, "", "no commit yet"},
		{root, "nonsense", "neither a commit nor a file"},
	} {
		if _, err := Target(t.Context(), c.root, c.root, c.spec, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.spec, err, c.want)
		}
	}
}
