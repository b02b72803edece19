package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The four engines' answers, in the shapes of their documentation.
func TestEngines(t *testing.T) {
	var got *http.Request
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, sent = r, string(b)
		switch r.URL.Path {
		case "/exa":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Title: Go\"}]}}\n\n")
		case "/exa-fails":
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no credit"}}`)
		case "/brave":
			_, _ = io.WriteString(w, `{"web":{"results":[{"title":"The <strong>Go</strong> site","url":"https://go.dev","description":"A &amp; B","age":"2 days ago"}]}}`)
		case "/tavily":
			_, _ = io.WriteString(w, `{"results":[{"title":"Go","url":"https://go.dev","content":"`+strings.Repeat("é", 500)+`"}]}`)
		case "/search":
			_, _ = io.WriteString(w, `{"results":[{"title":"A","url":"https://a"},{"title":"B","url":"https://b"},{"title":"C","url":"https://c"}]}`)
		case "/html/search":
			_, _ = io.WriteString(w, `<html>`)
		case "/401":
			w.WriteHeader(401)
		}
	}))
	defer s.Close()
	ask := func(e Engine, q Query) (string, error) {
		q.Text = "go lang"
		return e.Search(t.Context(), q)
	}
	if r, err := ask(Engine{Provider: "exa", URL: s.URL + "/exa", Key: "k"}, Query{Code: true, Tokens: 2000}); err != nil || r != "Title: Go" || got.URL.Query().Get("exaApiKey") != "k" || !strings.Contains(sent, `"get_code_context_exa"`) || !strings.Contains(sent, "2000") {
		t.Errorf("%q %v %s", r, err, sent)
	}
	if _, err := ask(Engine{Provider: "exa", URL: s.URL + "/exa-fails"}, Query{}); err == nil || err.Error() != "exa: no credit" {
		t.Error(err)
	}
	var call struct {
		Params struct{ Arguments map[string]any }
	}
	if err := json.Unmarshal([]byte(sent), &call); err != nil || call.Params.Arguments["numResults"] != 8.0 || call.Params.Arguments["type"] != "auto" {
		t.Errorf("%s", sent)
	}
	if r, err := ask(Engine{Provider: "brave", URL: s.URL + "/brave", Key: "k"}, Query{}); err != nil || r != "Title: The Go site\nURL: https://go.dev\nDate: 2 days ago\nA & B" || got.Header.Get("X-Subscription-Token") != "k" {
		t.Errorf("%q %v", r, err)
	}
	if r, err := ask(Engine{Provider: "tavily", URL: s.URL + "/tavily", Key: "k"}, Query{Characters: 300}); err != nil || strings.Count(r, "é") != 300 || got.Header.Get("Authorization") != "Bearer k" {
		t.Errorf("%q %v", r, err)
	}
	if r, err := ask(Engine{Provider: "searxng", URL: s.URL + "/"}, Query{Results: 2}); err != nil || strings.Count(r, "Title:") != 2 {
		t.Errorf("%q %v", r, err)
	}
	for want, e := range map[string]Engine{"formats": {Provider: "searxng", URL: s.URL + "/html"}, "key": {Provider: "brave", URL: s.URL + "/401"}, "instance": {Provider: "searxng"}, "refused": {Provider: "tavily", URL: "http://127.0.0.1:1", Key: "secret"}} {
		if _, err := ask(e, Query{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := ask(Engine{}, Query{}); !errors.Is(err, ErrNoEngine) {
		t.Error(err)
	}
	if _, err := ask(Engine{Provider: "brave"}, Query{Code: true}); err == nil {
		t.Error("brave searched for code")
	}
	if _, err := ask(Engine{Provider: "exa", URL: "http://127.0.0.1:1/?x", Key: "secret"}, Query{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
