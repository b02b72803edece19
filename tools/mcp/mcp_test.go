package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// The test binary is also the MCP server that the tests start as a program: what PILLION_TEST_MCP says.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("PILLION_TEST_MCP"); mode {
	case "":
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	case "dead":
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintln(os.Stderr, "no such database")
		os.Exit(3)
	case "garbage":
		fmt.Println("[INFO] listening on nothing")
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	case "chatty": // prints what it likes between its messages
		fmt.Print("Starting…\n\n[INFO] {not json}\n{\n  \"level\": 30\n}\n{\"level\":30,\"msg\":\"up\"}\n" + strings.Repeat("x", 200_000) + "\n")
		_ = testServer("").Run(context.Background(), &sdk.StdioTransport{})
		os.Exit(0)
	case "future", "again":
		oddServer(mode)
		os.Exit(0)
	case "silent":
		select {}
	case "hostile":
		_ = hostileServer().Run(context.Background(), &sdk.StdioTransport{})
		os.Exit(0)
	default:
		if err := testServer(mode).Run(context.Background(), &sdk.StdioTransport{}); err != nil && mode != "" {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

type none struct{}

// oddServer speaks a protocol that nobody knows, or lists the same page for ever.
func oddServer(mode string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version string `json:"protocolVersion"`
			} `json:"params"`
		}
		_ = json.Unmarshal(in.Bytes(), &m)
		if mode == "future" {
			m.Params.Version = "2099-01-01"
		}
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`+"\n", m.ID, m.Params.Version)
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}],"nextCursor":"1"}}`+"\n", m.ID)
		default:
			if m.ID != nil {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
			}
		}
	}
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// testServer is a server with one tool for each thing that can happen.
func testServer(mode string) *sdk.Server {
	o := &sdk.ServerOptions{Instructions: "Call echo first."}
	if mode != "modern" { // the servers there are today ask back in the middle of a call
		o.SupportedProtocolVersions = []string{"2025-11-25", "2025-06-18"}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "probe", Version: "1.2"}, o)
	sdk.AddTool(s, &sdk.Tool{Name: "echo it", Description: "Repeats a text.", Title: "Echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("out of paper")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "exit"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		os.Exit(7)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "steps"}, func(ctx context.Context, r *sdk.CallToolRequest, in struct {
		Pause time.Duration
	}) (*sdk.CallToolResult, any, error) {
		for i := range 4 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 4, Message: "step"})
			time.Sleep(in.Pause) // the silence that progress must break
		}
		return text("done"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		s.AddTool(&sdk.Tool{Name: "late", InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("better"), nil })
		return text("grown"), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "form"}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		ask := &sdk.ElicitParams{Message: "Where to?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","title":"City"},"days":{"type":"integer"},"class":{"type":"string","enum":["a","b"],"enumNames":["First","Second"]},"sure":{"type":"boolean"}},"required":["city"]}`)}
		if mode == "modern" {
			if r.Params.InputResponses == nil {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"form": ask}}, nil, nil
			}
			raw, _ := json.Marshal(r.Params.InputResponses["form"])
			return text(string(raw)), nil, nil
		}
		got, err := r.Session.Elicit(ctx, ask)
		if err != nil {
			return nil, nil, err
		}
		raw, _ := json.Marshal(got)
		return text(string(raw)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "think"}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		got, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 50, SystemPrompt: "short", Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "two and two?"}}}})
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{got.Content}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "where"}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		roots, err := r.Session.ListRoots(ctx, nil)
		if err != nil || len(roots.Roots) != 1 {
			return nil, nil, fmt.Errorf("%v %v", roots, err)
		}
		return text(roots.Roots[0].URI), nil, nil
	})
	s.AddTool(&sdk.Tool{Name: "picture", InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "one"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")}, &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("wav")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x:1", MIMEType: "text/plain", Text: "inner"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "x:2", MIMEType: "application/zip", Blob: []byte("zip")}},
		}}, nil
	})
	s.AddResource(&sdk.Resource{URI: "note:1", Name: "first", MIMEType: "text/plain"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "remember the milk"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "Greets.", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}, {Name: "how"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Greet " + r.Params.Arguments["who"] + " " + r.Params.Arguments["how"]}}}}, nil
	})
	if mode == "many" {
		for i := range 60 {
			s.AddTool(&sdk.Tool{Name: fmt.Sprintf("filler_%d", i), Description: strings.Repeat("does nothing at all ", 40), InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("nothing"), nil })
		}
		s.AddTool(&sdk.Tool{Name: "createInvoice", Description: "Writes an invoice for a customer.", InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("invoice 1"), nil
		})
	}
	return s
}

// gate allows everything, or answers what it is told, and remembers what was asked.
type gate struct {
	mu    sync.Mutex
	asked []string
	no    error
}

func (g *gate) Ask(_ context.Context, r permission.Request) (permission.Reply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r.Permission+" "+strings.Join(r.Patterns, ","))
	return permission.Reply{Kind: permission.Once}, g.no
}

type answers [][]string

func (a answers) AskQuestions(_ context.Context, _ *tools.Call, qs []tools.Question) ([][]string, error) {
	if len(qs) != len(a) {
		return nil, fmt.Errorf("%d questions", len(qs))
	}
	return a, nil
}

// asServer makes the test binary a server, which ends at once: the race detector waits a second otherwise.
func asServer(mode string) map[string]string {
	env := map[string]string{"PILLION_TEST_MCP": mode, "GORACE": "atexit_sleep_ms=0"}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" { // make cover: without it the program complains in its last words
		env["GOCOVERDIR"] = dir
	}
	return env
}

func program(t *testing.T, mode string, change func(*Options)) *Set {
	t.Helper()
	o := Options{Root: t.TempDir(), Servers: []Server{{Name: "my srv", Command: []string{os.Args[0]}, Env: asServer(mode)}}}
	if change != nil {
		change(&o)
	}
	return started(t, New(o))
}

func started(t *testing.T, s *Set) *Set {
	t.Helper()
	t.Cleanup(func() { s.Close(context.Background()) })
	s.Start()
	s.Ready(t.Context(), 2*time.Minute)
	return s
}

func byName(t *testing.T, all []tools.Tool, id string) tools.Tool {
	t.Helper()
	for _, x := range all {
		if x.ID == id {
			return x
		}
	}
	var names []string
	for _, x := range all {
		names = append(names, x.ID)
	}
	t.Fatalf("no tool %s in %v", id, names)
	return tools.Tool{}
}

func run(t *testing.T, s *Set, id, input string, h tools.Host) (tools.Result, error) {
	t.Helper()
	if h.Gate == nil {
		h.Gate = &gate{}
	}
	tool := byName(t, s.Tools(t.Context(), "ses"), id)
	return tool.Run(t.Context(), json.RawMessage(input), &tools.Call{SessionID: "ses", CallID: "call_1", Tool: id, Host: h})
}

func TestAToolOfAServer(t *testing.T) {
	s := program(t, "all", nil)
	g := &gate{}
	r, err := run(t, s, "my_srv_echo_it", `{"text":"hello"}`, tools.Host{Gate: g})
	if err != nil || r.Output != "hello" || r.Title != "my srv: Echo" {
		t.Errorf("%+v %v", r, err)
	}
	if !slices.Equal(g.asked, []string{"my_srv_echo_it *"}) {
		t.Errorf("asked %v", g.asked)
	}
	if _, err := run(t, s, "my_srv_echo_it", `{"text":"hello"}`, tools.Host{Gate: &gate{no: permission.ErrDenied}}); !errors.Is(err, permission.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
	if _, err := run(t, s, "my_srv_echo_it", `{}`, tools.Host{}); err == nil || !strings.Contains(err.Error(), "text") {
		t.Errorf("a missing argument: %v", err)
	}
	if _, err := run(t, s, "my_srv_fail", `{}`, tools.Host{}); err == nil || err.Error() != "out of paper" {
		t.Errorf("%v", err)
	}
	st := s.Statuses()[0]
	if st.State != Ready || st.Title != "probe 1.2" || st.Prompts != 1 || !st.Resources {
		t.Errorf("%+v", st)
	}
	if !strings.Contains(s.Instructions(), "Call echo first.") {
		t.Error(s.Instructions())
	}
	if r, err := run(t, s, "my_srv_where", `{}`, tools.Host{}); err != nil || r.Output != "file://"+s.o.Root {
		t.Errorf("%v %v", r.Output, err)
	}
}

// A tool that is not in the list of a server is not offered, found or run, before and after the server changes its list.
func TestOnlyTheToolsOfAList(t *testing.T) {
	s := program(t, "all", func(o *Options) { o.Servers[0].Tools = []string{"echo it", "grow", "missing"} })
	names := func() (out []string) {
		for _, x := range s.Tools(t.Context(), "s") {
			if !strings.Contains(x.ID, "resource") {
				out = append(out, x.ID)
			}
		}
		return out
	}
	want := []string{"my_srv_echo_it", "my_srv_grow"}
	if got := names(); !slices.Equal(got, want) || s.Statuses()[0].Tools != 2 {
		t.Errorf("%q, %+v", got, s.Statuses()[0])
	}
	if _, err := run(t, s, "my_srv_grow", `{}`, tools.Host{}); err != nil { // adds a tool
		t.Fatal(err)
	}
	v := s.servers[0]
	v.mu.Lock()
	session := v.session
	v.mu.Unlock()
	if err := v.read(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("after a change: %q", got)
	}
	if _, ok := s.Find("s", "my_srv_fail"); ok {
		t.Error("a tool that is not in the list is found by its name")
	}
	none := program(t, "all", func(o *Options) { o.Servers[0].Tools = []string{} })
	if got := none.Statuses()[0].Tools; got != 0 {
		t.Errorf("an empty list offers %d tools", got)
	}
}

func TestAServerGetsNoKeys(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	t.Setenv("LC_TEST", "de")
	v := newServer(New(Options{}), Server{Name: "x", Env: map[string]string{"MINE": "1"}})
	env := strings.Join(environment(v.Env), "\n") + "\n"
	if strings.Contains(env, "secret") || !strings.Contains(env, "LC_TEST=de\n") || !strings.Contains(env, "MINE=1\n") || !strings.Contains(env, "PATH=") {
		t.Error(env)
	}
}

func TestContentIsConverted(t *testing.T) {
	r, err := run(t, program(t, "all", nil), "my_srv_picture", `{}`, tools.Host{})
	if err != nil {
		t.Fatal(err)
	}
	want := "one\n\n[audio of 3 bytes left out]\n\nResource: x:1\nMIME: text/plain\ninner\n\n[application/zip of 3 bytes left out: this type cannot be shown]"
	if r.Output != want || len(r.Attachments) != 1 || r.Attachments[0].Mime != "image/png" || string(r.Attachments[0].Data) != "png" {
		t.Errorf("%q %+v", r.Output, r.Attachments)
	}
	if got := convert(nil, map[string]any{"n": 1}, nil); got.Output != "{\n  \"n\": 1\n}" {
		t.Errorf("%q", got.Output)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	s := program(t, "all", nil)
	if r, err := run(t, s, "list_mcp_resources", `{}`, tools.Host{}); err != nil || !strings.Contains(r.Output, "note:1") {
		t.Errorf("%v %v", r.Output, err)
	}
	g := &gate{}
	r, err := run(t, s, "read_mcp_resource", `{"server":"my srv","uri":"note:1"}`, tools.Host{Gate: g})
	if err != nil || r.Output != "Resource: note:1\nMIME: text/plain\nremember the milk" || !slices.Equal(g.asked, []string{"read mcp:my srv:note:1"}) {
		t.Errorf("%q %v %v", r.Output, err, g.asked)
	}
	if _, err := run(t, s, "read_mcp_resource", `{"server":"other","uri":"note:1"}`, tools.Host{}); err == nil || !strings.Contains(err.Error(), "my srv") {
		t.Error(err)
	}
	if p := s.Prompts(); len(p) != 1 || p[0].Name != "my srv:greet" {
		t.Fatalf("%+v", p)
	}
	if r, err := s.Expand(t.Context(), "my srv:greet", []string{"Ann", "very", "warmly"}); err != nil || r.Output != "Greet Ann very warmly" {
		t.Errorf("%q %v", r.Output, err)
	}
	if _, err := s.Expand(t.Context(), "my srv:greet", nil); err == nil || !strings.Contains(err.Error(), "needs who") {
		t.Error(err)
	}
}

func TestAServerAsksThePerson(t *testing.T) {
	for _, mode := range []string{"all", "modern"} { // in the middle of a call; as its answer
		t.Run(mode, func(t *testing.T) { asksThePerson(t, program(t, mode, nil)) })
	}
}

func asksThePerson(t *testing.T, s *Set) {
	r, err := run(t, s, "my_srv_form", `{}`, tools.Host{Questions: answers{{"Bonn"}, {"Second"}, {"3"}, {"Yes"}}})
	var got struct {
		Action  string
		Content map[string]any
	}
	if err != nil || json.Unmarshal([]byte(r.Output), &got) != nil || got.Action != "accept" || fmt.Sprint(got.Content) != "map[city:Bonn class:b days:3 sure:true]" {
		t.Errorf("%q %v", r.Output, err)
	}
	if r, err := run(t, s, "my_srv_form", `{}`, tools.Host{}); err != nil || !strings.Contains(r.Output, "decline") {
		t.Errorf("nobody there: %q %v", r.Output, err)
	}
}

func TestAServerAsksTheModel(t *testing.T) {
	g := &gate{}
	s := program(t, "all", func(o *Options) {
		o.Sample = func(_ context.Context, session string, r Sample) (Sampled, error) {
			return Sampled{Text: session + ": " + r.System + ": " + r.Messages[0].Text + " four", Model: "m", Stop: "endTurn"}, nil
		}
	})
	r, err := run(t, s, "my_srv_think", `{}`, tools.Host{Gate: g})
	if err != nil || r.Output != "ses: short: two and two? four" || !slices.Contains(g.asked, "mcp_sampling my srv") {
		t.Errorf("%q %v %v", r.Output, err, g.asked)
	}
	if _, err := run(t, program(t, "all", nil), "my_srv_think", `{}`, tools.Host{}); err == nil {
		t.Error("answered without a model")
	}
}

func TestSilenceEndsACallAndProgressBreaksIt(t *testing.T) {
	limited := func(d time.Duration) *Set { return program(t, "all", func(o *Options) { o.Servers[0].Timeout = d }) }
	s := limited(200 * time.Millisecond)
	_, err := run(t, s, "my_srv_hang", `{}`, tools.Host{})
	var e *tools.Error
	if !errors.As(err, &e) || e.Kind != "timeout" {
		t.Errorf("%v", err)
	}
	// Four silences of two fifths of the limit exceed it together. On a busy machine one of them may exceed it alone, so the limit grows.
	for limit := 200 * time.Millisecond; ; limit *= 3 {
		tool := byName(t, limited(limit).Tools(t.Context(), "ses"), "my_srv_steps")
		var seen []float64
		r, err := tool.Run(t.Context(), fmt.Appendf(nil, `{"Pause":%d}`, limit*2/5), &tools.Call{CallID: "c9", Host: tools.Host{Gate: &gate{}}, OnMetadata: func(u tools.Update) {
			if p, ok := u.Metadata["progress"].(float64); ok {
				seen = append(seen, p)
			}
		}})
		if errors.As(err, &e) && e.Kind == "timeout" && limit < 10*time.Second {
			continue
		}
		if err != nil || r.Output != "done" || len(seen) == 0 {
			t.Errorf("%q %v %v", r.Output, err, seen)
		}
		return
	}
}

func TestCancelEndsACall(t *testing.T) {
	s := program(t, "all", nil)
	ctx, cancel := context.WithCancel(t.Context())
	tool := byName(t, s.Tools(ctx, "ses"), "my_srv_hang")
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := tool.Run(ctx, json.RawMessage(`{}`), &tools.Call{CallID: "c1", Host: tools.Host{Gate: &gate{}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// back waits until the first server has been started again. A call waits for that, too, but a busy machine may need longer.
func back(t *testing.T, s *Set) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		_, err := s.servers[0].connected(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestAServerThatDiesComesBack(t *testing.T) {
	s := program(t, "all", nil)
	_, err := run(t, s, "my_srv_exit", `{}`, tools.Host{})
	var e *tools.Error
	if !errors.As(err, &e) || e.Kind != "unavailable" {
		t.Fatalf("%v", err)
	}
	// the session's tools are still those of the last step; the call waits for the restart
	back(t, s)
	if r, err := run(t, s, "my_srv_echo_it", `{"text":"again"}`, tools.Host{}); err != nil || r.Output != "again" {
		t.Errorf("%q %v", r.Output, err)
	}
}

func TestAServerThatIsStartedAgainKeepsItsTools(t *testing.T) {
	s := program(t, "all", nil)
	had := len(s.Tools(t.Context(), "ses"))
	_, _ = run(t, s, "my_srv_exit", `{}`, tools.Host{})
	if now := len(s.Tools(t.Context(), "ses")); now != had {
		t.Errorf("%d tools, %d before", now, had)
	}
	back(t, s)
	if r, err := run(t, s, "my_srv_echo_it", `{"text":"again"}`, tools.Host{}); err != nil || r.Output != "again" {
		t.Errorf("%q %v", r.Output, err)
	}
}

func TestWhatAServerPrintsBesideItsMessagesIsPassedOver(t *testing.T) {
	s := program(t, "chatty", nil)
	if r, err := run(t, s, "my_srv_echo_it", `{"text":"fine"}`, tools.Host{}); err != nil || r.Output != "fine" {
		t.Errorf("%q %v %+v", r.Output, err, s.Statuses())
	}
}

func TestAPageThatComesAgainIsReadOnce(t *testing.T) {
	s := program(t, "again", nil)
	if got := s.Tools(t.Context(), "ses"); len(got) != 2 {
		t.Errorf("%d tools", len(got))
	}
}

func TestServersThatCannotStart(t *testing.T) {
	var mu sync.Mutex
	var notices []string
	say := func(_, text string) { mu.Lock(); defer mu.Unlock(); notices = append(notices, text) }
	for mode, want := range map[string]string{"dead": "exit status 3: no such database", "garbage": "[INFO] listening on nothing", "future": "2099"} {
		s := program(t, mode, func(o *Options) { o.Notice = say })
		st := s.Statuses()[0]
		if st.State == Ready || !strings.Contains(st.Reason, want) {
			t.Errorf("%s: %+v", mode, st)
		}
		if got := s.Tools(t.Context(), "ses"); len(got) != 0 {
			t.Errorf("%s: %v", mode, got)
		}
		s.Close(t.Context())
	}
	s := program(t, "", func(o *Options) { o.Servers[0].Command = []string{"/no/such/program"}; o.Notice = say })
	if st := s.Statuses()[0]; st.State != Off || !strings.Contains(st.Reason, "no such file") {
		t.Errorf("%+v", st)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(notices) != 4 || !strings.Contains(strings.Join(notices, "\n"), "pillion mcp test my srv") {
		t.Errorf("%q", notices)
	}
}

func TestAServerThatNeverAnswersHoldsNobodyUp(t *testing.T) {
	s := New(Options{Root: t.TempDir(), Servers: []Server{{Name: "mute", Command: []string{os.Args[0]}, Env: asServer("silent")}}})
	s.Start()
	s.Ready(t.Context(), 50*time.Millisecond)
	if st := s.Statuses()[0]; st.State != Starting {
		t.Errorf("%+v", st)
	}
	s.Close(context.Background()) // ends the program although it says nothing
}

// A server that hangs costs the first step the time that servers get to start, and no later step anything.
func TestAServerThatHangsDelaysOneStep(t *testing.T) {
	said := make(chan string, 10)
	s := New(Options{Root: t.TempDir(), Notice: func(_, text string) { said <- text }, Servers: []Server{
		{Name: "mute", Command: []string{os.Args[0]}, Env: asServer("silent")},
		{Name: "quick", Command: []string{os.Args[0]}, Env: asServer("1")},
	}})
	defer s.Close(context.Background())
	s.Start()
	for end := time.Now().Add(2 * time.Minute); s.Statuses()[1].State != Ready; time.Sleep(5 * time.Millisecond) { // it tells the set, not the test
		if time.Now().After(end) {
			t.Fatalf("%+v", s.Statuses()[1])
		}
	}
	began := time.Now()
	s.begun.Store(began.UnixNano()) // how long the quick one takes to start says how busy this machine is
	first := s.Tools(t.Context(), "s")
	if took := time.Since(began); took > 20*startWait {
		t.Errorf("the first step waited %s", took)
	}
	if text := <-said; len(first) == 0 || !strings.Contains(text, "mute") || strings.Contains(text, "quick") {
		t.Errorf("%d tools, %q", len(first), text)
	}
	began = time.Now()
	for range 20 {
		s.Tools(t.Context(), "s")
	}
	if took := time.Since(began); took > 10*startWait {
		t.Errorf("20 later steps waited %s", took)
	}
	if len(said) > 0 {
		t.Errorf("said again: %q", <-said)
	}
}

func TestAChangedListIsSeenAtTheNextStep(t *testing.T) {
	s := program(t, "all", nil)
	if _, err := run(t, s, "my_srv_grow", `{}`, tools.Host{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) { // the server tells us, nobody tells the test
		if slices.ContainsFunc(s.Tools(t.Context(), "ses"), func(x tools.Tool) bool { return x.ID == "my_srv_late" }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new tool did not come")
		}
	}
}

func TestManyToolsAreFound(t *testing.T) {
	s := program(t, "many", nil)
	offered := s.Tools(t.Context(), "ses")
	if size(offered) > 4<<10 {
		t.Errorf("%d bytes are offered", size(offered))
	}
	r, err := run(t, s, "tool_search", `{"query":"write invoices for customers"}`, tools.Host{})
	if err != nil || !strings.Contains(strings.SplitN(r.Output, "\n\n", 2)[1], "my_srv_createInvoice") {
		t.Fatalf("%q %v", r.Output, err)
	}
	if r, err := run(t, s, "my_srv_createInvoice", `{}`, tools.Host{}); err != nil || r.Output != "invoice 1" {
		t.Errorf("%q %v", r.Output, err)
	}
	if r, err := run(t, s, "tool_search", `{"query":"select:my_srv_echo_it"}`, tools.Host{}); err != nil || !strings.Contains(r.Output, "my_srv_echo_it") {
		t.Errorf("%q %v", r.Output, err)
	}
	if r, err := run(t, s, "tool_search", `{"query":"zebra"}`, tools.Host{}); err != nil || !strings.HasPrefix(r.Output, "No tool fits") {
		t.Errorf("%q %v", r.Output, err)
	}
	other := s.Tools(t.Context(), "another")
	if slices.ContainsFunc(other, func(x tools.Tool) bool { return x.ID == "my_srv_createInvoice" }) {
		t.Error("one session's search loads another's tools")
	}
	if x, ok := s.Find("another", "my_srv_createInvoice"); !ok || x.ID != "my_srv_createInvoice" {
		t.Error("a conversation from before this process does not find what it called")
	}
	if !slices.ContainsFunc(s.Tools(t.Context(), "another"), func(x tools.Tool) bool { return x.ID == "my_srv_createInvoice" }) {
		t.Error("what was found is not offered from then on")
	}
	if _, ok := s.Find("another", "my_srv_nothing"); ok {
		t.Error("found what is not there")
	}
}

func TestOverHTTP(t *testing.T) {
	server := testServer("all")
	for name, h := range map[string]http.Handler{
		"streamable": sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil),
		"sse":        sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil),
	} {
		t.Run(name, func(t *testing.T) {
			hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Key") != "secret" {
					http.Error(w, "who are you?", http.StatusForbidden)
					return
				}
				h.ServeHTTP(w, r)
			}))
			defer hs.Close()
			s := started(t, New(Options{Root: t.TempDir(), Servers: []Server{{Name: "web", URL: hs.URL, Headers: map[string]string{"X-Key": "secret"}, NoOAuth: true}}}))
			if r, err := run(t, s, "web_echo_it", `{"text":"over the wire"}`, tools.Host{}); err != nil || r.Output != "over the wire" {
				t.Errorf("%q %v %+v", r.Output, err, s.Statuses())
			}
			s.Close(t.Context())
			hs.CloseClientConnections()
		})
	}
}

func TestARemoteServerThatForgotTheSessionGetsAnotherOne(t *testing.T) {
	server := testServer("all")
	var forgotten sync.Map // sessions
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	var last atomic.Value
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("Mcp-Session-Id")
		if _, gone := forgotten.Load(id); gone && id != "" {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
		if id != "" {
			last.Store(id)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		for forgotten := range server.Sessions() {
			_ = forgotten.Close()
		}
		web.CloseClientConnections()
		web.Close()
	})
	s := started(t, New(Options{Root: t.TempDir(), Servers: []Server{{Name: "web", URL: web.URL}}}))
	for _, word := range []string{"one", "two"} {
		if r, err := run(t, s, "web_echo_it", `{"text":"`+word+`"}`, tools.Host{}); err != nil || r.Output != word {
			t.Fatalf("%q %v", r.Output, err)
		}
		forgotten.Store(last.Load(), true)
	}
	n := 0
	forgotten.Range(func(any, any) bool { n++; return true })
	if n != 2 {
		t.Errorf("%d sessions", n)
	}
}

func TestToolNames(t *testing.T) {
	taken := map[string]bool{}
	long := strings.Repeat("x", 80)
	for _, c := range [][3]string{{"my srv", "echo it", "my_srv_echo_it"}, {"a", "é/…", "a____"}} {
		if got := toolName(c[0], c[1], taken); got != c[2] {
			t.Errorf("%v: %s", c, got)
		}
	}
	a, b := toolName("s", long+"1", taken), toolName("s", long+"2", taken)
	if a == b || len(a) != maxName || len(b) != maxName {
		t.Errorf("%s %s", a, b)
	}
	taken["a_b"] = true
	if got := toolName("a", "b", taken); got == "a_b" || !strings.HasPrefix(got, "a_b_") {
		t.Error(got)
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string"}}}`))
	f.Add([]byte(`{"type":"string"}`))
	f.Add([]byte(`{"properties":null}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return
		}
		var got map[string]any
		out := schema(&sdk.Tool{InputSchema: v})
		if json.Unmarshal(out, &got) != nil || got["type"] != "object" || got["properties"] == nil || !json.Valid(bytes.TrimSpace(out)) {
			t.Errorf("%s became %s", raw, out)
		}
	})
}
