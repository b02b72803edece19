package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

// visitor notes what it was asked.
type visitor struct {
	answer string
	asked  []string
}

func (v *visitor) AskQuestions(_ context.Context, _ *tools.Call, qs []tools.Question) ([][]string, error) {
	v.asked = append(v.asked, qs[0].Question)
	return [][]string{{v.answer}}, nil
}

func TestAPageIsShownAndNotOpened(t *testing.T) {
	type none struct{}
	server := sdk.NewServer(&sdk.Implementation{Name: "pages"}, nil)
	address := "https://pay.example/session?id=7"
	sdk.AddTool(server, &sdk.Tool{Name: "pay"}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Mode: "url", Message: "Pay first", URL: address, ElicitationID: "1"})
		if err != nil {
			return nil, nil, err
		}
		return text(got.Action), nil, nil
	})
	var calls atomic.Int32
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if p, ok := req.GetParams().(*sdk.CallToolParamsRaw); ok && p.Name == "first" && calls.Add(1)%2 == 1 {
				return nil, sdk.URLElicitationRequiredError([]*sdk.ElicitParams{{Mode: "url", Message: "Sign in", URL: "https://id.example/go", ElicitationID: "2"}})
			}
			return next(ctx, method, req)
		}
	})
	sdk.AddTool(server, &sdk.Tool{Name: "first"}, func(context.Context, *sdk.CallToolRequest, none) (*sdk.CallToolResult, any, error) {
		return text("done"), nil, nil
	})
	hs := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	s := started(t, New(Options{Root: t.TempDir(), Servers: []Server{{Name: "web", URL: hs.URL, NoOAuth: true}}}))
	defer s.Close(t.Context())

	for answer, want := range map[string]string{opened: "accept", "No": "decline"} {
		who := &visitor{answer: answer}
		r, err := run(t, s, "web_pay", `{}`, tools.Host{Questions: who})
		if err != nil || r.Output != want || len(who.asked) != 1 || !strings.Contains(who.asked[0], address) || !strings.Contains(who.asked[0], "of pay.example") {
			t.Errorf("%s: %q %v %q", answer, r.Output, err, who.asked)
		}
	}
	who := &visitor{answer: opened}
	if r, err := run(t, s, "web_first", `{}`, tools.Host{Questions: who}); err != nil || r.Output != "done" || len(who.asked) != 1 || !strings.Contains(who.asked[0], "https://id.example/go") {
		t.Errorf("wanted before: %q %v %q", r.Output, err, who.asked)
	}
	who = &visitor{answer: "No"}
	if _, err := run(t, s, "web_first", `{}`, tools.Host{Questions: who}); err == nil || len(who.asked) != 1 || calls.Load() != 3 {
		t.Errorf("refused: %v %q %d", err, who.asked, calls.Load())
	}
}

func TestPagesThatAreNotShown(t *testing.T) {
	for address, want := range map[string]string{
		"https://a.example/x y":                "a.example",
		"https://a.example/\u202e":             "a.example", // shown escaped
		"https://user@a.example/":              "",
		"https://\u0430.example/":              "",
		"http://a.example/":                    "",
		"http://127.0.0.1:8080/":               "127.0.0.1",
		"javascript:alert(1)":                  "",
		"file:///etc/passwd":                   "",
		"https://" + strings.Repeat("a", 2100): "",
		"https://a.example/?q=%0a#f":           "a.example",
		"https://":                             "",
	} {
		shown, host := page(address)
		if host != want || strings.Contains(shown, " ") {
			t.Errorf("%q: %q", address, host)
		}
		for _, c := range shown {
			if c > 126 {
				t.Errorf("%q is shown as %q", address, shown)
			}
		}
	}
}

// Who answers a server's question may take longer than the server may be silent.
func TestAQuestionStopsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		limit := time.Minute
		r := &running{silence: time.AfterFunc(limit, func() { ended.Store(true) }), limit: limit}
		first, second := r.person(), r.person()
		time.Sleep(10 * limit)
		r.active() // a progress note meanwhile
		first()
		time.Sleep(10 * limit)
		synctest.Wait()
		if ended.Load() {
			t.Fatal("the call was ended while somebody was asked")
		}
		second()
		time.Sleep(limit / 2)
		synctest.Wait()
		if ended.Load() {
			t.Fatal("the silence did not begin anew")
		}
		time.Sleep(limit)
		synctest.Wait()
		if !ended.Load() {
			t.Fatal("the clock does not run any more")
		}
	})
}

// A call that wants more rights says so, and the next sign-in asks for them besides those there were.
func TestMoreRights(t *testing.T) {
	p := newProvider(t)
	p.need = "notes:write"
	state := t.TempDir()
	fresh := func() *Set {
		return New(Options{Root: t.TempDir(), StateDir: state, Servers: []Server{{Name: "web", URL: p.URL + "/mcp"}}})
	}
	login := func() {
		t.Helper()
		if err := fresh().Login(t.Context(), "web", func(address string) error {
			r, err := http.Get(address)
			if err == nil {
				_ = r.Body.Close()
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	login()
	s := started(t, fresh())
	_, err := run(t, s, "web_echo_it", `{"text":"x"}`, tools.Host{})
	if err == nil || !strings.Contains(err.Error(), "more rights (notes:write)") || !strings.Contains(err.Error(), "pillion mcp login web") {
		t.Fatalf("%v", err)
	}
	s.Close(t.Context())
	login()
	s = started(t, fresh())
	defer s.Close(t.Context())
	if r, err := run(t, s, "web_echo_it", `{"text":"x"}`, tools.Host{}); err != nil || r.Output != "x" {
		t.Errorf("%q %v", r.Output, err)
	}
}

// A call by hand waits for the server it names, and for no other.
func TestACallByHandWaitsForItsServer(t *testing.T) {
	gate := make(chan struct{})
	server := testServer("all")
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	s := New(Options{Root: t.TempDir(), Servers: []Server{{Name: "web", URL: hs.URL, NoOAuth: true}, {Name: "mute", Command: []string{os.Args[0]}, Env: asServer("silent")}}})
	defer s.Close(context.Background())
	go func() {
		s.Ready(t.Context(), time.Nanosecond)
		close(gate)
	}()
	s.Await(t.Context(), "web_echo_it")
	if st := s.Statuses(); st[0].State != Starting || st[1].State != Ready {
		t.Errorf("%+v", st)
	}
}
