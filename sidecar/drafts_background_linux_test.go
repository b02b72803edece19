package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/tools/draft"
	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// draftsOf lists a project's drafts as scripts read them.
func draftsOf(t *testing.T, dir string, env []string) (rows []draftRow) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "drafts", "list", "--json")
	cmd.Env, cmd.Dir = env, dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var r draftRow
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// pillionIn runs the program and returns all that it printed.
func pillionIn(dir string, env []string, args ...string) string {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Dir = env, dir
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// A run in the background ends with a proposal that waits. The project is not touched before, a draft that is worked in is neither landed
// nor dropped, and /drafts in a session lands it like pillion drafts.
func TestARunInTheBackgroundWaitsForItsReview(t *testing.T) {
	srv := wiretest.New(t)
	goOn := make(chan struct{})
	srv.Add(callStep("bash", `{"command":"echo two >> a.txt"}`), wiretest.Step{Text: "Done.", Wait: goOn})
	env := append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	began := time.Now()
	said := pillionIn(dir, env, "run", "--background", "--model", "anthropic/claude-sonnet-5-5", "add", "two")
	if !strings.Contains(said, "working in the background") {
		t.Fatalf("%s", said)
	}
	// waitFor lists until the drafts are so; each list is a process, so nothing spins.
	waitFor := func(what string, ok func([]draftRow) bool) []draftRow {
		t.Helper()
		for {
			rows := draftsOf(t, dir, env)
			if ok(rows) {
				return rows
			}
			if time.Since(began) > patience {
				log, _ := filepath.Glob(filepath.Join(filepath.Dir(strings.Fields(strings.Split(said, "\n")[1])[0]), "*.log"))
				text := read(t, log[0])
				t.Fatalf("no draft became %s: %+v\n%s", what, rows, text)
			}
		}
	}
	rows := waitFor("busy", func(rows []draftRow) bool { return len(rows) == 1 && rows[0].Busy && rows[0].Files == 1 })
	for _, what := range []string{"land", "drop"} {
		if said := pillionIn(dir, env, "drafts", what, rows[0].ID); !strings.Contains(said, "a session is working in this draft") {
			t.Errorf("%s: %s", what, said)
		}
	}
	close(goOn)
	rows = waitFor("proposed", func(rows []draftRow) bool {
		return len(rows) == 1 && rows[0].State == "proposed" && !rows[0].Busy
	})
	if got := read(t, filepath.Join(dir, "a.txt")); got != "one\n" {
		t.Errorf("the project was written: %q", got)
	}
	if rows[0].Size == 0 {
		t.Errorf("%+v", rows[0])
	}
	if said := pillionIn(dir, env, "run", "/drafts"); !strings.Contains(said, rows[0].ID) || !strings.Contains(said, "proposed, 1 file") {
		t.Errorf("/drafts: %s", said)
	}
	if said := pillionIn(dir, env, "run", "/drafts show "+rows[0].ID[:5]); !strings.Contains(said, "+two") {
		t.Errorf("/drafts show: %s", said)
	}
	if said := pillionIn(dir, env, "run", "--approve", "all", "/drafts land "+rows[0].ID); !strings.Contains(said, "written to the project") {
		t.Errorf("/drafts land: %s", said)
	}
	if got := read(t, filepath.Join(dir, "a.txt")); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if rows := draftsOf(t, dir, env); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

// Drafts side by side: each begins from the same tree, and each lands on what the ones before it and the person have made of it.
func TestDraftsSideBySide(t *testing.T) {
	env := draftEnv(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	var wait sync.WaitGroup
	for _, command := range []string{"sed -i s/2/two/ a.txt; echo x > x", "sed -i s/5/five/ a.txt; mkdir y; echo y > y/y", "sed -i s/8/eight/ a.txt; sed -i s/5/FIVE/ a.txt"} {
		wait.Go(func() { inDraft(t, dir, "none", env, command) })
	}
	wait.Wait()
	write(t, filepath.Join(dir, "a.txt"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	rows := draftsOf(t, dir, env)
	if len(rows) != 3 {
		t.Fatalf("%+v", rows)
	}
	for _, r := range rows {
		pillionIn(dir, env, "drafts", "land", r.ID, "--approve", "all", "--no-lsp")
	}
	got := read(t, filepath.Join(dir, "a.txt"))
	for _, want := range []string{"0\n1\ntwo\n3\n4\n", "\neight\n9\n", "<<<<<<< the project\n", "five\n", "FIVE\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if read(t, filepath.Join(dir, "x")) != "x\n" || read(t, filepath.Join(dir, "y", "y")) != "y\n" {
		t.Error("new files are missing")
	}
	if rows := draftsOf(t, dir, env); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

// Landing is killed in the middle: no file is torn, files are all old or all new, and landing again makes it whole, ignored output
// included.
func TestKilledWhileLanding(t *testing.T) {
	const runs, enough = 10, 3 // kills at most, and those that hit
	env := draftEnv(t)
	home := ""
	for _, e := range env {
		if rest, ok := strings.CutPrefix(e, "XDG_STATE_HOME="); ok {
			home = rest
		}
	}
	journal := filepath.Join(home, "pillion", "journal", "*.json")
	var b strings.Builder // written out: a loop is asked about, as nobody can say which files it writes
	for i := range 30 {
		fmt.Fprintf(&b, "sed -i 's/head/HEAD %d/' f%d; ", i, i+1)
	}
	b.WriteString("rm f31; mkdir n; rm -r out/old; mkdir -p out/d")
	for i := range 60 {
		fmt.Fprintf(&b, "; echo %d > n/%d; echo %d > out/d/%d", i, i, i, i)
	}
	commands := b.String()
	r := rand.New(rand.NewPCG(uint64(os.Getpid()), 23))
	hits := 0
	for run := 0; run < runs && hits < enough; run++ {
		dir := filepath.Join(t.TempDir(), "project")
		twin := dir + "-twin"
		if out, err := exec.Command("bash", "-c", `mkdir -p "$0/out/old" && cd "$0" && for i in $(seq 31); do (echo head; seq 2000) > f$i; done && echo out/ > .gitignore && echo o > out/old/o && cp -a "$0" "$1"`, dir, twin).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		if out, err := exec.Command("bash", "-c", "cd "+twin+"; "+commands).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		old, now := texts(t, dir), texts(t, twin)
		inDraft(t, dir, "none", env, commands)
		rows := draftsOf(t, dir, env)
		if len(rows) != 1 {
			t.Fatalf("%+v", rows)
		}
		cmd := exec.Command(os.Args[0], "drafts", "land", rows[0].ID, "--approve", "all", "--no-lsp")
		cmd.Env, cmd.Dir = env, dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killAfter(cmd, journal, time.Duration(r.Int64N(int64(12*time.Millisecond))))
		if !cmd.ProcessState.Success() {
			hits++
		}
		for name, text := range texts(t, dir) {
			if text != old[name] && text != now[name] && !strings.Contains(name, ".pillion") {
				t.Fatalf("run %d: %s is torn", run, name)
			}
		}
		// The next start ends what was begun, one way or the other, and the draft is still there unless all was done.
		said := ""
		for _, row := range draftsOf(t, dir, env) {
			said += pillionIn(dir, env, "drafts", "land", row.ID, "--approve", "all", "--no-lsp")
		}
		if rows := draftsOf(t, dir, env); len(rows) != 0 {
			t.Errorf("run %d: %+v\n%.2000s", run, rows, said)
		}
		sameTree(t, fmt.Sprintf("run %d: %.300s", run, said[max(0, len(said)-300):]), tree(t, twin, false), tree(t, dir, false))
		if t.Failed() {
			return
		}
	}
	if hits == 0 {
		t.Skip("no kill hit the landing")
	}
}

// Programs of MCP servers and of the person's own tools run in the draft's view: they see what was done there, and what they write waits
// for the decision. Each is asked about once, also where a rule allows the tool. A program that cannot be started there runs outside, after
// another question.
func TestProgramsOfToolsRunInTheDraft(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node on PATH")
	}
	server, err := filepath.Abs("../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server); err != nil {
		t.Skip("npm ci first: " + err.Error())
	}
	home, dir := t.TempDir(), t.TempDir()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	config, err := json.Marshal(map[string]any{"permission": map[string]string{"stamp": "allow", "fs_*": "allow"}, "mcp": map[string]any{"fs": map[string]any{"type": "local", "command": []string{node, server, dir}}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		".config/opencode/tools/stamp.ts": `import { tool } from "@opencode-ai/plugin"
import { appendFileSync } from "fs"
export default tool({ description: "Stamps.", args: {}, async execute() { appendFileSync("` + dir + `/a.txt", "stamp\n"); return "stamped" } })`,
		".config/pillion/pillion.jsonc": string(config),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(home, path), text)
	}
	env := append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_STATE_HOME="+home+"/state")
	// session makes calls one by one; before is called when each was answered, and at the end the input is closed.
	session := func(approve, review string, answered func(i int, a toolAnswer), calls ...string) (last toolAnswer) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--review", review, "--approve", approve)
		cmd.Env, cmd.Dir = env, dir
		var errs bytes.Buffer
		cmd.Stderr = &errs
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
		answers := json.NewDecoder(out)
		for i, call := range calls {
			if _, err := in.Write([]byte(call + "\n")); err != nil {
				t.Fatal(err)
			}
			var a toolAnswer
			if err := answers.Decode(&a); err != nil {
				t.Fatalf("%v %s", err, &errs)
			}
			answered(i, a)
		}
		in.Close()
		_ = answers.Decode(&last)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v %s", err, &errs)
		}
		return last
	}
	stamp, write := `{"tool":"stamp","input":{}}`, `{"tool":"fs_write_file","input":{"path":`+strconv.Quote(filepath.Join(dir, "b.txt"))+`,"content":"from fs\n"}}`
	session("none", "preview", func(_ int, a toolAnswer) {
		if a.Error != nil || !strings.Contains(a.Output, "stamped") {
			t.Errorf("in the project: %+v", a)
		}
	}, stamp)
	session("none", "draft", func(_ int, a toolAnswer) {
		if a.Error == nil || a.Error.Kind != "rejected" {
			t.Errorf("in a draft, refused: %+v", a)
		}
	}, stamp, write)
	if got := read(t, filepath.Join(dir, "a.txt")); got != "one\nstamp\n" {
		t.Fatalf("%q", got)
	}
	before := tree(t, dir, true)
	wants := []string{"", "stamped", "from bash\nstamp\n", "wrote", "from fs"}
	last := session("all", "draft", func(i int, a toolAnswer) {
		if a.Error != nil || !strings.Contains(a.Output, wants[i]) || strings.Contains(a.Output, "outside of the draft") {
			t.Errorf("call %d: %+v", i, a)
		}
		sameTree(t, "before the decision", before, tree(t, dir, true))
	}, `{"tool":"bash","input":{"command":"echo from bash >> a.txt"}}`, stamp, `{"tool":"fs_read_text_file","input":{"path":`+strconv.Quote(filepath.Join(dir, "a.txt"))+`}}`, write, `{"tool":"bash","input":{"command":"cat b.txt"}}`)
	if last.Error != nil || read(t, filepath.Join(dir, "a.txt")) != "one\nstamp\nfrom bash\nstamp\n" || read(t, filepath.Join(dir, "b.txt")) != "from fs\n" {
		t.Errorf("%+v %q", last, read(t, filepath.Join(dir, "a.txt")))
	}
}

// A turn that broke off leaves its draft, and the next prompt continues in it; not when the prompt was undone meanwhile.
func TestAnUndoneTurnsDraftIsSetAside(t *testing.T) {
	for _, undo := range []bool{false, true} {
		srv := wiretest.New(t)
		env := append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL())
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.txt"), "one\n")
		prompt := func(more ...string) string {
			return pillionIn(dir, env, append([]string{"run", "--model", "anthropic/claude-sonnet-5-5", "--review", "draft", "--approve", "all"}, more...)...)
		}
		srv.Add(callStep("bash", `{"command":"echo first > first.txt"}`), wiretest.Step{Error: &wiretest.Error{Status: 400, Type: "invalid_request_error", Message: "broken off"}})
		said := prompt("begin")
		if rows := draftsOf(t, dir, env); len(rows) != 1 || rows[0].State != "open" {
			t.Fatalf("%+v\n%s", rows, said)
		}
		if undo {
			said += prompt("--continue", "/undo")
		}
		srv.Add(callStep("bash", `{"command":"echo second > second.txt"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Done."})
		said += prompt("--continue", "go on")
		_, err := os.Stat(filepath.Join(dir, "first.txt"))
		if undo == (err == nil) {
			t.Errorf("undone: %v, first.txt: %v\n%s", undo, err, said)
		}
		if read(t, filepath.Join(dir, "second.txt")) != "second\n" {
			t.Errorf("%s", said)
		}
		if rows := draftsOf(t, dir, env); undo && (len(rows) != 1 || rows[0].State != "rejected") || !undo && len(rows) != 0 {
			t.Errorf("undone: %v: %+v", undo, rows)
		}
	}
}

// An editor that opens the session of a stopped turn again is told where its work is. The notice of the turn itself is not replayed, and after
// a kill there was none. When a later turn has landed the draft, nothing is said.
func TestAnEditorIsToldOfTheDraftOfAStoppedTurn(t *testing.T) {
	srv := wiretest.New(t)
	env := append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	prompt := func(more ...string) {
		pillionIn(dir, env, append([]string{"run", "--model", "anthropic/claude-sonnet-5-5", "--review", "draft", "--approve", "all"}, more...)...)
	}
	srv.Add(callStep("bash", `{"command":"echo first > first.txt"}`), wiretest.Step{Error: &wiretest.Error{Status: 400, Type: "invalid_request_error", Message: "broken off"}})
	prompt("begin")
	rows := draftsOf(t, dir, env)
	if len(rows) != 1 {
		t.Fatalf("%+v", rows)
	}
	load := func(until string) string {
		cmd := exec.Command(os.Args[0], "acp")
		cmd.Env, cmd.Dir, cmd.Stderr = env, dir, t.Output()
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
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"session":{"notices":{}}}}}`)
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`+"\n", rows[0].Session, dir)
		late := time.AfterFunc(patience, func() { _ = in.Close() }) // what should come does not
		defer late.Stop()
		var said strings.Builder
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), until) {
				_ = in.Close() // the rest still comes
			}
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v", err)
		}
		return said.String()
	}
	if said := load(`"sessionUpdate":"notice"`); strings.Count(said, "is kept in the draft "+rows[0].ID) != 1 {
		t.Errorf("the draft is not named once:\n%s", said)
	}
	srv.Add(callStep("bash", `{"command":"echo second > second.txt"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Done."})
	prompt("--continue", "go on")
	if said := load(`"available_commands_update"`); strings.Contains(said, "kept in the draft") || !strings.Contains(said, "go on") {
		t.Errorf("of no draft:\n%s", said)
	}
}

// A prompt that an editor sends right behind session/load finds the draft, although it is read at that moment for the notice. The draft is
// large, so that reading it takes longer than the model's answer.
func TestAPromptRightBehindTheOpeningContinuesTheDraft(t *testing.T) {
	srv := wiretest.New(t)
	env := append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	srv.Add(callStep("bash", `{"command":"for i in $(seq 4000); do echo $i > $i.txt; done"}`), wiretest.Step{Error: &wiretest.Error{Status: 400, Type: "invalid_request_error", Message: "broken off"}})
	pillionIn(dir, env, "run", "--model", "anthropic/claude-sonnet-5-5", "--review", "draft", "--approve", "all", "begin")
	rows := draftsOf(t, dir, env)
	if len(rows) != 1 {
		t.Fatalf("%+v", rows)
	}
	cmd := exec.Command(os.Args[0], "acp")
	cmd.Env, cmd.Dir, cmd.Stderr = env, dir, t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	srv.Add(callStep("bash", `{"command":"ls | wc -l"}`), wiretest.Step{Text: "Wait", Hang: true})
	asked := len(srv.Requests())
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"session":{"notices":{}}}}}`)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`+"\n", rows[0].Session, dir)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"count"}]}}`+"\n", rows[0].Session)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := srv.Await(ctx, asked+2); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = cmd.Wait()
	all := srv.Requests()
	if last := all[len(all)-1].Body; !bytes.Contains(last, []byte("4001")) {
		t.Errorf("the command did not work in the draft: %s", last)
	}
}

// What a turn leaves running lives through its repair, ends with it, and the next turn, which continues in the same draft, is told so.
func TestWhatATurnLeavesRunningEndsWithIt(t *testing.T) {
	srv := wiretest.New(t)
	env := append(draftEnv(t), "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL())
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	prompt := func(more ...string) string {
		return pillionIn(dir, env, append([]string{"run", "--model", "anthropic/claude-sonnet-5-5", "--review", "draft", "--approve", "all"}, more...)...)
	}
	srv.Add(callStep("bash", `{"command":"echo made > made.txt; while read -r x; do echo \"got $x\"; done","background":true,"description":"Serve"}`), callStep("bash_input", `{"id":"bg_1","text":"first\n"}`),
		wiretest.Step{Error: &wiretest.Error{Status: 400, Type: "invalid_request_error", Message: "broken off"}})
	said := prompt("serve")
	srv.Add(callStep("bash_output", `{"id":"bg_1"}`), callStep("bash", `{"command":"pgrep -f '[r]ead -r x' || echo nothing runs; cat made.txt"}`), wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Done."})
	said += prompt("--continue", "go on")
	told := ""
	for _, r := range srv.Requests() {
		for _, x := range r.Results() {
			told += x.Text + "\n"
		}
	}
	for _, want := range []string{"bash_kill ends it, and so does the end of the turn, as the draft does", "got first", "Commands of an earlier turn ended with it.", "nothing runs\nmade"} {
		if !strings.Contains(told, want) {
			t.Errorf("the model was not told %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", told, said)
	}
}

// What Git ignores in a draft is on no disk that the project's language servers see. Servers in the draft's view see it: their verdict is fresh,
// and they find declarations there. Without a sandbox none are started, and the verdict is partial and says why. In neither case does an import
// of it go back to the model as an error.
func TestIgnoredOutputIsSeenByServersInTheDraft(t *testing.T) {
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("gopls is not installed; run make setup-go")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module x\n\ngo 1.22\n")
	write(t, filepath.Join(dir, ".gitignore"), "gen/\n")
	write(t, filepath.Join(dir, "a.go"), "package x\n\nfunc A() int { return 1 }\n")
	out, srv := turnInDraft(t, dir, []string{"--approve", "all", "--trust", "--json"},
		callStep("bash", `{"command":"mkdir gen; printf 'package gen\\n\\n// One is one.\\nconst One = 1\\n' > gen/gen.go; printf 'package x\\n\\nimport \"x/gen\"\\n\\nfunc A() int { return gen.One }\\n' > a.go"}`),
		callStep("lsp", `{"operation":"goToDefinition","filePath":"a.go","line":5,"character":27}`),
		callStep("lsp", `{"operation":"findReferences","filePath":"gen/gen.go","line":4,"character":8}`),
		wiretest.Step{Text: "Done."}, wiretest.Step{Text: "Done."})
	told := ""
	for _, r := range srv.Requests() {
		if strings.Contains(r.LastText(), "Before the user is asked: the language servers") {
			t.Errorf("it went back to the model: %s", r.LastText())
		}
		for _, x := range r.Results() {
			told += x.Text + "\n"
		}
	}
	fresh, partial := strings.Contains(out, `"certainty":"fresh"`), strings.Contains(out, "do not see gen, which only the draft has")
	if usable := sandbox.Probe().Usable() && draft.Probe().View != draft.Copy; fresh != usable || partial == usable {
		t.Errorf("a sandbox: %v, fresh: %v, partial: %v\n%s", usable, fresh, partial, out)
	} else if usable && (!strings.Contains(told, "gen/gen.go:4") || !strings.Contains(told, "a.go:5")) {
		t.Errorf("the declaration and its use were not found:\n%s", told)
	}
	if got := read(t, filepath.Join(dir, "a.go")) + read(t, filepath.Join(dir, "gen", "gen.go")); !strings.Contains(got, "gen.One") || !strings.Contains(got, "One = 1") {
		t.Errorf("%s", got)
	}
}

// Without namespaces a draft is a copy under another path. The model and the person read the project's own; what stays in the copy is not
// asked about, and what is beside it, the draft's own data, is.
func TestADraftThatIsACopy(t *testing.T) {
	env := draftEnv(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	calls := func(approve string, lines ...string) (out []toolAnswer) {
		cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$0" "$@"`,
			os.Args[0], "tool", "call", "--jsonl", "--no-lsp", "--review", "draft", "--approve", approve, "--cwd", dir)
		cmd.Env, cmd.Dir, cmd.Stdin = env, dir, strings.NewReader(strings.Join(lines, "\n")+"\n")
		b, err := cmd.CombinedOutput()
		if err != nil && strings.Contains(string(b), "unshare:") {
			t.Skipf("no user namespace to forbid them in: %s", b)
		}
		for line := range strings.Lines(string(b)) {
			var a toolAnswer
			if json.Unmarshal([]byte(line), &a) == nil {
				out = append(out, a)
			}
		}
		return out
	}
	got := calls("none",
		`{"tool":"bash","input":{"command":"pwd; sed -i s/one/two/ `+dir+`/a.txt; cat a.txt"}}`,
		`{"tool":"write","input":{"filePath":"`+dir+`/b.txt","content":"new\n"}}`,
		`{"tool":"read","input":{"filePath":"b.txt"}}`,
		`{"tool":"bash","input":{"command":"echo x > ../draft.json"}}`)
	if len(got) != 5 {
		t.Fatalf("%+v", got)
	}
	for i := range 3 {
		if got[i].Error != nil {
			t.Errorf("call %d: %+v", i, got[i].Error)
		}
	}
	if got[3].Error == nil || got[3].Error.Kind != "rejected" {
		t.Errorf("the draft's own data: %+v", got[3])
	}
	if !strings.HasPrefix(got[0].Output, dir+"\ntwo\n") || !strings.Contains(got[2].Output, dir+"/b.txt") {
		t.Errorf("%q %q", got[0].Output, got[2].Output)
	}
	if text := read(t, filepath.Join(dir, "a.txt")); text != "one\n" {
		t.Errorf("the project was written: %q", text)
	}
	calls("all", `{"tool":"bash","input":{"command":"sed -i s/one/two/ a.txt; mkdir d; echo n > d/n"}}`)
	if text := read(t, filepath.Join(dir, "a.txt")) + read(t, filepath.Join(dir, "d", "n")); text != "two\nn\n" {
		t.Errorf("%q", text)
	}
}
