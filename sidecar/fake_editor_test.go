package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/checkpoint"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// pipe is both ends of an in-memory stdio.
type pipe struct {
	io.Reader
	io.Writer
	close func() error
}

func (p pipe) Close() error { return p.close() }

func pipes() (editor, server io.ReadWriteCloser) {
	er, sw := io.Pipe()
	sr, ew := io.Pipe()
	return pipe{er, ew, func() error { _ = er.Close(); return ew.Close() }}, pipe{sr, sw, func() error { _ = sr.Close(); return sw.Close() }}
}

// scripted is a model that says what the test wrote down: one step for each request.
type scripted struct {
	mu    sync.Mutex
	steps []func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error
	seen  []*provider.Request
}

func (m *scripted) Resolve(context.Context, string, string) (provider.Provider, provider.Model, error) {
	return m, provider.Model{Provider: "test", ID: "model", Name: "Test model", Context: 1000, Thinking: true}, nil
}

func (m *scripted) Stream(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
	m.mu.Lock()
	m.seen = append(m.seen, req)
	var step func(context.Context, *provider.Request, func(provider.Event) error) error
	if len(m.steps) > 0 {
		step, m.steps = m.steps[0], m.steps[1:]
	}
	m.mu.Unlock()
	if step == nil {
		step = says("Done.")
	}
	if err := step(ctx, req, emit); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return nil
}

func says(text string) func(context.Context, *provider.Request, func(provider.Event) error) error {
	return func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		if err := emit(provider.Event{Type: provider.EventText, Text: text}); err != nil {
			return err
		}
		return emit(provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
	}
}

func callsTool(name, input string) func(context.Context, *provider.Request, func(provider.Event) error) error {
	return func(_ context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for _, e := range []provider.Event{
			{Type: provider.EventToolStart, CallID: "call", Name: name},
			{Type: provider.EventToolEnd, CallID: "call", Name: name, Text: input},
			{Type: provider.EventStop, Stop: provider.StopTools},
		} {
			if err := emit(e); err != nil {
				return err
			}
		}
		return nil
	}
}

func hangs(started chan<- struct{}) func(context.Context, *provider.Request, func(provider.Event) error) error {
	return func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		_ = emit(provider.Event{Type: provider.EventText, Text: "thinking about it "})
		close(started)
		<-ctx.Done()
		return ctx.Err()
	}
}

// sessions keeps each session's tools' surroundings, as the wiring does.
type sessions struct {
	mu      sync.Mutex
	envs    map[string]builtin.Env
	screens map[string]*run.Terminals
	bridge  builtin.Bridge // nil: no language servers

	switches map[string]bool   // of tools; set before the session starts
	prefs    agent.Preferences // to be changed before a session is opened
}

func (x *sessions) Terminals(id string) *run.Terminals {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.screens == nil {
		x.screens = map[string]*run.Terminals{}
	}
	if x.screens[id] == nil {
		x.screens[id] = &run.Terminals{}
	}
	return x.screens[id]
}

// tools are the real ones for files, and stand-ins for those that only talk to the person.
func (x *sessions) tools(e *editors.Registry, state string) func(context.Context, agent.SessionInfo) ([]tools.Tool, error) {
	return func(_ context.Context, info agent.SessionInfo) ([]tools.Tool, error) {
		env := builtin.Env{Cwd: info.Cwd, Root: info.Cwd, StateDir: state, Buffers: e.Files(info.ID), Tracker: &files.Tracker{}, Locks: &files.Locks{}}
		env.SubAgents = func() []tools.SubAgent { return []tools.SubAgent{{Name: "general", Description: "jobs"}} }
		env.Applier = e.Applier(info.ID, app.Disk{Writer: builtin.NewWriter(env)})
		env.Shell.Runner, env.Shell.Background, env.Shell.Terminals = &run.Runner{}, &run.Background{}, x.Terminals(info.ID)
		x.mu.Lock()
		env.Bridge = x.bridge
		x.envs[info.ID] = env
		x.mu.Unlock()
		ask := tools.New("ask_person", "Asks.", func(ctx context.Context, p struct {
			Questions []tools.Question `json:"questions"`
		}, call *tools.Call) (tools.Result, error) {
			a, err := call.Host.Questions.AskQuestions(ctx, call, p.Questions)
			return tools.Result{Title: "question", Output: fmt.Sprintf("%q", a)}, err
		})
		plan := tools.New("make_plan", "Plans.", func(ctx context.Context, p struct {
			Todos []tools.Todo `json:"todos"`
		}, call *tools.Call) (tools.Result, error) {
			return tools.Result{Title: "plan", Output: "ok"}, call.Host.Todos.Set(ctx, p.Todos)
		})
		return append(builtin.All(env), ask, plan), nil
	}
}

// rigChanges are a rig's change sets, written by the tools' own environment.
type rigChanges struct {
	world *sessions
	rt    *agent.Runtime
	made  func(context.Context, agent.SessionInfo) ([]tools.Tool, error)
	blobs *checkpoint.Blobs
}

func (c rigChanges) Files(id string) review.Files {
	if e, ok := c.env(id); ok {
		return builtin.NewWriter(e)
	}
	return nil
}

func (c rigChanges) Reopen(id string, set *change.Set, ask string) (tools.Tool, bool) {
	e, ok := c.env(id)
	return builtin.Reopen(e, set, ask), ok
}

func (c rigChanges) env(id string) (builtin.Env, bool) {
	for range 2 {
		c.world.mu.Lock()
		e, ok := c.world.envs[id]
		c.world.mu.Unlock()
		if ok {
			return e, true
		}
		if s, ok := c.rt.Session(id); ok {
			_, _ = c.made(context.Background(), s.Info()) // as the wiring does
		}
	}
	return builtin.Env{}, false
}

func (c rigChanges) Load(set *change.Set) (*change.Set, error) { return c.blobs.Load(set) }

// rigFolders is what is configured for every folder of a rig.
type rigFolders struct{ rules permission.Ruleset }

func (f rigFolders) Models(string) []models.Choice {
	return []models.Choice{{ID: "test/model", Name: "Test model", Efforts: []string{"low", "high"}}, {ID: "test/other", Name: "Other"}}
}
func (f rigFolders) Commands(string) []slash.Command         { return nil }
func (f rigFolders) Rules(string, string) permission.Ruleset { return f.rules }
func (f rigFolders) Trust(string, *bool) string              { return "" }
func (f rigFolders) AgentMenu(agent.SessionInfo) ([]protocol.SessionConfigOption, []protocol.AvailableCommand) {
	return nil, nil
}
func (f rigFolders) ChooseForAgent(context.Context, agent.SessionInfo, string, string) error {
	return errors.New("no agents here")
}
func (f rigFolders) KeptDraft(agent.SessionInfo) string { return "" }
func (f rigFolders) PassMCP(string, []protocol.MCPServer) error {
	return errors.New("this version does not use them")
}

// rig is a server with everything real but the model and the editor.
type rig struct {
	t       testing.TB
	cwd     string
	world   *sessions
	model   *scripted
	rt      *agent.Runtime
	host    *acp.Host
	rules   *permission.Ruleset // to be changed before a session is opened
	buffers *editors.Buffers
	server  *acp.Connection
	ed      *editor
	served  chan error
}

// testStore is a store file of its own.
func testStore(t testing.TB) *store.Store {
	st := store.New(filepath.Join(t.TempDir(), "pillion.db"))
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// rigParts are the parts of a rig's runtime.
type rigParts struct {
	made    func(context.Context, agent.SessionInfo) ([]tools.Tool, error)
	editors *editors.Registry
	blobs   *checkpoint.Blobs
	rules   *permission.Ruleset
	env     *sessions
}

func (rigParts) Agents(string) []agent.Agent       { return nil }
func (p rigParts) Rules(string) permission.Ruleset { return *p.rules }
func (p rigParts) Switches(string) map[string]bool { return p.env.switches }
func (p rigParts) Preferences(string) agent.Preferences {
	prefs := p.env.prefs
	prefs.Depth = agent.DefaultDepth
	return prefs
}
func (p rigParts) Release(string)                    {}
func (rigParts) Instructions(string) []string        { return nil }
func (rigParts) Notes(string) []string               { return nil }
func (rigParts) Tree(context.Context, string) string { return "" }

func (p rigParts) Tools(ctx context.Context, s agent.SessionInfo) ([]tools.Tool, error) {
	return p.made(ctx, s)
}

func (p rigParts) More(_ context.Context, s agent.SessionInfo) []tools.Tool {
	return p.editors.Tools(s.ID)
}

func (rigParts) Find(agent.SessionInfo, string) (tools.Tool, bool) { return tools.Tool{}, false }

func (rigParts) Mentioned(_ context.Context, e agent.Entering) []provider.Part { return e.Parts }

func (p rigParts) Pack(state change.State, set *change.Set) *change.Set {
	return app.Packed(p.blobs, state, set)
}

func (rigParts) Recover(context.Context, agent.SessionInfo, *change.Set) change.State {
	return change.Failed
}

func newRig(t testing.TB, st *store.Store, cwd string) *rig {
	t.Helper()
	m := &scripted{}
	env := &sessions{envs: map[string]builtin.Env{}}
	registry := editors.NewRegistry()
	rules := &permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Allow}, {Permission: "edit", Pattern: "*", Action: permission.Ask, Origin: "test"}}
	blobs := &checkpoint.Blobs{Dir: filepath.Join(t.TempDir(), "checkpoints")}
	if st.Path() != "" {
		blobs.Dir = st.Path() + ".checkpoints" // a second rig on the same store has them too
	}
	made := env.tools(registry, t.TempDir())
	parts := rigParts{made: made, editors: registry, blobs: blobs, rules: rules, env: env}
	rt := agent.New(agent.Options{Store: st, Models: m, Configuration: parts, Toolbox: parts, Project: parts, Changes: parts, Asker: registry, Questions: registry})
	registry.Follow(acp.Sessions(rt, blobs.Pack))
	a, b := pipes()
	r := &rig{t: t, cwd: cwd, world: env, model: m, rt: rt, rules: rules, served: make(chan error, 1)}
	r.host = &acp.Host{Runtime: rt, Editors: registry, Desk: review.NewDesk(rigChanges{env, rt, made, blobs}), Grants: agent.Grants(st), Folders: rigFolders{*rules}, Terminals: env,
		Auth: lentKeys{&keys.Store{File: filepath.Join(t.TempDir(), "auth.json")}}, Finder: testFinder(t), Problems: &acp.ProblemHub{}, Reported: editors.NewProblems(), Version: "0.0.0-test"}
	r.buffers = editors.NewBuffers(nil)
	r.server = acp.NewConnection(r.host, b, r.buffers, "")
	go func() { r.served <- r.server.Serve(context.Background()) }()
	r.ed = newEditor(t, a)
	t.Cleanup(func() {
		_ = a.Close()
		<-r.served
		_ = rt.Close(context.Background())
		env.mu.Lock() // what follows the answer to session/load may still run
		defer env.mu.Unlock()
		for _, e := range env.envs {
			e.Shell.Close()
		}
		for _, ts := range env.screens {
			ts.Close()
		}
	})
	return r
}

// editor is a client that sends and expects raw messages.
type editor struct {
	t    testing.TB
	conn io.ReadWriteCloser
	in   chan string
	vars map[string]string
	next int

	mu   sync.Mutex
	sent map[string]string // the method of each request that was sent, by id; guarded by mu
}

func newEditor(t testing.TB, conn io.ReadWriteCloser) *editor {
	e := &editor{t: t, conn: conn, in: make(chan string, 100000), vars: map[string]string{}, sent: map[string]string{}}
	go func() {
		defer close(e.in)
		s := bufio.NewReaderSize(conn, 1<<20)
		for {
			line, err := s.ReadString('\n')
			if line != "" {
				e.in <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return e
}

// fill puts values for "$name"; the longest name counts, so $C is not part of $CWD.
func (e *editor) fill(text string) string {
	names := slices.Collect(maps.Keys(e.vars))
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, k := range names {
		text = strings.ReplaceAll(text, "$"+k, e.vars[k])
	}
	return text
}

func (e *editor) send(line string) {
	e.t.Helper()
	line = e.fill(line)
	var sent struct {
		ID     any
		Method string
	}
	if json.Unmarshal([]byte(line), &sent) == nil && sent.ID != nil && sent.Method != "" {
		e.mu.Lock()
		if id := fmt.Sprint(sent.ID); e.sent[id] == "" {
			e.sent[id] = sent.Method
		} else {
			e.sent[id] = "(sent twice)" // whose answer comes is for the test to say
		}
		e.mu.Unlock()
	}
	if _, err := io.WriteString(e.conn, line+"\n"); err != nil {
		e.t.Fatal(err)
	}
}

// patience is how long a message may take before the test fails. It is not a measurement: a message that is late by
// minutes, on the slowest machine the tests run on, is one that never comes.
const patience = 5 * time.Minute

// receive gives the next message, checked against the schema.
func (e *editor) receive() (map[string]any, string) {
	e.t.Helper()
	select {
	case line, ok := <-e.in:
		if !ok {
			e.t.Fatal("the server closed the connection")
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			e.t.Fatalf("not a JSON object: %.200s", line)
		}
		e.check(m, line)
		return m, line
	case <-time.After(patience):
		e.t.Fatal("no message came")
	}
	return nil, ""
}

// expect skips messages until one matches the pattern, a JSON text: objects match when the members named match, "*"
// matches anything, "?name" remembers a string or an integer for "$name".
func (e *editor) expect(pattern string) map[string]any {
	e.t.Helper()
	pattern = e.fill(pattern)
	var want any
	if err := json.Unmarshal([]byte(pattern), &want); err != nil {
		e.t.Fatalf("pattern %s: %v", pattern, err)
	}
	var skipped []string
	for {
		select {
		case line, ok := <-e.in:
			if !ok {
				e.t.Fatalf("the connection ended; want %s\nskipped:\n%s", pattern, strings.Join(skipped, "\n"))
			}
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				var batch []any
				if json.Unmarshal([]byte(line), &batch) != nil {
					e.t.Fatalf("not JSON: %.200s", line)
				}
				m = map[string]any{"batch": batch}
			} else {
				e.check(m, line)
			}
			found := map[string]string{}
			if matches(want, m, found) {
				for k, v := range found {
					e.vars[k] = v
				}
				return m
			}
			skipped = append(skipped, line)
		case <-time.After(patience):
			e.t.Fatalf("no message matches %s\nskipped:\n%s", pattern, strings.Join(skipped, "\n"))
		}
	}
}

// expectAll expects messages that may come in any order, and gives them in the order of their patterns.
func (e *editor) expectAll(patterns ...string) []map[string]any {
	e.t.Helper()
	wants := make([]any, len(patterns))
	for i, p := range patterns {
		if err := json.Unmarshal([]byte(e.fill(p)), &wants[i]); err != nil {
			e.t.Fatalf("pattern %s: %v", p, err)
		}
	}
	got := make([]map[string]any, len(patterns))
	for slices.ContainsFunc(got, func(m map[string]any) bool { return m == nil }) {
		m, _ := e.receive()
		for i, want := range wants {
			if got[i] == nil && matches(want, m, map[string]string{}) {
				got[i] = m
			}
		}
	}
	return got
}

func matches(want, got any, found map[string]string) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k, x := range w {
			y, there := g[k]
			if !there || !matches(x, y, found) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !matches(w[i], g[i], found) {
				return false
			}
		}
		return true
	case string:
		if w == "*" {
			return true
		}
		if strings.HasPrefix(w, "?") {
			switch g := got.(type) {
			case string:
				found[w[1:]] = g
			case float64:
				found[w[1:]] = fmt.Sprint(int64(g))
			default:
				return false
			}
			return true
		}
		if g, ok := got.(string); ok && strings.HasSuffix(w, "…") {
			return strings.HasPrefix(g, strings.TrimSuffix(w, "…"))
		}
		return want == got
	}
	return want == got
}

// request sends one and gives its result; updates that come meanwhile are thrown away.
func (e *editor) request(method, params string) map[string]any {
	e.t.Helper()
	e.next++
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":%q,"params":%s}`, e.next, method, params))
	m := e.expect(fmt.Sprintf(`{"id":"r%d"}`, e.next))
	if x, bad := m["error"]; bad {
		e.t.Fatalf("%s: %v", method, x)
	}
	r, _ := m["result"].(map[string]any)
	return r
}

// start initializes and opens a session.
func (r *rig) start(clientParams string) string {
	r.t.Helper()
	if clientParams == "" {
		clientParams = `{"protocolVersion":1,"clientCapabilities":{}}`
	}
	r.ed.request("initialize", clientParams)
	id, _ := r.ed.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, r.cwd))["sessionId"].(string)
	r.ed.vars["S"] = id
	return id
}

// schemas compiles a definition of the protocol's schemas once.
var schemas = struct {
	sync.Mutex
	defs map[string]*jsonschema.Schema
	byID map[string]*jsonschema.Resolved
}{byID: map[string]*jsonschema.Resolved{}}

func schemaOf(name string) (*jsonschema.Resolved, error) {
	schemas.Lock()
	defer schemas.Unlock()
	if s := schemas.byID[name]; s != nil {
		return s, nil
	}
	if schemas.defs == nil {
		schemas.defs = map[string]*jsonschema.Schema{}
		for _, f := range []string{"acp", "pillion"} {
			b, err := os.ReadFile("protocol/gen/" + f + ".schema.json")
			if err != nil {
				return nil, err
			}
			var file struct {
				Defs map[string]*jsonschema.Schema `json:"$defs"`
			}
			if err := json.Unmarshal(b, &file); err != nil {
				return nil, err
			}
			for k, v := range file.Defs {
				schemas.defs[k] = v
			}
		}
	}
	root := &jsonschema.Schema{Ref: "#/$defs/" + name, Defs: schemas.defs}
	r, err := root.CloneSchemas().Resolve(&jsonschema.ResolveOptions{})
	if err == nil {
		schemas.byID[name] = r
	}
	return r, err
}

// findMethod looks a method of the protocol up by name.
func findMethod(name string) (protocol.Method, bool) {
	i := slices.IndexFunc(protocol.Methods, func(m protocol.Method) bool { return m.Name == name })
	if i < 0 {
		return protocol.Method{}, false
	}
	return protocol.Methods[i], true
}

// check holds every message the server sends, and every result it gives, against the schema of its method.
func (e *editor) check(m map[string]any, line string) {
	e.t.Helper()
	if method, _ := m["method"].(string); method != "" {
		def, ok := findMethod(method)
		if !ok || def.Side == "agent" {
			e.t.Errorf("the server sent a method that is not the editor's: %.300s", line)
			return
		}
		e.fits(method, def.Params, m["params"], line)
		return
	}
	e.mu.Lock()
	method := e.sent[fmt.Sprint(m["id"])]
	e.mu.Unlock()
	if def, ok := findMethod(method); ok && m["result"] != nil && def.Result != "" {
		e.fits("the answer to "+method, def.Result, m["result"], line)
	}
}

func (e *editor) fits(what, name string, value any, line string) {
	e.t.Helper()
	s, err := schemaOf(name)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := s.Validate(value); err != nil {
		e.t.Errorf("%s does not fit its schema: %v\n%.600s", what, err, line)
	}
}

// mustJSON is a value of the test's as JSON.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
