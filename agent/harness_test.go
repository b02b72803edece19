package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// Idle connections of the shared HTTP client of package provider.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// answerFunc is one scripted answer.
type answerFunc func(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error

// model is a scripted provider; each request takes the next answer.
type model struct {
	mu       sync.Mutex
	script   []answerFunc
	requests []provider.Request
	def      answerFunc // when the script has run out
	info     provider.Model
}

func (m *model) Stream(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
	m.mu.Lock()
	m.requests = append(m.requests, *req)
	next := m.def
	if len(m.script) > 0 {
		next, m.script = m.script[0], m.script[1:]
	}
	m.mu.Unlock()
	if next == nil {
		return &provider.Error{Kind: provider.ErrInvalid, Message: "the script has run out"}
	}
	return next(ctx, req, emit)
}

func (m *model) Resolve(_ context.Context, _, id string) (provider.Provider, provider.Model, error) {
	if id == "fake/missing" {
		return nil, provider.Model{}, errors.New("no model fake/missing; `pillion models` lists them")
	}
	info := m.info
	if info.ID == "" {
		info = provider.Model{Provider: "fake", ID: "m", Context: 1000, CostIn: 1, CostOut: 2}
	}
	if _, name, ok := strings.Cut(id, "/"); ok {
		info.ID = name
	}
	return m, info, nil
}

func (m *model) seen() []provider.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]provider.Request(nil), m.requests...)
}

// emits makes an answer of events.
func emits(events ...provider.Event) answerFunc {
	return func(ctx context.Context, _ *provider.Request, emit func(provider.Event) error) error {
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
}

func says(text string) answerFunc {
	return emits(provider.Event{Type: provider.EventText, Text: text},
		provider.Event{Type: provider.EventUsage, Usage: provider.Usage{Input: 10, Output: 5}},
		provider.Event{Type: provider.EventStop, Stop: provider.StopEnd})
}

func fails(kind provider.ErrorKind, text string) answerFunc {
	return func(context.Context, *provider.Request, func(provider.Event) error) error {
		return &provider.Error{Kind: kind, Message: text}
	}
}

// calls makes an answer of calls "name {args}", with text before them when the first has no brace.
func calls(list ...string) answerFunc {
	return emits(append(callEvents(list...),
		provider.Event{Type: provider.EventUsage, Usage: provider.Usage{Input: 100, Output: 20}},
		provider.Event{Type: provider.EventStop, Stop: provider.StopTools})...)
}

func callEvents(list ...string) []provider.Event {
	var events []provider.Event
	for i, c := range list {
		name, args, isCall := strings.Cut(c, " {")
		if !isCall {
			events = append(events, provider.Event{Type: provider.EventText, Text: c})
			continue
		}
		args = "{" + args
		events = append(events,
			provider.Event{Type: provider.EventToolStart, Index: i, CallID: fmt.Sprint("id", i), Name: name},
			provider.Event{Type: provider.EventToolDelta, Index: i, Text: args},
			provider.Event{Type: provider.EventToolEnd, Index: i, CallID: fmt.Sprint("id", i), Name: name, Text: args})
	}
	return events
}

// person answers permission questions.
type person struct {
	answer func(ctx context.Context, r permission.Request) (permission.Reply, error)
	mu     sync.Mutex
	asked  []permission.Request
}

func (p *person) AskPermission(ctx context.Context, r permission.Request) (permission.Reply, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return permission.Reply{Kind: permission.Once}, nil
	}
	return answer(ctx, r)
}

func (p *person) questions() []permission.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]permission.Request(nil), p.asked...)
}

func rejects(message string) func(context.Context, permission.Request) (permission.Reply, error) {
	return func(context.Context, permission.Request) (permission.Reply, error) {
		return permission.Reply{Kind: permission.Reject, Message: message}, nil
	}
}

// parts are the parts of a runtime that tests replace; a nil function is as in absent.
type parts struct {
	absent
	agents       func(cwd string) []Agent
	rules        func(cwd string) permission.Ruleset
	tools        func(ctx context.Context, s SessionInfo) ([]tools.Tool, error)
	find         func(s SessionInfo, name string) (tools.Tool, bool)
	instructions func(cwd string) []string
	tree         func(ctx context.Context, cwd string) string
	extensions   func(cwd string) *Extensions
	hide         func(cwd, text string) string
}

func (p *parts) Agents(cwd string) []Agent {
	if p.agents == nil {
		return nil
	}
	return p.agents(cwd)
}

func (p *parts) Rules(cwd string) permission.Ruleset {
	if p.rules == nil {
		return nil
	}
	return p.rules(cwd)
}

func (p *parts) Tools(ctx context.Context, s SessionInfo) ([]tools.Tool, error) {
	return p.tools(ctx, s)
}

func (p *parts) Find(s SessionInfo, name string) (tools.Tool, bool) {
	if p.find == nil {
		return tools.Tool{}, false
	}
	return p.find(s, name)
}

func (p *parts) Instructions(cwd string) []string {
	if p.instructions == nil {
		return nil
	}
	return p.instructions(cwd)
}

func (p *parts) Tree(ctx context.Context, cwd string) string {
	if p.tree == nil {
		return ""
	}
	return p.tree(ctx, cwd)
}

func (p *parts) Extensions(cwd string) *Extensions {
	if p.extensions == nil {
		return nil
	}
	return p.extensions(cwd)
}

func (p *parts) Hide(cwd, text string) string {
	if p.hide == nil {
		return text
	}
	return p.hide(cwd, text)
}

// harness is a runtime with a scripted model, a person and small tools.
type harness struct {
	t       testing.TB
	rt      *Runtime
	st      *store.Store
	model   *model
	person  *person
	with    *parts
	dir     string
	path    string
	mu      sync.Mutex
	ran     []string                                                               // calls of write and read, in the order they ended
	special map[string]func(ctx context.Context, c *tools.Call, text string) error // what a call's text does
}

func newHarness(t testing.TB, script ...answerFunc) *harness {
	h := &harness{t: t, model: &model{script: script}, person: &person{}, dir: t.TempDir(), special: map[string]func(context.Context, *tools.Call, string) error{}}
	h.path = filepath.Join(t.TempDir(), "pillion.db")
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *harness) start() {
	if h.with == nil {
		h.with = &parts{tools: h.tools}
	}
	h.st = store.New(h.path)
	h.rt = New(Options{Store: h.st, Models: h.model, Configuration: h.with, Toolbox: h.with, Project: h.with, Plugins: h.with, Secrets: h.with, Asker: h.person})
	h.rt.backoff = func(int, *provider.Error) time.Duration { return time.Millisecond }
}

func (h *harness) stop() {
	if err := h.rt.Close(context.Background()); err != nil {
		h.t.Error(err)
	}
	if err := h.st.Close(); err != nil {
		h.t.Error(err)
	}
}

// restart is a new process on the same store.
func (h *harness) restart() {
	h.stop()
	h.start()
}

type textParams struct {
	Text string `json:"text"`
}

func (h *harness) tools(context.Context, SessionInfo) ([]tools.Tool, error) {
	do := func(ctx context.Context, p textParams, c *tools.Call) (tools.Result, error) {
		if f := h.special[p.Text]; f != nil {
			if err := f(ctx, c, p.Text); err != nil {
				return tools.Result{}, err
			}
		}
		h.mu.Lock()
		h.ran = append(h.ran, c.Tool+" "+p.Text)
		h.mu.Unlock()
		return tools.Result{Title: c.Tool, Output: c.Tool + " says " + p.Text}, nil
	}
	return []tools.Tool{
		tools.New("read", "Reads.", do, tools.WithReadOnly(), tools.WithKind(tools.KindRead)),
		tools.New("write", "Writes.", func(ctx context.Context, p textParams, c *tools.Call) (tools.Result, error) {
			if _, err := c.Ask(ctx, permission.Request{Permission: "edit", Patterns: []string{p.Text}, Always: []string{"*"}}); err != nil {
				return tools.Result{}, err
			}
			return do(ctx, p, c)
		}, tools.WithPermission("edit"), tools.WithKind(tools.KindEdit)),
		tools.New("todowrite", "Plans.", func(ctx context.Context, p struct {
			Todos []tools.Todo `json:"todos"`
		}, c *tools.Call) (tools.Result, error) {
			return tools.Result{Output: fmt.Sprint(len(c.Host.Todos.Get()))}, c.Host.Todos.Set(ctx, p.Todos)
		}),
		tools.New("invalid", "Explains.", func(_ context.Context, p struct {
			Tool  string `json:"tool"`
			Error string `json:"error"`
		}, _ *tools.Call) (tools.Result, error) {
			return tools.Result{Title: "Invalid Tool", Output: "The arguments provided to the tool are invalid: " + p.Error}, nil
		}),
	}, nil
}

func (h *harness) order() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.ran, ", ")
}

func (h *harness) session() *Session {
	h.t.Helper()
	s, err := h.rt.NewSession(context.Background(), SessionOptions{Cwd: h.dir})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *harness) load(id string) *Session {
	h.t.Helper()
	s, err := h.rt.LoadSession(context.Background(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func words(text string) Prompt {
	return Prompt{Parts: []provider.Part{{Type: provider.PartText, Text: text}}}
}

func (h *harness) prompt(s *Session, text string) TurnData {
	h.t.Helper()
	end, err := s.Prompt(context.Background(), words(text))
	if err != nil {
		h.t.Fatal(err)
	}
	return end
}

// events reads what is stored.
func (h *harness) events(s *Session) []Event {
	h.t.Helper()
	var all []Event
	if err := s.Events(context.Background(), 0, func(e Event) error { all = append(all, e); return nil }); err != nil {
		h.t.Fatal(err)
	}
	return all
}

func ofType[T any](events []Event, typ EventType) (out []T) {
	for _, e := range events {
		if e.Type == typ {
			out = append(out, decode[T](e))
		}
	}
	return out
}

// final are the last states of the calls, in the order they were first seen.
func final(events []Event) []ToolData {
	var order []string
	last := map[string]ToolData{}
	for _, d := range ofType[ToolData](events, EventTool) {
		if _, ok := last[d.CallID]; !ok {
			order = append(order, d.CallID)
		}
		last[d.CallID] = d
	}
	var out []ToolData
	for _, id := range order {
		out = append(out, last[id])
	}
	return out
}

// consistent checks what must hold of every session that is at rest: numbers without holes, every call answered in
// events and history, turns closed, and a history that a provider accepts.
func (h *harness) consistent(s *Session) {
	h.t.Helper()
	events := h.events(s)
	for i, e := range events {
		if e.Seq != int64(i+1) {
			h.t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		if !json.Valid(e.Data) {
			h.t.Fatalf("event %d is no JSON: %s", e.Seq, e.Data)
		}
	}
	for _, d := range final(events) {
		if d.Status != ToolCompleted && d.Status != ToolError {
			h.t.Errorf("call %s of %s is left %s", d.CallID, d.Tool, d.Status)
		}
	}
	if p, e := len(ofType[PromptData](events, EventPrompt)), len(ofType[TurnData](events, EventTurn)); p != e {
		h.t.Errorf("%d prompts, %d turn ends", p, e)
	}
	fresh := newHistory()
	for _, e := range events {
		fresh.apply(Event{Seq: e.Seq, Type: e.Type, Data: e.Data})
	}
	if fresh.open() {
		h.t.Error("the stored session stands open")
	}
	checkMessages(h.t, fresh.messages)
	checkMessages(h.t, s.hist.messages)
	if a, b := string(encode(fresh.messages)), string(encode(s.hist.messages)); a != b {
		h.t.Errorf("the history from the events differs:\n%s\nlive:\n%s", a, b)
	}
}

// checkMessages: every call has exactly one result, in the next message, in order; ids are unique; nothing is empty.
func checkMessages(t testing.TB, all []provider.Message) {
	t.Helper()
	ids := map[string]bool{}
	for i, m := range all {
		if len(m.Parts) == 0 {
			t.Errorf("message %d (%s) has no parts", i, m.Role)
		}
		var called, answered []string
		for _, p := range m.Parts {
			if p.Type == provider.PartToolCall {
				if ids[p.CallID] {
					t.Errorf("call id %s twice", p.CallID)
				}
				ids[p.CallID] = true
				called = append(called, p.CallID)
			}
			if p.Type == provider.PartToolResult && m.Role != provider.RoleTool {
				t.Errorf("a result in a %s message", m.Role)
			}
		}
		if i+1 < len(all) && all[i+1].Role == provider.RoleTool {
			for _, p := range all[i+1].Parts {
				answered = append(answered, p.CallID)
				if p.Text == "" && len(p.Files) == 0 {
					t.Errorf("result of %s is empty", p.CallID)
				}
			}
		}
		if fmt.Sprint(called) != fmt.Sprint(answered) && (m.Role == provider.RoleAssistant || len(answered) > 0) {
			t.Errorf("message %d (%s) calls %v, answered are %v", i, m.Role, called, answered)
		}
	}
}
