package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/config"
)

// process is the real program as `pillion acp`, with all it ever said.
type process struct {
	*editor
	cmd  *exec.Cmd
	mu   sync.Mutex
	said bytes.Buffer // guarded by mu: standard output
	errs bytes.Buffer // read after the end
}

// acpProcess starts the program with more environment.
func acpProcess(t *testing.T, env ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], "acp")}
	p.cmd.Env = append(append(os.Environ(), "PILLION_TEST_MAIN=1", "PILLION_LOG_LEVEL=debug"), env...)
	p.cmd.Stderr = &p.errs
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	tee := io.TeeReader(out, writerFunc(func(b []byte) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.said.Write(b)
	}))
	p.editor = newEditor(t, pipe{tee, in, in.Close})
	return p
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// approveUntil says yes to every question until the answer with the id comes, and gives it.
func (e *editor) approveUntil(id string) map[string]any {
	e.t.Helper()
	for {
		m, line := e.receive()
		if m["method"] == "session/request_permission" {
			var q struct {
				ID json.RawMessage `json:"id"`
			}
			_ = json.Unmarshal([]byte(line), &q)
			e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`, q.ID))
		} else if m["id"] == id {
			return m
		}
	}
}

// end closes standard input and waits; then everything is in said and errs.
func (p *process) end() string {
	_ = p.conn.Close()
	for range p.in { // until standard output ends
	}
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// A person's keys come from three places, and are where a session can meet them: in files, in the environment of
// commands, in what a server quotes of a wrong key, in an address. None may leave them but as a header to its server.
func TestKeysReachNeitherLogNorStoreNorModelNorEditor(t *testing.T) {
	home := atHome(t)
	cwd := filepath.Join(home, "project")
	all := map[string]string{
		"environment": "envkey-31c1f0e2a94b7d55e8", "configuration": "confkey-8842aa0cd1f94be07a", "auth file": "authkey-5d0e6b1c7f2a4938e1",
		"header": "headkey-77b1c0de9a42f3e654", "address": "urlkey-0f9e8d7c6b5a493827",
	}
	srv := wiretest.New(t,
		wiretest.Step{Error: &wiretest.Error{Status: 401, Message: "Incorrect API key provided: " + all["environment"]}},
		wiretest.Step{Error: &wiretest.Error{Status: 401, Body: `<html>key ` + all["configuration"] + ` ` + all["header"] + `</html>`}},
		wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "bad request with " + all["auth file"] + " from " + all["environment"]}},
		wiretest.Step{Error: &wiretest.Error{Status: 400, Message: "no such model"}},
		wiretest.Step{Calls: []wiretest.Call{
			{Name: "bash", Input: json.RawMessage(`{"command":"env; echo $OPENAI_API_KEY >&2; cat \"$XDG_CONFIG_HOME/pillion/pillion.jsonc\"","description":"look around"}`)},
			{Name: "bash", Input: json.RawMessage(`{"command":"echo $OPENAI_API_KEY; exit 3","description":"fail"}`)},
			{Name: "read", Input: json.RawMessage(fmt.Sprintf(`{"filePath":%q}`, filepath.Join(home, "state/pillion/auth.json")))},
			{Name: "read", Input: json.RawMessage(fmt.Sprintf(`{"filePath":%q}`, filepath.Join(cwd, "app.env")))},
			{Name: "grep", Input: json.RawMessage(`{"pattern":"KEY"}`)},
			{Name: "webfetch", Input: json.RawMessage(`{"url":"http://127.0.0.1:1/","format":"text"}`)},
		}},
		wiretest.Step{Calls: []wiretest.Call{{Name: "edit", Input: json.RawMessage(fmt.Sprintf(`{"filePath":%q,"oldString":"PORT=1","newString":"PORT=2\nKEY=[hidden key]"}`, filepath.Join(cwd, "app.env")))}}},
		wiretest.Step{Text: "Done."},
	)
	if err := os.MkdirAll(filepath.Join(home, "state/pillion"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(home, "state/pillion/auth.json"), `{"kept":{"key":"`+all["auth file"]+`","time":"2026-01-02T03:04:05Z"}}`)
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{
		"permission": {"*": "allow"}, "sandbox": "off", "lsp": false, "formatter": false,
		"provider": {
			"mine": {"baseURL": %[1]q, "key": %[2]q, "headers": {"X-Api-Token": %[3]q}, "models": ["m"]},
			"kept": {"baseURL": %[1]q, "models": ["m"]},
			"there": {"baseURL": %[5]q, "models": ["m"]},
			"lost": {"baseURL": "http://me:%[4]s@127.0.0.1:1/v1?api_key=%[4]s", "models": ["m"]}}}`,
		srv.OpenAIURL(), all["configuration"], all["header"], all["address"], strings.Replace(srv.OpenAIURL(), "://", "://me:"+all["address"]+"@", 1)+"?api_key="+all["address"]))
	put(t, filepath.Join(cwd, "app.env"), "PORT=1\nKEY="+all["environment"]+"\nOTHER_KEY="+all["auth file"]+"\n")
	put(t, filepath.Join(cwd, "AGENTS.md"), "Deploy with KEY "+all["configuration"]+".\n")

	p := acpProcess(t, "OPENAI_API_KEY="+all["environment"], "OPENAI_BASE_URL="+srv.OpenAIURL())
	p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{"_meta":{"pillion":{"version":1,"methods":["_pillion/workspace/applyEdit"]}}}}`)
	var last string
	for i, model := range []string{"openai/gpt-5", "mine/m", "kept/m", "there/m", "lost/m", "mine/m"} {
		s, _ := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[],"_meta":{"pillion":{"model":%q}}}`, cwd, model))["sessionId"].(string)
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"turn%d","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"look around"},{"type":"resource","resource":{"uri":"file:///x","text":"K=%s"}}]}}`, i, s, all["environment"]))
		if model == "lost/m" { // it is tried again and again; once is enough
			p.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk"}}}`)
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s))
		}
		p.approveUntil(fmt.Sprintf("turn%d", i))
		last = s
	}
	out := p.end()
	if srv.Left() != 0 {
		t.Errorf("%d steps of the model were not asked for\n%s", srv.Left(), p.errs.String())
	}
	exported := exec.Command(os.Args[0], "sessions", "export", last)
	exported.Env = append(os.Environ(), "PILLION_TEST_MAIN=1")
	export, err := exported.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(export), "[hidden key]") {
		t.Errorf("nothing was hidden: the session never met a key\n%.3000s", export)
	}
	places := map[string]string{"standard output": out, "standard error": p.errs.String(), "export": string(export)}
	if all := srv.Requests(); !strings.Contains(string(all[len(all)-1].Body), "This would write [hidden key]") {
		t.Errorf("the model was not told why its edit was refused: %.2000q", all[len(all)-1].LastText())
	}
	for i, r := range srv.Requests() {
		places[fmt.Sprintf("model request %d", i)] = string(r.Body)
	}
	err = filepath.WalkDir(filepath.Join(home, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 && path != filepath.Join(home, "state") && path != filepath.Join(home, "state/pillion/auth.json") {
			t.Errorf("%s can be read by others: %v %v", path, info.Mode(), err)
		}
		// Checkpoints are copies of the person's own files, to give them back as they were.
		if !d.IsDir() && d.Name() != "auth.json" && !strings.Contains(path, "/checkpoints/") {
			places[path] = read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range places {
		for of, key := range all {
			if i := strings.Index(text, key); i >= 0 {
				t.Errorf("the key of the %s is in %s: …%q…", of, place, text[max(0, i-200):min(len(text), i+len(key)+40)])
			}
		}
	}
	if got := read(t, filepath.Join(cwd, "app.env")); !strings.HasPrefix(got, "PORT=1\nKEY="+all["environment"]) {
		t.Errorf("the mask was written over the key: %q", got)
	}
}

// Only what can be nothing but a key is hidden: words that local servers take for one are in every second text.
func TestWordsAreNoKeys(t *testing.T) {
	s := &app.Secrets{}
	s.Add("none", "lm-studio", "ollama", "sk-1234abcd", "Bearer tok-99887766aa", "tok-99887766aa-longer")
	for in, want := range map[string]string{
		"none of lm-studio or ollama": "none of lm-studio or ollama",
		"a sk-1234abcd b":             "a [hidden key] b",
		"tok-99887766aa-longer.":      "[hidden key].",
		"x=tok-99887766aa":            "x=[hidden key]",
	} {
		if got := s.Hide(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestThePasswordOfASharedStoreIsAKey(t *testing.T) {
	for _, store := range []string{"postgres://me:Sesam-0ffne%2Fdich@db/pillion", "host=db user=me password='Sesam-0ffne/dich' dbname=pillion"} {
		var s app.Secrets
		s.Learn(&config.Config{Store: store}, nil)
		for _, text := range []string{"it is Sesam-0ffne/dich.", "the file says " + store} {
			if got := s.Hide(text); strings.Contains(got, "0ffne") {
				t.Error(got)
			}
		}
	}
}
