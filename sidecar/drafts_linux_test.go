package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/draft"
)

// tree is all that a folder holds: kinds, modes, contents, where links lead, and with times when it was written.
func tree(t *testing.T, root string, times bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		fi, err := e.Info()
		if err != nil || !times && (rel == ".git" || strings.HasPrefix(rel, ".git/")) {
			return err
		}
		what := fi.Mode().String()
		if times {
			what += fi.ModTime().Format(time.RFC3339Nano)
		}
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %q", b)
		case fi.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			what = "-> " + to
		}
		out[rel] = what
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func sameTree(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	for path, x := range want {
		if got[path] != x {
			t.Errorf("%s: %s is %q, want %q", what, path, got[path], x)
		}
	}
	for path, x := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%s: %s is %q, want nothing", what, path, x)
		}
	}
}

// inDraft makes calls in one draft, as a script does, and returns the lines that were printed.
func inDraft(t *testing.T, dir, approve string, env []string, steps ...string) []toolAnswer {
	t.Helper()
	return calledIn(t, dir, "draft", approve, env, steps...)
}

// calledIn makes calls in one session with a review style. A step is a command for the bash tool, or a call as a line of JSON.
func calledIn(t *testing.T, dir, review, approve string, env []string, steps ...string) []toolAnswer {
	t.Helper()
	var in bytes.Buffer
	for _, c := range steps {
		if strings.HasPrefix(c, "{\"tool\"") {
			in.WriteString(c + "\n")
		} else if err := json.NewEncoder(&in).Encode(map[string]any{"tool": "bash", "input": map[string]any{"command": c}}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--review", review, "--approve", approve, "--cwd", dir)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, dir, &in, &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var answers []toolAnswer
	for line := range strings.Lines(out.String()) {
		var a toolAnswer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		answers = append(answers, a)
	}
	return answers
}

func draftEnv(t *testing.T) []string {
	home := t.TempDir()
	cache, err := exec.Command("go", "env", "GOCACHE").Output() // a cold one would compile the standard library
	if err != nil {
		cache = []byte(home + "/go-build")
	}
	return append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "XDG_") }),
		"PILLION_TEST_MAIN=1", "GOCACHE="+strings.TrimSpace(string(cache)), "HOME="+home, "XDG_STATE_HOME="+home+"/state", "XDG_CONFIG_HOME="+home+"/config")
}

// What the calls of this test do to a project, in a draft and in a copy: commands, and edits by tools.
var draftSteps = []string{
	`{"tool":"write","input":{"filePath":"a.txt","content":"written\ntwo\n"}}`, `{"tool":"write","input":{"filePath":"w/deep/er.txt","content":"new\r\nlines"}}`,
	`{"tool":"edit","input":{"filePath":"a.txt","oldString":"two","newString":"zwei"}}`, `{"tool":"edit","input":{"filePath":"b/c.txt","oldString":"","newString":"over\n"}}`,
	`{"tool":"apply_patch","input":{"patchText":"*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+eins\n*** Add File: p/new.txt\n+patched\n*** Delete File: b/c.txt\n*** End Patch"}}`,
	`{"tool":"read","input":{"filePath":"a.txt"}}`, `{"tool":"read","input":{"filePath":"b/c.txt"}}`,
	"rm -rf b && echo file > b", "rm a.txt && mkdir -p a.txt/x && echo in > a.txt/x/y", "rm -rf b && ln -s out b", "chmod 700 b", "chmod -R go-rwx .", "rm link && mkdir link && echo l > link/l",
	"sed -i s/two/TWO/ a.txt", "echo more >> b/c.txt", "rm a.txt", "rm -rf b", "mv a.txt z.txt", "mkdir -p new/deep && echo n > new/deep/f", "cp -r b b2", "chmod 755 a.txt",
	"ln -s a.txt l", "rm -f link && echo plain > link", "printf '\\000\\001' > bin.dat", "mkdir -p out && echo o > out/o && echo log > x.log", "rm -rf out && mkdir out && echo again > out/p",
	"mkdir hollow", "rmdir empty", "printf 'no end' > a.txt", "git init -q . && git add -A", "truncate -s 0 b/c.txt", "touch a.txt", "rm -rf * ; echo all > only",
	"for i in 1 2 3; do echo $i > n$i; done; cat n1 n2 > n3", "tar cf t.tar b && rm -r b && tar xf t.tar && rm t.tar", "find . -name '*.txt' -exec sed -i s/e/E/g {} +",
}

// What commands try to get at the project past the draft. Each fails, or changes the draft only.
var hostileSteps = []string{
	"umount -l . ; umount -l \"$PWD\"; echo gone > a.txt", "unshare -Urm sh -c 'umount -l \"$PWD\"; cd \"$PWD\"; echo gone > a.txt'", "mount -t tmpfs none . ; echo gone > a.txt",
	"for p in /proc/[0-9]*; do echo gone > $p/root$PWD/a.txt; echo gone > $p/cwd/a.txt; done 2>/dev/null", "nsenter -t 1 -m sh -c \"echo gone > $PWD/a.txt\"",
	"(while :; do echo gone > a.txt; rm -rf b; done) >/dev/null 2>&1 & disown", "rm -rf \"$PWD\"; mkdir -p \"$PWD\"", "find . -mindepth 1 -delete", "chmod -R 000 .", "ln -s / root; echo gone > root$PWD/a.txt",
	"mkfifo pipe; mknod dev c 1 3; truncate -s 0 a.txt p", "touch -d 2001-01-01 a.txt p b/c.txt; mv a.txt b/ ; kill -9 -1",
}

// The promise of a draft, end to end: rejected, the tree is as it was to the times; accepted, it is what the commands make
// of a copy.
func TestADraftLandsAsACopyOrNotAtAll(t *testing.T) {
	env := draftEnv(t)
	for seed := range uint64(7) {
		r := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		project, twin := filepath.Join(dir, "project"), filepath.Join(dir, "twin")
		if out, err := exec.Command("bash", "-c", `mkdir -p "$0/b" "$0/empty" "$0/out" && cd "$0" && printf 'one\ntwo\nthree\n' > a.txt && echo c > b/c.txt && ln -s b/c.txt link && echo o > out/o &&
			printf 'out/\n*.log\n' > .gitignore && echo private > p && chmod 600 p && cp -a "$0" "$1"`, project, twin).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		var commands []string
		for range 6 {
			commands = append(commands, draftSteps[r.IntN(len(draftSteps))])
		}
		before := tree(t, project, true)
		hostile := slices.Clone(commands)
		for range 3 {
			hostile = slices.Insert(hostile, r.IntN(len(hostile)+1), hostileSteps[r.IntN(len(hostileSteps))])
		}
		inDraft(t, project, "none", env, hostile...)
		sameTree(t, fmt.Sprintf("seed %d, rejected, %q", seed, commands), before, tree(t, project, true))
		answers := inDraft(t, project, "all", env, commands...)
		calledIn(t, twin, "preview", "all", env, commands...)
		sameTree(t, fmt.Sprintf("seed %d, accepted, %q", seed, commands), tree(t, twin, false), tree(t, project, false))
		if t.Failed() {
			t.Logf("%+v", answers[len(answers)-1])
			return
		}
	}
}

// A draft that nobody answered for is listed, shown, landed on what the tree has become, and dropped.
func TestDraftsAreLandedLaterOnWhatTheTreeHasBecome(t *testing.T) {
	env := draftEnv(t)
	dir := t.TempDir()
	pillion := func(args ...string) string {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env, cmd.Dir = env, dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	write(t, filepath.Join(dir, "a.txt"), "1\n2\n3\n4\n5\n6\n7\n")
	write(t, filepath.Join(dir, "b.txt"), "same\n")
	inDraft(t, dir, "none", env, "sed -i s/2/two/ a.txt; sed -i s/same/draft/ b.txt")
	list := strings.Fields(pillion("drafts", "list"))
	if len(list) < 4 || list[1] != "rejected" || list[2] != "2" {
		t.Fatalf("%q", list)
	}
	if shown := pillion("drafts", "show", list[0]); !strings.Contains(shown, "-2\n+two\n") || !strings.Contains(shown, "+draft\n") {
		t.Errorf("%s", shown)
	}
	// The person continues: another line of one file, the same line of the other.
	write(t, filepath.Join(dir, "a.txt"), "1\n2\n3\n4\n5\n6\nseven\n")
	write(t, filepath.Join(dir, "b.txt"), "person\n")
	if said := pillion("drafts", "land", list[0], "--approve", "all", "--no-lsp"); !strings.Contains(said, "between conflict markers") {
		t.Errorf("%s", said)
	}
	if got := read(t, filepath.Join(dir, "a.txt")); got != "1\ntwo\n3\n4\n5\n6\nseven\n" {
		t.Errorf("%q", got)
	}
	if got := read(t, filepath.Join(dir, "b.txt")); got != "<<<<<<< the project\nperson\n=======\ndraft\n>>>>>>> the draft\n" {
		t.Errorf("%q", got)
	}
	if said := pillion("drafts", "list"); !strings.HasPrefix(said, "no drafts") {
		t.Errorf("%s", said)
	}
	// What cannot be landed because of what the person made meanwhile stays in the draft, and can be landed later.
	inDraft(t, dir, "none", env, "mkdir n && echo x > n/f && echo e > e.txt")
	list = strings.Fields(pillion("drafts", "list"))
	write(t, filepath.Join(dir, "n"), "a file\n")
	if said := pillion("drafts", "land", list[0], "--approve", "all", "--no-lsp"); !strings.Contains(said, "Not all of the draft could be landed. It is kept") || !strings.Contains(said, "n/f is not landed") {
		t.Errorf("%s", said)
	}
	if err := os.Remove(filepath.Join(dir, "n")); err != nil {
		t.Fatal(err)
	}
	pillion("drafts", "land", list[0], "--approve", "all", "--no-lsp")
	if got := read(t, filepath.Join(dir, "n/f")) + read(t, filepath.Join(dir, "e.txt")); got != "x\ne\n" {
		t.Errorf("%q", got)
	}
	if said := pillion("drafts", "list"); !strings.HasPrefix(said, "no drafts") {
		t.Errorf("%s", said)
	}
	inDraft(t, dir, "none", env, "rm a.txt")
	list = strings.Fields(pillion("drafts", "list"))
	// What the project had is lost: nothing can be proposed, and each command says so. It can still be dropped.
	for _, e := range env {
		if state, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			if err := os.RemoveAll(filepath.Join(state, "pillion/drafts", list[0], "base")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if said := pillion("drafts", "list"); !strings.Contains(said, "0 files, a part cannot be read") {
		t.Errorf("%s", said)
	}
	cmd := exec.Command(os.Args[0], "drafts", "land", list[0], "--approve", "all", "--no-lsp")
	cmd.Env, cmd.Dir = env, dir
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), list[0]+" could not be proposed: ") {
		t.Errorf("%v %s", err, out)
	}
	pillion("drafts", "drop", list[0])
	if said := pillion("drafts", "list"); !strings.HasPrefix(said, "no drafts") {
		t.Errorf("%s", said)
	}
}

// A line in a new .gitignore hides nothing that the project has: it is reviewed like everything else. What is new and ignored
// is asked about as a whole.
func TestADraftCannotHideChangesByIgnoringThem(t *testing.T) {
	env := draftEnv(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), "package main\n")
	answers := inDraft(t, dir, "all", env, "echo '*' > .gitignore; echo '// evil' >> main.go; echo made > made.txt; mkdir dep; echo d > dep/d")
	last := answers[len(answers)-1]
	if len(last.Changes) != 1 || !strings.Contains(last.Changes[0].Diff, "+// evil") {
		t.Errorf("the change of main.go was not shown: %+v", last)
	}
	if len(last.Changes) == 1 && !strings.Contains(last.Changes[0].Diff, "+*") {
		t.Error("the new .gitignore was not shown")
	}
	for _, whole := range []string{"made.txt (5 bytes)", "dep (1 file, 2 bytes)"} {
		if !strings.Contains(last.Output, whole) {
			t.Errorf("%q is not in %q", whole, last.Output)
		}
	}
}

// A command in a draft may be asked about for what it reaches outside, and then the answer is the person's.
func TestADraftAsksForWhatIsOutside(t *testing.T) {
	env := draftEnv(t)
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "a\n")
	answers := inDraft(t, dir, "none", env, "echo x > "+outside+"/f", "echo inside > b.txt && cat b.txt")
	if answers[0].Error == nil || answers[0].Error.Kind != "rejected" {
		t.Errorf("a write outside was not asked about: %+v", answers[0])
	}
	if answers[1].Error != nil || !strings.HasPrefix(answers[1].Output, "inside\n") {
		t.Errorf("a write inside the draft was asked about: %+v", answers[1])
	}
	if _, err := os.Stat(filepath.Join(outside, "f")); err == nil {
		t.Error("it was written")
	}
}

// Commands that work with a server are asked about in a draft, and have the network then, in the sandbox; and the model is offered to leave
// the sandbox for others. Without both a draft could not install a package.
func TestADraftReachesTheNetworkWhenAllowed(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "from the server") }))
	defer srv.Close()
	env := append(draftEnv(t), "NO_PROXY=*")
	dir := t.TempDir()
	command := "git ls-remote " + srv.URL + "/x.git; curl -s " + srv.URL
	answers := inDraft(t, dir, "none", env, command)
	if e := answers[0].Error; e == nil || e.Kind != "rejected" {
		t.Errorf("it was not asked about: %+v", answers[0])
	}
	answers = inDraft(t, dir, "all", env, command)
	if a := answers[0]; a.Error != nil || !strings.Contains(a.Output, "from the server") {
		t.Errorf("%+v", a)
	}
	// A program whose record says nothing of a network does not have it, until it leaves the sandbox.
	hidden := `python3 -c "import urllib.request as u;print(u.urlopen('` + srv.URL + `').read())"`
	in := func(more string) string {
		b, _ := json.Marshal(hidden)
		return `{"tool":"bash","input":{"command":` + string(b) + more + `}}` + "\n"
	}
	cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--review", "draft", "--approve", "all", "--cwd", dir)
	cmd.Env, cmd.Dir, cmd.Stdin = env, dir, strings.NewReader(in("")+in(`,"unsandboxed":true`))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n")
	if strings.Contains(lines[0], "from the server") || !strings.Contains(lines[1], "from the server") {
		t.Errorf("%s", out)
	}
}

// turnInDraft sends one prompt with a scripted model and returns what the program printed and what the model was sent.
func turnInDraft(t *testing.T, dir string, args []string, steps ...wiretest.Step) (string, *wiretest.Server) {
	t.Helper()
	srv := wiretest.New(t)
	srv.Add(steps...)
	cmd := exec.Command(os.Args[0], append([]string{"run", "--model", "anthropic/claude-sonnet-5-5", "--review", "draft"}, append(args, "go")...)...)
	cmd.Env, cmd.Dir = append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL()), dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out), srv
}

func callStep(tool, format string, a ...any) wiretest.Step {
	return wiretest.Step{Calls: []wiretest.Call{{Name: tool, Input: json.RawMessage(fmt.Sprintf(format, a...))}}}
}

// A turn edits, runs commands and edits again; it is one proposal, at its end.
func TestATurnInADraftIsOneProposal(t *testing.T) {
	steps := func() []wiretest.Step {
		return []wiretest.Step{
			callStep("read", `{"filePath":"a.txt"}`), callStep("bash", `{"command":"sed -i s/two/TWO/ a.txt; echo made > made.txt"}`), callStep("read", `{"filePath":"a.txt"}`),
			callStep("edit", `{"filePath":"a.txt","oldString":"three","newString":"THREE"}`), {Text: "Done."}, {Text: "Understood."},
		}
	}
	for approve, want := range map[string]string{"none": "one\ntwo\nthree\n", "all": "one\nTWO\nTHREE\n"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.txt"), "one\ntwo\nthree\n")
		out, srv := turnInDraft(t, dir, []string{"--approve", approve, "--json"}, steps()...)
		if got := read(t, filepath.Join(dir, "a.txt")); got != want {
			t.Errorf("%s: %q, want %q\n%s", approve, got, want, out)
		}
		if _, err := os.Stat(filepath.Join(dir, "made.txt")); (err == nil) != (approve == "all") {
			t.Errorf("%s: made.txt: %v", approve, err)
		}
		sets := map[string]bool{}
		for line := range strings.Lines(out) {
			var e struct {
				Type string
				Data struct{ Set struct{ ID string } }
			}
			if json.Unmarshal([]byte(line), &e) == nil && e.Type == "change" {
				sets[e.Data.Set.ID] = true
			}
		}
		if len(sets) != 1 {
			t.Errorf("%s: %d proposals, want one\n%s", approve, len(sets), out)
		}
		for _, r := range srv.Requests() {
			for _, x := range r.Results() {
				if x.Error {
					t.Errorf("%s: a call failed: %s", approve, x.Text)
				}
			}
		}
	}
}

// A draft that introduces errors goes back to the model before anybody is asked.
func TestADraftWithErrorsGoesBackToTheModelFirst(t *testing.T) {
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed; run make setup-go")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.22\n")
	write(t, filepath.Join(dir, "a.go"), "package x\n\nfunc A() int { return 1 }\n")
	_, srv := turnInDraft(t, dir, []string{"--approve", "all", "--trust"},
		callStep("bash", `{"command":"printf 'package x\\n\\nfunc B() int { return A(2) }\\n' > b.go"}`), wiretest.Step{Text: "Done."},
		callStep("bash", `{"command":"sed -i 's/A(2)/A()/' b.go"}`), wiretest.Step{Text: "Mended."}, wiretest.Step{Text: "Done."})
	told := ""
	for _, r := range srv.Requests() {
		told += r.LastText() + "\n"
	}
	if !strings.Contains(told, "Before the user is asked") || !strings.Contains(told, "b.go:3:") {
		t.Errorf("the model was told\n%s", told)
	}
	if got := read(t, filepath.Join(dir, "b.go")); !strings.Contains(got, "A()") {
		t.Errorf("%q", got)
	}
}

// The language servers answer about the draft: a declaration that only it has is found, renamed and its uses with it, and
// the project's documents are as they were.
func TestLanguageServersSeeTheDraft(t *testing.T) {
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed; run make setup-go")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.22\n")
	write(t, filepath.Join(dir, "a.go"), "package x\n\nfunc A() int { return 1 }\n")
	write(t, filepath.Join(dir, "b.go"), "package x\n\nfunc C() int { return A() }\n")
	_, srv := turnInDraft(t, dir, []string{"--approve", "all", "--trust"},
		callStep("bash", `{"command":"printf 'package x\\n\\n// moved down\\nfunc Fresh() int { return A() }\\n\\nfunc A() int { return 1 }\\n' > a.go"}`),
		callStep("lsp", `{"operation":"findReferences","filePath":"a.go","line":6,"character":6}`),
		callStep("lsp", `{"operation":"rename","filePath":"a.go","line":6,"character":6,"newName":"Renamed"}`),
		callStep("lsp", `{"operation":"diagnostics"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Done."})
	told := ""
	for _, r := range srv.Requests() {
		for _, x := range r.Results() {
			if x.Error {
				t.Errorf("a call failed: %s", x.Text)
			}
			told += x.Text + "\n"
		}
	}
	if !strings.Contains(told, "a.go:4:") {
		t.Errorf("the use that only the draft has was not found:\n%s", told)
	}
	if got := read(t, filepath.Join(dir, "a.go")) + read(t, filepath.Join(dir, "b.go")); strings.Count(got, "Renamed()") != 3 || strings.Contains(got, " A()") {
		t.Errorf("%s", got)
	}
}

// Tests that a change affects run in the draft: their failure goes back to the model, their success is in the proposal.
func TestAffectedTestsAreEvidence(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is not installed")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/x.y\n\ngo 1.22\n")
	for _, sub := range []string{"a", "b", "far"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "a", "a.go"), "package a\n\nfunc A() int { return 1 }\n")
	write(t, filepath.Join(dir, "b", "b.go"), "package b\n")
	write(t, filepath.Join(dir, "b", "b_test.go"), "package b_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/x.y/a\"\n)\n\nfunc TestA(t *testing.T) {\n\tif a.A() == 2 {\n\t\tt.Fatal(\"A is two\")\n\t}\n}\n")
	write(t, filepath.Join(dir, "far", "far_test.go"), "package far\n\nimport \"testing\"\n\nfunc TestFar(t *testing.T) { t.Fatal(\"is not affected\") }\n")
	out, srv := turnInDraft(t, dir, []string{"--approve", "all", "--json"},
		callStep("bash", `{"command":"sed -i 's/return 1/return 2/' a/a.go"}`), wiretest.Step{Text: "Done."},
		callStep("bash", `{"command":"sed -i 's/return 2/return 3/' a/a.go"}`), wiretest.Step{Text: "Mended."}, wiretest.Step{Text: "Done."})
	told := ""
	for _, r := range srv.Requests() {
		told += r.LastText() + "\n"
	}
	if !strings.Contains(told, "A is two") || strings.Contains(told, "is not affected") {
		t.Errorf("the model was told\n%s", told)
	}
	e := evidenceIn(t, out)
	if len(e.Checks) != 1 || e.Checks[0].Status != change.EvidencePassed || e.Checks[0].Stale || len(e.Checks[0].Tests) != 1 || e.Checks[0].Tests[0].Name != "TestA" || e.Attempts != 1 {
		t.Errorf("the proposal does not say so: %+v", e)
	}
	if got := read(t, filepath.Join(dir, "a", "a.go")); !strings.Contains(got, "return 3") {
		t.Errorf("%q", got)
	}
}

// The draft is made beside the model's answer, with the unsaved texts of that moment, and one that no call used leaves nothing.
func TestADraftIsReadyBeforeTheFirstCall(t *testing.T) {
	if s := draft.Probe(); s.View != draft.Overlay {
		t.Skip("a draft is a copy here, which is not made ahead: " + s.Why)
	}
	env := draftEnv(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	drafts := filepath.Join(strings.TrimPrefix(env[slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "XDG_STATE_HOME=") })], "XDG_STATE_HOME="), "pillion", "drafts")
	list := func() (ids []string) {
		entries, _ := os.ReadDir(drafts)
		for _, e := range entries {
			if _, err := os.Stat(filepath.Join(drafts, e.Name(), "draft.json")); err == nil {
				ids = append(ids, e.Name())
			}
		}
		return ids
	}
	for _, used := range []bool{false, true} {
		cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--review", "draft", "--approve", "all", "--cwd", dir)
		cmd.Env = env
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for end := time.Now().Add(patience); len(list()) == 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		ahead := list()
		if len(ahead) != 1 {
			t.Errorf("before the first call: %v", ahead)
		}
		if used {
			fmt.Fprintln(in, `{"tool":"write","input":{"filePath":"b.txt","content":"b\n"}}`)
			if line, err := lines.ReadString('\n'); err != nil || strings.Contains(line, `"error"`) {
				t.Errorf("%s %v", line, err)
			}
			if now := list(); !slices.Equal(now, ahead) {
				t.Errorf("the call made another draft: %v, then %v", ahead, now)
			}
		}
		in.Close()
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, rest)
		}
		if left, _ := os.ReadDir(drafts); len(left) != 0 || (len(rest) > 0) != used {
			t.Errorf("used %v: left %v, proposed %q", used, left, rest)
		}
	}
	if got := read(t, filepath.Join(dir, "b.txt")); got != "b\n" {
		t.Errorf("%q", got)
	}
}
