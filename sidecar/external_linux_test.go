package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coder "github.com/coder/acp-go-sdk"
	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// rider is a project, a person's settings with one external agent, and this program.
type rider struct {
	t            *testing.T
	dir          string
	by           []string // what starts Pillion, with its arguments; nil: nothing
	env          []string
	state, conf  string
	said, warned string // of the last run
	model        string // acp/fake
}

// newRider makes a project in which the agent acp/fake can be used. more are members of the agent's row, as JSON.
func newRider(t *testing.T, more string) *rider {
	r := &rider{t: t, dir: t.TempDir(), env: draftEnv(t), state: t.TempDir(), model: "acp/fake"}
	for _, e := range r.env {
		if home, ok := strings.CutPrefix(e, "XDG_CONFIG_HOME="); ok {
			r.conf = filepath.Join(home, "pillion", "pillion.jsonc")
		}
	}
	r.configure(more, "")
	write(t, filepath.Join(r.dir, "a.txt"), "one\n")
	if out, err := exec.Command("git", "-C", r.dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return r
}

// configure writes the person's settings.
func (r *rider) configure(row, rest string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.conf), 0o700); err != nil {
		r.t.Fatal(err)
	}
	self, state := string(mustJSON(os.Args[0])), string(mustJSON(r.state))
	write(r.t, r.conf, `{"lsp": false, `+rest+` "agents": {"fake": {"acp": [`+self+`], "env": {"FAKE_AGENT": "1", "FAKE_AGENT_STATE": `+state+`}, "folders": [`+state+`]`+row+`}}}`)
}

func (r *rider) command(approve string, args ...string) *exec.Cmd {
	argv := append(slices.Clone(r.by), append([]string{os.Args[0], "run", "--plain", "--trust", "--model", r.model, "--approve", approve}, args...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(r.env, "PILLION_TEST_RIDE="+r.dir), r.dir
	return cmd
}

// processes returns the command lines of the processes of command that still run, by id.
func (r *rider) processes() map[int]string {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[int]string{}
	for _, path := range all {
		environ, err := os.ReadFile(path) // it may have ended
		if err != nil || !bytes.Contains(environ, []byte("PILLION_TEST_RIDE="+r.dir+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			r.t.Fatal(err)
		}
		out[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	return out
}

// run runs prompts with the agent and returns the exit code.
func (r *rider) run(approve string, args ...string) int {
	r.t.Helper()
	cmd := r.command(approve, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	r.said, r.warned = out.String(), errs.String()
	return cmd.ProcessState.ExitCode()
}

func (r *rider) file(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return "(none)"
	}
	return string(b)
}

// wants reports texts that the last run did not print.
func (r *rider) wants(texts ...string) {
	r.t.Helper()
	for _, x := range texts {
		if !strings.Contains(r.said+r.warned, x) {
			r.t.Errorf("%q is missing in:\n%s\n---\n%s", x, r.said, r.warned)
		}
	}
}

// Whatever the agent does, by itself or through its client, nothing is in the project before it is accepted, and all of it afterwards.
func TestAnExternalAgentWorksInADraft(t *testing.T) {
	r := newRider(t, "")
	// What an agent writes by itself needs no round through Pillion; a write that comes all the same is a part of the draft.
	work := "offered\nself a.txt two\nwrite b.txt new\nread b.txt\nrun cat a.txt b.txt; echo log > c.txt\nsay done"
	before := tree(t, r.dir, true)
	r.run("none", work)
	sameTree(t, "rejected", before, tree(t, r.dir, true))
	r.wants("offered: read false, write false", `b.txt is "new\n"`, "exit 0: two\nnew", "done")
	if code := r.run("all", work); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if a, b, c := r.file("a.txt"), r.file("b.txt"), r.file("c.txt"); a != "two\n" || b != "new\n" || c != "log\n" {
		t.Errorf("%q %q %q\n%s%s", a, b, c, r.said, r.warned)
	}
}

// Where the system has no namespaces the draft is a copy, and the agent works in that.
func TestAnExternalAgentWorksInACopy(t *testing.T) {
	r := newRider(t, "")
	r.by = []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", `echo 0 > /proc/sys/user/max_user_namespaces && echo 0 > /proc/sys/user/max_mnt_namespaces && exec "$0" "$@"`}
	if out, err := exec.Command(r.by[0], append(slices.Clone(r.by[1:]), "true")...).CombinedOutput(); err != nil {
		t.Skipf("no user namespace to forbid them in: %s", out)
	}
	work := "self a.txt two\nwrite b.txt new\nsay done"
	r.run("none", work)
	if a, b := r.file("a.txt"), r.file("b.txt"); a != "one\n" || b != "(none)" {
		t.Errorf("rejected: %q %q", a, b)
	}
	if code := r.run("all", work); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if a, b := r.file("a.txt"), r.file("b.txt"); a != "two\n" || b != "new\n" {
		t.Errorf("accepted: %q %q\n%s%s", a, b, r.said, r.warned)
	}
}

// An agent that only asks its client is reviewed write by write, and the kernel keeps it to that.
func TestAnExternalAgentThatAsksItsClient(t *testing.T) {
	r := newRider(t, `, "edits": "client"`)
	r.run("none", "write b.txt new\nsay never said")
	if r.file("b.txt") != "(none)" {
		t.Errorf("written without approval: %s", r.file("b.txt"))
	}
	r.run("all", "offered\nread a.txt\nself a.txt two\nwrite b.txt new\nsay done")
	r.wants("offered: read true, write true", `a.txt is "one\n"`, "failed: open ", "done")
	if a, b := r.file("a.txt"), r.file("b.txt"); a != "one\n" || b != "new\n" {
		t.Errorf("%q %q\n%s%s", a, b, r.said, r.warned)
	}
	// In a draft too it has no other way to write.
	r.run("all", "--review", "draft", "offered\nwrite c.txt more\nsay done")
	r.wants("offered: read false, write true")
	if c := r.file("c.txt"); c != "more\n" {
		t.Errorf("%q\n%s%s", c, r.said, r.warned)
	}
}

// The agent's requests for permission are decided by Pillion's rules, and its own "always" is never chosen.
func TestAnExternalAgentAsksByPillionsRules(t *testing.T) {
	r := newRider(t, "")
	r.run("none", "ask-run curl http://127.0.0.1:9/x\nsay never said")
	r.wants("not allowed: curl")
	// What stays in the draft needs no question; what leaves it, and what the analysis cannot see through, does.
	r.run("none", "ask-run touch stays\nask-run ls\nsay done")
	r.wants("ran: a.txt\nstays", "done")
	for _, c := range []string{"touch " + filepath.Join(t.TempDir(), "x"), `eval "$(cat a.txt)"`} {
		r.run("none", "ask-run "+c)
		r.wants("not allowed: " + c)
	}
	if r.file("stays") != "(none)" {
		t.Error("a command reached the project")
	}
	r.configure("", `"sandbox": "off",`)
	r.run("none", "ask-run touch stays")
	r.wants("not allowed: touch stays")
	r.configure("", `"permission": {"bash": {"touch *": "allow", "rm *": "deny"}},`)
	r.run("none", "ask-run touch made\nask-run ls\nask-run-bare ls\nask-run rm -f a.txt\nask-run-bare rm -f a.txt\nsay done")
	r.wants("ran: a.txt\nmade", "not allowed: rm", "done")
	if r.file("made") != "(none)" || r.file("a.txt") != "one\n" {
		t.Error("a command reached the project")
	}
}

// What an agent runs in its client's terminals is a command of Pillion's, in a draft and outside: several run at once, one can be killed and
// keeps its output, and the agent is told why one was not run.
func TestAnExternalAgentsTerminals(t *testing.T) {
	for _, row := range []string{"", `, "edits": "client"`} {
		r := newRider(t, row)
		r.configure(row, `"permission": {"bash": {"rm *": "deny"}},`)
		r.run("all", "start sleep 0.1; echo first\nstart echo second; exit 3\nwait\nstart echo ready; sleep 600\nkill\nrun rm -f a.txt\nsay goes on")
		r.wants("exit 0: first", "exit 3: second", "signal SIGTERM: ready", "fake stopped this command.", "exit 126: A permission rule denies", "goes on")
		if strings.Contains(r.said, "by the user") {
			t.Errorf("%sthe user did nothing: %s", row, r.said)
		}
		if r.file("a.txt") != "one\n" {
			t.Errorf("%sa denied command ran", row)
		}
		outside := filepath.Join(t.TempDir(), "made")
		r.run("none", "run touch "+outside+"\nsay goes on")
		r.wants("exit 126: external_directory needs approval, but no user can answer", "goes on")
		if _, err := os.Stat(outside); err == nil {
			t.Errorf("%s%s%s", row, r.said, r.warned)
		}
		cmd := r.command("all", "start echo ready; sleep 600\nhang")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until(t, out, "hanging")
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		if left := r.processes(); len(left) > 0 {
			t.Errorf("%sprocesses are left: %v", row, left)
		}
	}
}

// A dead agent says why, and the next prompt goes on with the conversation that it had.
func TestAnExternalAgentDiesAndComesBack(t *testing.T) {
	r := newRider(t, "")
	if code := r.run("all", "say hello\ndie"); code == 0 {
		t.Error("the run succeeded")
	}
	r.wants("hello", "fake stopped (exit status 3: fatal: out of cheese)")
	r.run("all", "--continue", "recall")
	r.wants("I remember 3 lines")
	if strings.Contains(r.said, "replayed") {
		t.Errorf("the replay was shown:\n%s", r.said)
	}
}

// Ctrl+C cancels the agent's own turn: it is told, nothing of it reaches the project, and the conversation goes on.
func TestAnExternalAgentIsCancelled(t *testing.T) {
	r := newRider(t, "")
	cmd, out := r.hanging()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil {
		t.Error("a cancelled run succeeded")
	}
	if _, err := os.Stat(filepath.Join(r.state, "cancelled")); err != nil {
		t.Errorf("the agent was not told: %v", err)
	}
	if got := r.file("a.txt"); got != "one\n" {
		t.Errorf("a.txt is %q", got)
	}
	r.run("all", "--continue", "recall")
	r.wants("I remember 3 lines") // the two of the cancelled prompt and this one
}

// When the sidecar is killed, the agent ends with it, the project is as it was, and the next start says what happened.
func TestAnExternalAgentEndsWithItsSidecar(t *testing.T) {
	r := newRider(t, "")
	before := tree(t, r.dir, true)
	cmd, _ := r.hanging()
	r.kill(cmd)
	sameTree(t, "killed", before, tree(t, r.dir, true))
	r.run("none", "--continue", "say back")
	r.wants(afterKill, "back")
}

// afterKill is what a person reads when a session is opened whose turn a kill cut off.
const afterKill = "Pillion ended in the middle of this turn"

// kill kills a run with SIGKILL and waits until each process that it had started has ended too.
func (r *rider) kill(cmd *exec.Cmd) {
	r.t.Helper()
	type end struct {
		fd   int
		line string
	}
	var ends []end
	for pid, line := range r.processes() {
		// A descriptor, because after the kill an id could be another process's.
		if fd, err := unix.PidfdOpen(pid, 0); err == nil && pid != cmd.Process.Pid {
			ends = append(ends, end{fd, line})
		}
	}
	if len(ends) == 0 {
		r.t.Error("no process of the agent was found")
	}
	if err := cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, e := range ends {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}}, 30_000); n != 1 || err != nil {
			r.t.Errorf("it still runs: %s", e.line)
		}
		_ = unix.Close(e.fd)
	}
}

// Of a proposal with two hunks one is rejected with words: the other is written, and the agent reads the words.
func TestAnExternalAgentIsAcceptedInPart(t *testing.T) {
	r := newRider(t, "")
	r.rejectFirst(`run printf "ONE\n-\nTWO\n" > a.txt` + "\nsay done")
}

// rejectFirst prompts the agent, which must change "one" and "two" of a.txt into capitals, in an editor whose person rejects the first hunk.
func (r *rider) rejectFirst(prompt string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	write(r.t, filepath.Join(r.dir, "a.txt"), "one\n-\ntwo\n")
	e, conn, end := r.editor(ctx)
	defer end()
	made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: r.dir, McpServers: []coder.McpServer{}})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.SetSessionConfigOption(ctx, coder.SetSessionConfigOptionRequest{ValueId: &coder.SetSessionConfigOptionValueId{SessionId: made.SessionId, ConfigId: "model", Value: coder.SessionConfigValueId(r.model)}}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: made.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock(prompt)}}); err != nil {
		r.t.Fatal(err)
	}
	e.mu.Lock()
	decided := e.decided
	e.mu.Unlock()
	if got := r.file("a.txt"); got != "one\n-\nTWO\n" || decided != 2 {
		r.t.Errorf("%q after decisions about %d hunks", got, decided)
	}
}

// firstStays is what the person of rejectFirst says about the first hunk.
const firstStays = "the first line stays small"

// hanging starts a run whose agent has changed a.txt in its draft and goes on until it is stopped. out is what the run prints from then on.
func (r *rider) hanging() (cmd *exec.Cmd, out io.Reader) {
	r.t.Helper()
	cmd = r.command("all", "self a.txt two\nhang")
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, out, "hanging")
	return cmd, out
}

// until reads a program's output until it has said a text.
func until(t *testing.T, out io.Reader, text string) {
	t.Helper()
	var said strings.Builder
	for from := bufio.NewReader(out); !strings.Contains(said.String(), text); {
		b, err := from.ReadByte()
		if err != nil {
			t.Fatalf("it ended by itself (%v): %s", err, said.String())
		}
		said.WriteByte(b)
	}
}

// The agent is lent what the language servers know, in its own draft, behind a token, as a part of its own call.
func TestAnExternalAgentIsLentTools(t *testing.T) {
	if _, err := exec.LookPath("gopls"); err != nil {
		t.Skip("needs gopls")
	}
	r := newRider(t, "")
	b, err := os.ReadFile(r.conf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.conf, strings.Replace(string(b), `"lsp": false, `, "", 1))
	write(t, filepath.Join(r.dir, "go.mod"), "module example.com/m\n\ngo 1.22\n")
	write(t, filepath.Join(r.dir, "a.go"), "package m\n\nfunc Double(n int) int { return 2 * n }\n")
	r.run("none", "tools\nself b.go package m; var X int = Double(\"two\")\nlent verdict {}\nlent symbol_references {\"symbol\":\"Double\",\"filePath\":\"a.go\"}\nlent symbol_read {\"symbol\":\"Double\",\"filePath\":\"a.go\"}\nlent symbol_replace {\"symbol\":\"Double\",\"filePath\":\"a.go\",\"body\":\"func Double(s string) int { return 2 * len(s) }\"}\nlent verdict {}\nlent-keyless verdict {}")
	r.wants("tool lsp", "tool symbol_rename", "tool verdict", "introduces 1", "b.go", "symbol_replace says: ", "introduces 0", "failed: ", "Unauthorized")
	if strings.Contains(r.said, "tool bash") || strings.Contains(r.said, "✓ symbol_") || strings.Contains(r.said, "✓ verdict") {
		t.Errorf("more than is lent, or a second card: %s", r.said)
	}
	if r.file("b.go") != "(none)" || strings.Contains(r.file("a.go"), "string") {
		t.Error("a lent tool wrote into the project")
	}
}

// What an agent lets a person choose is in the editor's menu: a choice is told to it, and to the next process of its conversation.
func TestAnExternalAgentsMenu(t *testing.T) {
	r := newRider(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	session := ""
	for _, told := range [][]string{{"mode code, effort low", "agent.mode code", "agent.effort low"}, {"mode plan, effort high"}} {
		e, conn, end := r.editor(ctx)
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		if session == "" {
			made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: r.dir, McpServers: []coder.McpServer{}})
			check(err)
			session = string(made.SessionId)
		} else {
			loaded, err := conn.LoadSession(ctx, coder.LoadSessionRequest{SessionId: coder.SessionId(session), Cwd: r.dir, McpServers: []coder.McpServer{}})
			check(err)
			if got := chosen(loaded.ConfigOptions); got["agent.mode"] != "plan" || got["agent.effort"] != "high" {
				t.Errorf("after loading: %v", got)
			}
		}
		set := func(option, value string) map[string]string {
			t.Helper()
			all, err := conn.SetSessionConfigOption(ctx, coder.SetSessionConfigOptionRequest{ValueId: &coder.SetSessionConfigOptionValueId{SessionId: coder.SessionId(session), ConfigId: coder.SessionConfigId(option), Value: coder.SessionConfigValueId(value)}})
			check(err)
			return chosen(all.ConfigOptions)
		}
		prompt := func(text string) {
			t.Helper()
			_, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: coder.SessionId(session), Prompt: []coder.ContentBlock{coder.TextBlock(text)}})
			check(err)
		}
		set("model", "acp/fake")
		prompt("chosen")
		e.await(t, ctx, told...)
		set("agent.effort", "high")
		if got := set("agent.mode", "plan"); got["agent.mode"] != "plan" || got["agent.effort"] != "high" {
			t.Errorf("after choosing: %v", got)
		}
		if _, err := conn.SetSessionConfigOption(ctx, coder.SetSessionConfigOptionRequest{ValueId: &coder.SetSessionConfigOptionValueId{SessionId: coder.SessionId(session), ConfigId: "agent.effort", Value: "huge"}}); err == nil {
			t.Error("a value that is not offered was taken")
		}
		prompt("chosen")
		e.await(t, ctx, "mode plan, effort high", "agent.mode plan")
		end()
	}
}

// Several agents work at once in one sidecar, each in a draft of its own: two rows, and one of them in two sessions. Each is in the middle of
// its turn while the others are; none sees what another has not landed, and all of it lands.
func TestSeveralExternalAgentsAtOnce(t *testing.T) {
	r := newRider(t, "")
	r.configure(fmt.Sprintf(`}, "other": {"acp": [%s], "env": {"FAKE_AGENT": "1", "FAKE_AGENT_STATE": %[2]s}, "folders": [%[2]s]`, mustJSON(os.Args[0]), mustJSON(r.state)), "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, conn, end := r.editor(ctx)
	defer end()
	models := []string{"acp/fake", "acp/other", "acp/fake"}
	var wg sync.WaitGroup
	for i, model := range models {
		made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: r.dir, McpServers: []coder.McpServer{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.SetSessionConfigOption(ctx, coder.SetSessionConfigOptionRequest{ValueId: &coder.SetSessionConfigOptionValueId{SessionId: made.SessionId, ConfigId: "model", Value: coder.SessionConfigValueId(model)}}); err != nil {
			t.Fatal(err)
		}
		// Each agent waits until all have begun, and then lists the files that it sees.
		here := filepath.Join(r.state, "here")
		work := fmt.Sprintf("self %d.txt mine\nrun touch %s%[1]d; until [ -e %[2]s0 ] && [ -e %[2]s1 ] && [ -e %[2]s2 ]; do sleep 0.01; done; echo *.txt > seen%[1]d\nsay agent %[1]d is done\n", i, here)
		wg.Go(func() {
			if _, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: made.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock(work)}}); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	e.await(t, ctx, "agent 0 is done", "agent 1 is done", "agent 2 is done")
	for i := range models {
		if got := r.file(fmt.Sprintf("%d.txt", i)); got != "mine" && got != "mine\n" {
			t.Errorf("%d.txt: %q", i, got)
		}
		if got, want := strings.TrimSpace(r.file(fmt.Sprintf("seen%d", i))), fmt.Sprintf("%d.txt a.txt", i); got != want {
			t.Errorf("agent %d saw %q, want %q", i, got, want)
		}
	}
}

// An agent that would decide itself which commands run begins in its mode that asks; another agent with a mode of that name does not.
func TestAnExternalAgentBeginsInAModeThatAsks(t *testing.T) {
	r := newRider(t, "")
	claude := filepath.Join(t.TempDir(), "claude-agent-acp")
	if err := os.Symlink(os.Args[0], claude); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, mode, want string }{{claude, "auto", "mode default,"}, {claude, "plan", "mode plan,"}, {os.Args[0], "auto", "mode auto,"}} {
		write(t, r.conf, fmt.Sprintf(`{"lsp": false, "agents": {"fake": {"acp": [%q], "env": {"FAKE_AGENT": "1", "FAKE_AGENT_MODE": %q}}}}`, c.program, c.mode))
		r.run("all", "chosen")
		r.wants(c.want)
	}
}

// An editor that starts `pillion acp --agent-command` has that agent in new sessions.
func TestAnAgentByCommandLine(t *testing.T) {
	r := newRider(t, "")
	if err := os.Remove(r.conf); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// By another path and as a part of a line it is still Codex, with what is known of that: the variables of its sign-in, its own folder, and
	// no sandbox of its own inside of Pillion's.
	codex := filepath.Join(t.TempDir(), "codex-acp")
	if err := os.Symlink(os.Args[0], codex); err != nil {
		t.Fatal(err)
	}
	codexHome := filepath.Join(r.state, ".codex") // a folder whose name begins with a dot
	r.env = append(r.env, "OPENAI_API_KEY=codex-key", "OTHER_API_KEY=other-key", "CODEX_HOME="+codexHome)
	for _, c := range []struct {
		program, prompt string
		want            []string
	}{
		{os.Args[0], "say it is me\nenv OPENAI_API_KEY\nenv INITIAL_AGENT_MODE", []string{"it is me", "OPENAI_API_KEY=\n", "INITIAL_AGENT_MODE=\n"}},
		{codex, "env OPENAI_API_KEY\nenv OTHER_API_KEY\nenv INITIAL_AGENT_MODE", []string{"OPENAI_API_KEY=codex-key", "OTHER_API_KEY=\n", "INITIAL_AGENT_MODE=agent-full-access"}},
	} {
		e, conn, end := r.editor(ctx, "--agent-command", "env FAKE_AGENT=1 '"+c.program+"'")
		made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: r.dir, McpServers: []coder.McpServer{}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: made.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock(c.prompt)}}); err != nil {
			t.Fatal(err)
		}
		e.await(t, ctx, c.want...)
		end()
	}
	if info, err := os.Stat(codexHome); err != nil || !info.IsDir() {
		t.Errorf("its own folder: %v", err)
	}
}

// editor starts `pillion acp` in the trusted project for an editor over another implementation of the protocol. end waits until it has ended.
func (r *rider) editor(ctx context.Context, args ...string) (e *menuEditor, conn *coder.ClientSideConnection, end func()) {
	r.t.Helper()
	trust := exec.Command(os.Args[0], "trust", r.dir)
	trust.Env = r.env
	if out, err := trust.CombinedOutput(); err != nil {
		r.t.Fatalf("%v %s", err, out)
	}
	cmd := exec.Command(os.Args[0], append([]string{"acp"}, args...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = r.env, r.dir, r.t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	e = &menuEditor{more: make(chan struct{})}
	conn = coder.NewClientSideConnection(e, in, out)
	hunks := coder.ClientCapabilities{Meta: map[string]any{"pillion": map[string]any{"hunks": true}}}
	if _, err = conn.Initialize(ctx, coder.InitializeRequest{ProtocolVersion: coder.ProtocolVersionNumber, ClientCapabilities: hunks}); err != nil {
		r.t.Fatal(err)
	}
	return e, conn, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// chosen are the present values of options.
func chosen(list []coder.SessionConfigOption) map[string]string {
	out := map[string]string{}
	for _, o := range list {
		if o.Select != nil {
			out[string(o.Select.Id)] = string(o.Select.CurrentValue)
		}
	}
	return out
}

// menuEditor is an editor that remembers what the agent said, and the options that it was told of as lines. Its person allows everything, but
// rejects the first hunk of a proposal that has several.
type menuEditor struct {
	coder.Client // what is not needed

	rejects bool // its person rejects everything, without words; set before the first prompt

	mu      sync.Mutex
	more    chan struct{} // guarded by mu; closed and replaced with each update
	said    strings.Builder
	decided int // guarded by mu; hunks of the proposals of which the first was rejected
}

func (e *menuEditor) RequestPermission(_ context.Context, p coder.RequestPermissionRequest) (coder.RequestPermissionResponse, error) {
	var about struct {
		Pillion struct {
			Files []struct{ Hunks []struct{ ID string } }
		}
	}
	if err := json.Unmarshal(mustJSON(p.ToolCall.Meta), &about); err != nil {
		return coder.RequestPermissionResponse{}, err
	}
	if e.rejects {
		i := slices.IndexFunc(p.Options, func(o coder.PermissionOption) bool { return o.Kind == coder.PermissionOptionKindRejectOnce })
		return coder.RequestPermissionResponse{Outcome: coder.NewRequestPermissionOutcomeSelected(p.Options[i].OptionId)}, nil
	}
	out := coder.NewRequestPermissionOutcomeSelected("once")
	if f := about.Pillion.Files; len(f) > 0 && len(f[0].Hunks) > 1 {
		first := map[string]any{f[0].Hunks[0].ID: map[string]any{"decision": "reject", "comment": firstStays}}
		out.Selected.Meta = map[string]any{"pillion": map[string]any{"hunks": first}}
		e.mu.Lock()
		e.decided += len(f[0].Hunks)
		e.mu.Unlock()
	}
	return coder.RequestPermissionResponse{Outcome: out}, nil
}

// await waits until the editor was told texts: an answer may overtake the updates before it.
func (e *menuEditor) await(t *testing.T, ctx context.Context, texts ...string) {
	t.Helper()
	for {
		e.mu.Lock()
		said, more := e.said.String(), e.more
		e.mu.Unlock()
		if !slices.ContainsFunc(texts, func(x string) bool { return !strings.Contains(said, x) }) {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%q is missing in %q", texts, said)
		}
	}
}

func (e *menuEditor) SessionUpdate(_ context.Context, n coder.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := n.Update.AgentMessageChunk; c != nil && c.Content.Text != nil {
		e.said.WriteString(c.Content.Text.Text)
	}
	if o := n.Update.ConfigOptionUpdate; o != nil {
		for id, value := range chosen(o.ConfigOptions) {
			e.said.WriteString(id + " " + value + "\n")
		}
	}
	close(e.more)
	e.more = make(chan struct{})
	return nil
}

// A draft that is rejected without words ends the turn: the model is not asked again, and reads of the rejection with the next prompt.
func TestARejectedDraftEndsTheTurn(t *testing.T) {
	srv := wiretest.New(t)
	r := newRider(t, "")
	r.env = append(r.env, "NO_PROXY=*", "ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL="+srv.AnthropicURL(), "PILLION_MODEL=anthropic/claude-sonnet-5-5")
	r.configure("", `"review": "draft", "repair_rounds": 0,`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, conn, end := r.editor(ctx)
	defer end()
	e.rejects = true
	made, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: r.dir, McpServers: []coder.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	prompt := func(text string) {
		t.Helper()
		if _, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: made.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock(text)}}); err != nil {
			t.Fatal(err)
		}
	}
	srv.Add(callStep("bash", `{"command":"echo two > a.txt"}`), wiretest.Step{Text: "It is two."})
	prompt("make it two")
	if n, got := len(srv.Requests()), r.file("a.txt"); n != 2 || got != "one\n" {
		t.Errorf("%d requests, a.txt is %q", n, got)
	}
	srv.Add(wiretest.Step{Text: "I know."})
	prompt("go on")
	all := srv.Requests()
	if last := all[len(all)-1].Body; !bytes.Contains(last, []byte("The user rejected your proposal")) || len(all) != 3 {
		t.Errorf("%d requests, the last: %s", len(all), last)
	}
}

// Without a way to load a conversation the new process is told in words what was said.
func TestAnExternalAgentIsToldWhatWasSaid(t *testing.T) {
	r := newRider(t, "")
	b, err := os.ReadFile(r.conf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.conf, strings.Replace(string(b), `, "FAKE_AGENT_STATE": `+string(mustJSON(r.state)), "", 1))
	r.run("all", "say the word is fish")
	r.run("all", "--continue", "say second")
	// The transcript is part of the prompt, whose lines the agent carries out: it says the first line again.
	if n := strings.Count(r.said, "the word is fish"); n == 0 {
		t.Errorf("%s%s", r.said, r.warned)
	}
}

// Its environment has no keys but those that it is given, signing in is the maker's business, and an untrusted folder starts no agent.
func TestAnExternalAgentsSurroundings(t *testing.T) {
	r := newRider(t, `, "keys": ["FAKE_API_KEY"]`)
	r.env = append(r.env, "FAKE_API_KEY=mine", "OTHER_API_KEY=not-mine")
	r.run("all", "env FAKE_API_KEY\nenv OTHER_API_KEY\nplan think hard")
	r.wants("FAKE_API_KEY=mine", "OTHER_API_KEY=\n")
	if strings.Contains(r.said, "not-mine") {
		t.Error("a key was handed on")
	}
	r.env = append(r.env, "FAKE_AGENT_SIGNED_OUT=1")
	r.configure(`, "sign_in": "fake login"`, "")
	r.run("all", "say hello")
	r.wants("fake needs you to sign in: run fake login in a terminal")
	cmd := exec.Command(os.Args[0], "run", "--plain", "--model", "acp/fake", "--approve", "all", "say hello")
	cmd.Env, cmd.Dir = r.env, r.dir
	out, _ := cmd.CombinedOutput()
	if !bytes.Contains(out, []byte("is not trusted, and agents run what a project configures for them")) {
		t.Errorf("%s", out)
	}
}

// pillion agents: what is there, adding one, and trying it.
// What a person reads who has made a mistake with an agent says what to do.
func TestAgentsThatCannotBeUsed(t *testing.T) {
	r := newRider(t, "")
	bin := t.TempDir()
	write(t, filepath.Join(bin, "plain"), "#!/bin/sh\n")
	// Each answers the first request with one line, in which ID is the request's.
	answers := func(line string) string {
		return `["/bin/sh", "-c", ` + string(mustJSON(`read l; id=$(printf %s "$l" | sed 's/.*"id":\([0-9]*\).*/\1/'); printf '%s\n' '`+line+`' | sed "s/ID/$id/"; read l`)) + `]`
	}
	rows := map[string]string{
		"missing": `["no-such-agent-program", "--acp"]`,
		"absent":  `["` + bin + `/absent"]`,
		"folder":  `["` + bin + `"]`,
		"plain":   `["` + bin + `/plain"]`,
		"usage":   `["/bin/sh", "-c", "echo 'error: unknown option --acp' >&2; echo 'usage: agent [--stdio]' >&2; exit 2"]`,
		"newer":   answers(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":2}}`),
		"tools":   answers(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18"}}`),
		"other":   answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`),
		"locked":  answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"Authentication required"}}`),
		"keyless": answers(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"set STRANGER_API_KEY or UNSET_API_KEY"}}`),
		"state":   `["/bin/sh", "-c", "echo \"Error: ENOENT: no such file or directory, mkdir '$HOME/.stranger/x'\" >&2; exit 1"]`,
	}
	var list []string
	for id, argv := range rows {
		list = append(list, fmt.Sprintf(`%q: {"acp": %s}`, id, argv))
	}
	write(t, r.conf, `{"lsp": false, "agents": {`+strings.Join(list, ", ")+`}}`)
	r.env = append(r.env, "STRANGER_API_KEY=secret-of-mine")
	pillion := func(args ...string) string {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env, cmd.Dir = r.env, r.dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for id, want := range map[string]string{
		"missing": "no-such-agent-program was not found on PATH; install it, or correct agents.missing.acp in your settings",
		"absent":  bin + "/absent does not exist; correct agents.absent.acp in your settings",
		"folder":  bin + " is a folder; correct agents.folder.acp in your settings",
		"plain":   bin + "/plain is not executable; run chmod +x " + bin + "/plain, or correct agents.plain.acp in your settings",
		"usage":   "usage stopped before it was ready (exit status 2: error: unknown option --acp); try its command in a terminal: /bin/sh -c",
		"newer":   "newer speaks version 2 of the Agent Client Protocol, and Pillion version 1; update the older of the two",
		"tools":   "tools does not answer like an agent of the Agent Client Protocol (the answer to initialize cannot be read: protocolVersion: want an integer, got a string); some programs need an option",
		"other":   "other does not answer like an agent of the Agent Client Protocol (initialize: Method not found); some programs need an option",
		"locked":  "locked needs you to sign in: use its own program for that, then prompt again; agents.locked.sign_in in your settings can name the command",
		"keyless": `STRANGER_API_KEY is set, but an agent gets only the keys that its row names: add "keys": ["STRANGER_API_KEY"] to agents.keyless in your settings`,
		"state":   `it may not write there until its row names the folder: add "folders": ["~/.stranger"] to agents.state in your settings`,
		"nobody":  "there is no such agent, or it is not installed; see pillion agents list",
	} {
		if out := pillion("agents", "test", id, "--trust"); !strings.Contains(out, want) {
			t.Errorf("%s: want %q in\n%s", id, want, out)
		} else if strings.Contains(out, "secret-of-mine") {
			t.Errorf("%s: a key was printed: %s", id, out)
		}
	}
	out := pillion("agents", "list")
	for _, id := range []string{"missing", "absent", "folder", "plain"} {
		if want := "(cannot be started; pillion agents test " + id + " says why)"; !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "cannot be started"); n != 4 {
		t.Errorf("%d agents cannot be started:\n%s", n, out)
	}
	for _, c := range [][]string{{`"a/b" is not a name for an agent`, "a/b", "--", "x"}, {"its command follows after --", "my", "agent", "--", "x"}, {`"" is not a name`, "", "--", "x"}} {
		if out := pillion(append([]string{"agents", "add", "--print"}, c[1:]...)...); !strings.Contains(out, c[0]) {
			t.Errorf("want %q in\n%s", c[0], out)
		}
	}
}

func TestAgentsCommand(t *testing.T) {
	r := newRider(t, "")
	pillion := func(args ...string) string {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env, cmd.Dir = r.env, r.dir
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	var rows []map[string]any
	for line := range strings.Lines(pillion("agents", "list", "--json")) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		rows = append(rows, row)
	}
	found := map[string]any{}
	for _, row := range rows {
		found[row["id"].(string)] = row["model"]
	}
	if _, ok := found["claude"]; !ok || found["fake"] != "acp/fake" {
		t.Errorf("%v", found)
	}
	if out := pillion("agents", "test", "fake", "--trust"); !strings.Contains(out, "fake answers") {
		t.Errorf("%s", out)
	}
	registry := filepath.Join(t.TempDir(), "registry.json")
	write(t, registry, `{"version": "1.0.0", "agents": [{"id": "stranger", "name": "Stranger", "version": "1.2.3", "description": "x", "distribution": {"npx": {"package": "stranger@1.2.3", "args": ["--acp"]}}}]}`)
	// The settings that are there are the person's own, not those of a project that is not trusted.
	if out := pillion("agents", "add", "stranger", "--registry", registry, "--approve", "all"); !strings.Contains(out, "acp/stranger") || strings.Contains(out, "held back") {
		t.Errorf("%s", out)
	}
	if out := pillion("agents", "add", "stranger", "--approve", "all", "--", "another"); !strings.Contains(out, "has a row for stranger already; change it there") {
		t.Errorf("%s", out)
	}
	if out := pillion("agents", "add", "other", "--", "another"); !strings.Contains(out, "nothing was written: ") || !strings.Contains(out, "--approve all writes it") {
		t.Errorf("%s", out)
	}
	// What is known of an agent counts for a row of another name too, so it need not be added.
	if out := pillion("agents", "add", "codex-acp", "--approve", "all", "--", "npx", "-y", "@agentclientprotocol/codex-acp@1.4.0"); !strings.Contains(out, "acp/codex-acp") {
		t.Errorf("%s", out)
	}
	if out := pillion("agents", "list"); !strings.Contains(out, "acp/codex-acp") || strings.Contains(out, "pillion agents add codex\n") {
		t.Errorf("%s", out)
	}
	if b, _ := os.ReadFile(r.conf); !strings.Contains(string(b), `"stranger"`) || !strings.Contains(string(b), `"--acp"`) || !strings.Contains(string(b), `"fake"`) {
		t.Errorf("%s", b)
	}
}
