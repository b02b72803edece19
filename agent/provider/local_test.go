package provider_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func TestDiscoverFindsServersAndNothingElse(t *testing.T) {
	scripted := wiretest.New(t, wiretest.Step{Text: "hello"})
	scripted.Models = []string{"qwen3:8b", "nomic-embed-text", "evil\nname"}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer web.Close()
	tags := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/tags" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"models":[{"name":"llama3"}]}`))
	}))
	defer tags.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + gone.Addr().String()
	gone.Close()

	// A busy machine may answer later than a probe waits, so this asks until both were in time. It returns because a silent server has a limit.
	var found []provider.LocalServer
	for end := time.Now().Add(2 * time.Minute); len(found) < 2 && time.Now().Before(end); {
		found = provider.Discover(t.Context(), []provider.Probe{
			{ID: "nobody", URL: nobody}, {ID: "silent", URL: "http://" + silent.Addr().String()}, {ID: "web", URL: web.URL},
			{ID: "ollama", Name: "Ollama", URL: scripted.URL}, {ID: "old", URL: tags.URL},
		})
	}
	if len(found) != 2 || found[0].ID != "ollama" || len(found[0].Models) != 1 || found[0].Models[0].ID != "qwen3:8b" || found[1].Models[0].ID != "llama3" {
		t.Fatalf("%+v", found)
	}
	p, err := provider.New(found[0].Config())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := stream(t, p, &provider.Request{Model: found[0].Models[0], Messages: user("hi")}); err != nil || r.Text != "hello" {
		t.Errorf("%+v %v", r, err)
	}
}
