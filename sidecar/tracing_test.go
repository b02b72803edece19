package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func TestTracesReachACollector(t *testing.T) {
	got := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req collectorpb.ExportTraceServiceRequest
		if r.URL.Path != "/v1/traces" || r.Header.Get("X-Team") != "us" || proto.Unmarshal(body, &req) != nil {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		for _, rs := range req.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					got <- s.Name
				}
			}
		}
	}))
	defer collector.Close()
	srv := wiretest.New(t, wiretest.Step{Text: "hi"})
	home := atHome(t)
	put(t, home+"/config/pillion/pillion.jsonc", fmt.Sprintf(`{"model":"t/m","provider":{"t":{"baseURL":%q}},"tracing":{"enabled":true,"endpoint":%q,"headers":{"X-Team":"us"}}}`, srv.OpenAIURL(), collector.URL))
	cwd := home + "/project"
	put(t, cwd+"/pillion.jsonc", `{"tracing":{"enabled":true,"endpoint":"http://127.0.0.1:1","content":true}}`) // no business of a project's
	p := acpProcess(t)
	p.request("initialize", `{"protocolVersion":1}`)
	session := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd))["sessionId"]
	p.request("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"hello"}]}`, session))
	seen := map[string]bool{}
	for limit := time.After(patience); len(seen) < 3; {
		select {
		case name := <-got:
			seen[name] = true
		case <-limit:
			t.Fatal(seen)
		}
	}
	if !seen["invoke_agent build"] || !seen["step"] || !seen["chat m"] {
		t.Error(seen)
	}
}
