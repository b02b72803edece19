//go:build linux && cgo

package builtin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// The test binary is its own helper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Arg {
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// boxedSession is a session with the sandbox, in a project that is not below /tmp, where everybody may write.
func boxedSession(t *testing.T, config string, box SandboxSettings) *bashSession {
	t.Helper()
	if support := sandbox.Probe(); !support.Usable() {
		t.Skip("no sandbox here:", support.Why)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(wd, "..", "..", ".scratch")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		t.Skip(err)
	}
	base, err := os.MkdirTemp(scratch, "box-*")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	s := newBashSession(t, config)
	old := s.env.Cwd
	s.env.Cwd, s.env.Root, s.env.Home = filepath.Join(base, "home", "work"), filepath.Join(base, "home", "work"), filepath.Join(base, "home")
	if err := os.MkdirAll(s.env.Home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old, s.env.Cwd); err != nil {
		if err := os.CopyFS(s.env.Cwd, os.DirFS(old)); err != nil {
			t.Fatal(err)
		}
	}
	s.env.Shell.Sandbox = box
	return s
}

// hidden is a command whose writes the analysis cannot see.
func hidden(t *testing.T, s *bashSession, script string) map[string]any {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.env.Cwd, "run.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"command": "./run.sh"}
}

func TestTheSandboxStopsWhatTheAnalysisCannotSee(t *testing.T) {
	s := boxedSession(t, `"ask"`, SandboxSettings{Mode: SandboxOn})
	r, err := s.call(hidden(t, s, "#!/bin/sh\necho x >inside\necho x >../outside\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.env.Home, "outside")); err == nil {
		t.Error("it wrote outside")
	}
	if _, err := os.Stat(filepath.Join(s.env.Cwd, "inside")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(r.Output, "The sandbox may have stopped this command, or a part of it: it allows writing only in "+s.env.Cwd) || !strings.Contains(r.Output, `"unsandboxed": true`) || !strings.HasSuffix(r.Output, "</bash_metadata>") {
		t.Errorf("%s", r.Output)
	}
	if r.Metadata["sandbox"] != true || r.Metadata["sandboxStopped"] == nil {
		t.Errorf("%v", r.Metadata)
	}
	if len(s.asked) != 1 {
		t.Errorf("asked %v", s.asks())
	}
}

// In mode ask the person decides at once, also when a pipeline hides the failure.
func TestAskOffersToRunOutside(t *testing.T) {
	for _, command := range []string{"./run.sh", "./run.sh 2>&1 | tail -n 5"} {
		s := boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxAsk})
		hidden(t, s, "#!/bin/sh\necho x >../outside && echo done\n")
		r, err := s.call(map[string]any{"command": command})
		if err != nil || len(s.asked) != 1 || !s.asked[0].MustAsk || !strings.Contains(s.asked[0].Title, "outside the sandbox") {
			t.Errorf("%s: %v %+v", command, err, s.asked)
		}
		if _, err := os.Stat(filepath.Join(s.env.Home, "outside")); err != nil || !strings.Contains(r.Output, "done") || !strings.Contains(r.Output, "let it run again outside") {
			t.Errorf("%s: %v %s", command, err, r.Output)
		}
		s.answer = permission.Reply{Kind: permission.Reject}
		if err := os.Remove(filepath.Join(s.env.Home, "outside")); err != nil {
			t.Fatal(err)
		}
		r, err = s.call(map[string]any{"command": command})
		if _, there := os.Stat(filepath.Join(s.env.Home, "outside")); err != nil || there == nil || !strings.Contains(r.Output, "may have stopped") {
			t.Errorf("%s, refused: %v %s", command, err, r.Output)
		}
	}
}

func TestRunningOutsideTheSandboxIsAlwaysAsked(t *testing.T) {
	s := boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxOn, AutoAllow: true})
	in := hidden(t, s, "#!/bin/sh\necho x >../outside\n")
	in["unsandboxed"] = true
	if _, err := s.call(in); err != nil {
		t.Fatal(err)
	}
	if len(s.asked) != 1 || !s.asked[0].MustAsk || s.asked[0].Always != nil || !strings.Contains(s.asked[0].Why, "outside the sandbox") {
		t.Errorf("%+v", s.asked)
	}
	if _, err := os.Stat(filepath.Join(s.env.Home, "outside")); err != nil {
		t.Error(err)
	}
	s.answer = permission.Reply{Kind: permission.Reject}
	if _, err := s.call(in); err == nil {
		t.Error("it ran though the person said no")
	}
}

func TestAskModeAsksAtOnceWhetherToLeave(t *testing.T) {
	s := boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxAsk})
	in := hidden(t, s, "#!/bin/sh\necho x >>../outside || exit 3\n")
	s.answer = permission.Reply{Kind: permission.Reject}
	r, err := s.call(in)
	if err != nil || !strings.Contains(r.Output, "exit code: 3") || len(s.asked) != 1 || !strings.HasPrefix(s.asked[0].Title, "Run again outside the sandbox") {
		t.Errorf("a no: %v %s %+v", err, r.Output, s.asked)
	}
	s.answer = permission.Reply{Kind: permission.Once}
	r, err = s.call(in)
	if err != nil || !strings.Contains(r.Output, "exit code: 0") || !strings.Contains(r.Output, "run again outside") || r.Metadata["sandbox"] != false {
		t.Errorf("a yes: %v %s %v", err, r.Output, r.Metadata)
	}
	if b, _ := os.ReadFile(filepath.Join(s.env.Home, "outside")); string(b) != "x\n" {
		t.Errorf("outside: %q", b)
	}
}

func TestWhatThePersonAllowedCanBeDoneInTheSandbox(t *testing.T) {
	s := boxedSession(t, `"ask"`, SandboxSettings{Mode: SandboxOn})
	if err := os.MkdirAll(filepath.Join(s.env.Home, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := s.call(map[string]any{"command": "echo x >../other/f && echo y >.envrc && echo z >>.git/config"})
	if err != nil || !strings.Contains(r.Output, "exit code: 0") || r.Metadata["sandbox"] != true {
		t.Errorf("%v %s", err, r.Output)
	}
	for p, want := range map[string]string{"../other/f": "x\n", ".envrc": "y\n", ".git/config": "z\n"} {
		if b, err := os.ReadFile(filepath.Join(s.env.Cwd, p)); err != nil || string(b) != want {
			t.Errorf("%s: %q %v", p, b, err)
		}
	}
}

func TestAutoAllowInTheSandbox(t *testing.T) {
	s := boxedSession(t, `{"bash": {"./gone.sh *": "ask", "make *": "deny"}}`, SandboxSettings{Mode: SandboxOn, AutoAllow: true})
	for command, asked := range map[string]int{
		"touch made":           0,
		"./run.sh":             0,
		"./gone.sh":            1, // a rule names it
		"echo x >../f":         1, // outside
		"$X made":              1, // not to be understood
		"echo x >.git/config":  1, // protected
		"echo x >.git/hooks/a": 1,
	} {
		hidden(t, s, "#!/bin/sh\n:")
		_, err := s.call(map[string]any{"command": command})
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		if n := len(s.asked); (n > 0) != (asked > 0) {
			t.Errorf("%s: asked %v", command, s.asks())
		}
		x := Explain(t.Context(), s.env, command, "", s.gate)
		if (x.Decision == "ask") != (asked > 0) {
			t.Errorf("%s: explain says %s", command, x.Decision)
		}
	}
	if _, err := s.call(map[string]any{"command": "make all"}); err == nil {
		t.Error("a denied command ran")
	}
}

// "permission": "auto": contained effects run, the others are asked, with their class in words.
func TestEffectsDecideInAuto(t *testing.T) {
	s := boxedSession(t, `{"bash": {"./gone.sh *": "ask", "make *": "deny"}}`, SandboxSettings{Auto: auto})
	for command, want := range map[string]string{
		"python3 -c 'open(\"made\", \"w\").write(\"x\")'": "", "node -p 1+1": "", "perl -pi -e s/a/b/ f": "", "python3 -c 'import shutil; shutil.rmtree(\"a\")'": "code that is given as text", "cat x | python3": "reads from its input", "make -f - <<'E'\nx:\nE": "",
		"touch made": "", "./run.sh": "", "mkdir -p a/b && echo x > a/b/c": "", "python3 run.py": "", "npm test": "", "git add -A": "", "go build ./...": "",
		"./gone.sh": "it runs", "rm made": "deletes", "rm -rf a": "deletes", "git reset --hard": "deletes", "git commit --amend": "forces", "git push": "reaches elsewhere", "npm install": "reaches elsewhere", "curl https://x.invalid": "reaches elsewhere",
		"sudo true": "lowers a protection", "echo x > ../f": "external_directory", "$X made": "which program", "find . -name x -delete": "deletes", "bash -c 'rm -rf a'": "deletes", "touch b && git clean -fdx": "deletes",
	} {
		x := Explain(t.Context(), s.env, command, "", s.gate)
		if (x.Decision == "ask") != (want != "") || !strings.Contains(x.Why, want) {
			t.Errorf("%s: %s, %q; want %q", command, x.Decision, x.Why, want)
		}
	}
	if x := Explain(t.Context(), s.env, "make all", "", s.gate); x.Decision != "deny" {
		t.Errorf("a denied command: %s", x.Decision)
	}
	none := func() sandbox.Support { return sandbox.Support{Why: "no Landlock"} }
	for _, settings := range []SandboxSettings{{Auto: auto, Support: none}, {Auto: auto, Mode: SandboxOff}} {
		s = boxedSession(t, `{}`, settings)
		if x := Explain(t.Context(), s.env, "touch made", "", s.gate); x.Decision != "ask" {
			t.Errorf("without a sandbox: %s", x.Decision)
		}
	}
}

func TestWithoutASandboxOnRunsNothingAndAskAsks(t *testing.T) {
	none := func() sandbox.Support { return sandbox.Support{Why: "no Landlock"} }
	s := boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxOn, Support: none})
	if _, err := s.call(map[string]any{"command": "touch made"}); err == nil || !strings.Contains(err.Error(), "no Landlock") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(s.env.Cwd, "made")); err == nil {
		t.Error("it ran")
	}
	s = boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxAsk, Support: none})
	if _, err := s.call(map[string]any{"command": "touch made"}); err != nil || len(s.asked) != 1 || !s.asked[0].MustAsk {
		t.Errorf("%v %+v", err, s.asked)
	}
}

func TestProtectedFilesThatComeIntoBeingAreTold(t *testing.T) {
	s := boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxOn})
	r, err := s.call(hidden(t, s, "#!/bin/sh\necho evil >.envrc\n"))
	if err != nil || !strings.Contains(r.Output, ".envrc was created") {
		t.Errorf("%v %s", err, r.Output)
	}
	if _, err := os.Stat(filepath.Join(s.env.Cwd, ".envrc")); err == nil {
		t.Error("it is still there")
	}
}

// The folder around a new worktree may be the home folder, which is never opened.
func TestAWorktreeBesideTheProject(t *testing.T) {
	s := boxedSession(t, `"allow"`, SandboxSettings{Mode: SandboxOn})
	git := func(line string) string {
		t.Helper()
		r, err := s.call(map[string]any{"command": "git -c user.name=n -c user.email=e@x " + line})
		if err != nil {
			t.Fatal(err)
		}
		return r.Output
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "one"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = s.env.Cwd
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if out := git("worktree add ../beside -b beside"); !strings.Contains(out, "exit code: 0") {
		t.Fatal(out)
	}
	if out := git("worktree add ../twice -b beside"); !strings.Contains(out, "already") {
		t.Error(out)
	}
	if _, err := os.Stat(filepath.Join(s.env.Home, "twice")); err == nil {
		t.Error("an empty folder was left behind")
	}
	if out := git("-C ../beside commit -q --allow-empty -m two"); !strings.Contains(out, "exit code: 0") {
		t.Error(out)
	}
}

func auto() bool { return true }

// Code as text runs without a question where the sandbox holds it: it changes the project, and reads neither keys nor what lies outside.
func TestCodeAsTextRunsInTheSandboxOnly(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	if !sandbox.Probe().Mounts {
		t.Skip("no sandbox here: no mounts of one's own")
	}
	for name, settings := range map[string]SandboxSettings{"by effects": {Auto: auto}, "in the project": {Mode: SandboxOn, AutoAllow: true}} {
		s := boxedSession(t, `{"bash": {"*": "ask", "python3 never *": "deny"}, "read": {"*": "allow", "*.env": "ask"}}`, settings)
		for path, text := range map[string]string{filepath.Join(s.env.Home, "diary.txt"): "private", filepath.Join(s.env.Cwd, ".env"): "KEY=private"} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		// The names are put together, so that nothing in the text looks like a place outside.
		command := `python3 -c "
open('made', 'w').write('x')
for name in ['.' + './diary.txt', '.' + 'e' + 'nv']:
    try:
        print(open(name).read())
    except OSError as e:
        print('kept:', name)
"`
		r, err := s.call(map[string]any{"command": command})
		if err != nil || len(s.asked) > 0 {
			t.Errorf("%s: %v, asked %v", name, err, s.asks())
		}
		if strings.Contains(r.Output, "private") || strings.Count(r.Output, "kept:") != 2 {
			t.Errorf("%s: %s", name, r.Output)
		}
		if got, err := os.ReadFile(filepath.Join(s.env.Cwd, "made")); err != nil || string(got) != "x" {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if _, err := s.call(map[string]any{"command": `python3 -c "import os; os.remove('made')"`}); err != nil || len(s.asked) != 1 {
			t.Errorf("%s: what deletes: %v, asked %v", name, err, s.asks())
		}
		// Where the sandbox cannot hide keys, the person is asked.
		plain := sandbox.Probe()
		plain.Mounts, plain.Netns, plain.Overlay = false, false, false
		s.env.Shell.Sandbox.Support = func() sandbox.Support { return plain }
		if x := Explain(t.Context(), s.env, command, "", s.gate); x.Decision != "ask" {
			t.Errorf("%s, without namespaces: %s %s", name, x.Decision, x.Why)
		}
	}
	s := boxedSession(t, `{}`, SandboxSettings{})
	if x := Explain(t.Context(), s.env, `python3 -c 'print(1)'`, "", s.gate); x.Decision != "ask" {
		t.Errorf("without the sandbox: %s", x.Decision)
	}
}

// A program that is given paths which cannot be said runs without a question where the sandbox holds it: it changes the project, and
// neither reads nor writes what lies outside.
func TestPathsThatCannotBeSaidRunInTheSandboxOnly(t *testing.T) {
	if !sandbox.Probe().Mounts {
		t.Skip("no sandbox here: no mounts of one's own")
	}
	for name, settings := range map[string]SandboxSettings{"by effects": {Auto: auto}, "in the project": {Mode: SandboxOn, AutoAllow: true}} {
		s := boxedSession(t, `{"bash": {"*": "ask", "rm *": "deny"}, "read": {"*": "allow", "*.env": "ask"}}`, settings)
		diary, used := filepath.Join(s.env.Home, "diary.txt"), filepath.Join(s.env.Cwd, "used.txt")
		for path, text := range map[string]string{diary: "private old", filepath.Join(s.env.Cwd, ".env"): "KEY=private", used: "old", filepath.Join(s.env.Cwd, "names"): "../diary.txt\n.env\n"} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, command := range []string{"grep -l old *.txt | xargs sed -i s/old/new/", "xargs cat < names", "xargs sed -i s/old/new/ < names", "d=$(dirname used.txt); cd $d && touch there"} {
			r, err := s.call(map[string]any{"command": command})
			if err != nil || len(s.asked) > 0 || strings.Contains(r.Output, "private") {
				t.Errorf("%s, %s: %v, asked %v: %s", name, command, err, s.asks(), r.Output)
			}
		}
		for path, want := range map[string]string{diary: "private old", used: "new", filepath.Join(s.env.Cwd, "there"): ""} {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s: %s: %q %v", name, path, got, err)
			}
		}
		if _, err := s.call(map[string]any{"command": "ls | xargs rm"}); err == nil {
			t.Errorf("%s: a denied program ran with paths that cannot be said", name)
		}
		for _, command := range []string{"cat names | xargs -I{} sh -c '{}'", "$(cat names)", "cat names | xargs env -S"} { // which program runs is not known
			if x := Explain(t.Context(), s.env, command, "", s.gate); x.Decision != "ask" {
				t.Errorf("%s: %s: %s", name, command, x.Decision)
			}
		}
		plain := sandbox.Probe()
		plain.Mounts, plain.Netns, plain.Overlay = false, false, false
		s.env.Shell.Sandbox.Support = func() sandbox.Support { return plain }
		if x := Explain(t.Context(), s.env, "xargs sed -i s/a/b/ < names", "", s.gate); x.Decision != "ask" {
			t.Errorf("%s, without namespaces: %s", name, x.Decision)
		}
	}
}
