package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

// shelf is a remote MCP server with a few resources.
func shelf(t *testing.T) *httptest.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "shelf", Version: "1"}, nil)
	for uri, text := range map[string]string{"note:milk": "Buy two bottles.", "note:file.": "Ends with a dot.", "file:///etc/hosts": "not the file"} {
		s.AddResource(&sdk.Resource{URI: uri, Name: "The " + strings.TrimPrefix(uri, "note:") + " note", MIMEType: "text/plain"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, Text: text}}}, nil
		})
	}
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "day:{date}", Name: "day"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "It is " + r.Params.URI}}}, nil
	})
	srv := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(srv.Close)
	return srv
}

// The whole program: resources are found like files, and what a prompt mentions or links to is read from the server,
// after asking.
func TestResourcesAreMentioned(t *testing.T) {
	home := atHome(t)
	cwd := scratch(t)
	srv := wiretest.New(t, wiretest.Step{Text: "One."}, wiretest.Step{Text: "Two."}, wiretest.Step{Text: "Three."})
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{
		"lsp": false, "model": "mine/m", "provider": {"mine": {"baseURL": %q, "models": ["m"]}},
		"permission": {"read": {"mcp:*": "ask"}}, "mcp": {"my shelf": {"url": %q}}}`, srv.OpenAIURL(), shelf(t).URL))
	p := acpProcess(t)
	p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	s, _ := p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, cwd))["sessionId"].(string)
	search := func(rest string) string {
		raw, _ := json.Marshal(p.request("_pillion/file/search", fmt.Sprintf(`{"sessionId":%q,%s}`, s, rest))["matches"])
		return string(raw)
	}
	asked := 0
	prompt := func(option string, blocks ...string) string {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"turn","method":"session/prompt","params":{"sessionId":%q,"prompt":[%s]}}`, s, strings.Join(blocks, ",")))
		for {
			m, _ := p.receive()
			if m["id"] == "turn" {
				break
			}
			if m["method"] == "session/request_permission" {
				asked++
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, string(mustJSON(m["id"])), option))
			}
		}
		all := srv.Requests()
		body := string(all[len(all)-1].Body)
		return body[strings.LastIndex(body, `"role":"user"`):]
	}
	// The first turn waits for servers that start; from then on their resources are known.
	sent := prompt("once", `{"type":"text","text":"What is on @my_shelf:note:milk? And (@my_shelf:note:file.), @my_shelf:note:milk."}`,
		`{"type":"resource_link","uri":"note:milk","name":"my_shelf:note:milk"}`)
	if asked != 2 || strings.Count(sent, "Buy two bottles.") != 1 || strings.Count(sent, "Ends with a dot.") != 1 {
		t.Errorf("asked %d times, sent %s", asked, sent)
	}
	sent = prompt("once", `{"type":"text","text":"And the day?"}`, `{"type":"resource_link","uri":"day:2026-01-02","name":"d"}`, `{"type":"resource_link","uri":"file:///etc/hosts","name":"hosts"}`)
	if asked != 3 || !strings.Contains(sent, "It is day:2026-01-02") || strings.Contains(sent, "not the file") {
		t.Errorf("asked %d times, sent %s", asked, sent)
	}
	sent = prompt("reject", `{"type":"text","text":"@my_shelf:note:other"}`)
	if asked != 4 || !strings.Contains(sent, "@my_shelf:note:other could not be read") {
		t.Errorf("asked %d times, sent %s", asked, sent)
	}
	if got := search(`"query":"milk"`); !strings.Contains(got, `"kind":"resource","name":"The milk note","path":"my_shelf:note:milk","uri":"note:milk"`) {
		t.Error(got)
	}
	if got := search(`"query":""`); !strings.Contains(got, `"a.txt"`) || !strings.Contains(got, "note:milk") || strings.Contains(got, "{date}") {
		t.Error(got)
	}
	if got := search(`"query":"milk","kinds":["file"]`); got != "[]" {
		t.Error(got)
	}
}
