package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/web"
)

// webGate answers by permission and remembers what was asked.
type webGate struct {
	no    map[string]error
	asked []string
}

func (g *webGate) Ask(_ context.Context, r permission.Request) (permission.Reply, error) {
	g.asked = append(g.asked, r.Permission+" "+strings.Join(r.Patterns, " ")+" | "+strings.Join(r.Always, " "))
	return permission.Reply{Kind: permission.Once}, g.no[r.Permission]
}

func TestWebFetch(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("elsewhere")) }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/png":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("png"))
		case "/go":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/none":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<script>all()</script>"))
		default:
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<h1>Hello</h1>"))
		}
	}))
	defer s.Close()
	at, elsewhere := strings.TrimPrefix(s.URL, "http://"), strings.TrimPrefix(other.URL, "http://")
	tool := WebFetch(Env{Web: WebOptions{Client: web.New(web.Options{})}})
	run := func(g *webGate, input string) (tools.Result, error) {
		return tool.Run(t.Context(), json.RawMessage(input), &tools.Call{Tool: "webfetch", Host: tools.Host{Gate: g}})
	}
	page := `{"url":"` + s.URL + `"}`

	g := &webGate{}
	r, err := run(g, page)
	if err != nil || r.Output != "# Hello" || r.Title != s.URL+" (text/html)" {
		t.Errorf("%+v %v", r, err)
	}
	if want := []string{"webfetch " + s.URL + " | " + s.URL + "/*", "webfetch_private " + at + " | " + at}; !slices.Equal(g.asked, want) {
		t.Errorf("%q", g.asked)
	}
	for _, name := range []string{"webfetch", "webfetch_private"} {
		if _, err := run(&webGate{no: map[string]error{name: permission.ErrDenied}}, page); !errors.Is(err, permission.ErrDenied) {
			t.Errorf("%s denied: %v", name, err)
		}
	}
	if r, err := run(&webGate{}, `{"url":"`+s.URL+`/png"}`); err != nil || len(r.Attachments) != 1 || r.Attachments[0].Mime != "image/png" {
		t.Errorf("%+v %v", r, err)
	}
	g = &webGate{}
	if r, err := run(g, `{"url":"`+s.URL+`/go"}`); err != nil || r.Output != "elsewhere" || !slices.ContainsFunc(g.asked, func(s string) bool { return strings.HasPrefix(s, "webfetch_private "+elsewhere) }) {
		t.Errorf("%+v %v %q", r, err, g.asked)
	}
	if r, err := run(&webGate{}, `{"url":"`+s.URL+`/none"}`); err != nil || !strings.Contains(r.Output, "built by scripts") {
		t.Errorf("%+v %v", r, err)
	}
	for input, kind := range map[string]string{`{"url":"file:///etc/passwd"}`: "bad_url", `{"url":"http://169.254.169.254:80/latest"}`: "private", `{"url":"https://x.example","format":"pdf"}`: "invalid"} {
		g := &webGate{}
		_, err := run(g, input)
		var e *tools.Error
		if !errors.As(err, &e) || e.Kind != kind || slices.ContainsFunc(g.asked, func(s string) bool { return strings.HasPrefix(s, privatePlace) }) {
			t.Errorf("%s: %v %q", input, err, g.asked)
		}
	}
}

func TestWebToolsAreOfferedAsConfigured(t *testing.T) {
	ids := func(o WebOptions) string {
		var out []string
		for _, x := range webTools(Env{Web: o}) {
			out = append(out, x.ID)
		}
		return strings.Join(out, " ")
	}
	c := web.New(web.Options{})
	for want, o := range map[string]WebOptions{"": {}, "webfetch": {Client: c}, "webfetch websearch": {Client: c, Engine: web.Engine{Provider: "brave"}}, "webfetch websearch codesearch": {Client: c, Engine: web.Engine{Provider: "exa"}}} {
		if got := ids(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
