package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The prompts of a server are slash commands as soon as it is up, also while nothing is asked, and follow its list.
func TestCommandsOfAServerFollowItsList(t *testing.T) {
	home := atHome(t)
	server := sdk.NewServer(&sdk.Implementation{Name: "theirs", Version: "1"}, nil)
	prompt := func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	}
	server.AddPrompt(&sdk.Prompt{Name: "one"}, prompt)
	remote := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() { remote.CloseClientConnections(); remote.Close() })
	put(t, filepath.Join(home, "config/pillion/pillion.jsonc"), fmt.Sprintf(`{"lsp": false, "mcp": {"theirs": {"type": "remote", "url": %q}}}`, remote.URL))
	p := acpProcess(t)
	p.request("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	p.request("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, t.TempDir()))
	commands := func(there, notThere string) {
		t.Helper()
		for {
			m, line := p.receive()
			if m["method"] == "session/update" && strings.Contains(line, "available_commands_update") && strings.Contains(line, there) && !strings.Contains(line, notThere) {
				return
			}
		}
	}
	commands(`"name":"theirs:one"`, `"name":"theirs:two"`)
	server.AddPrompt(&sdk.Prompt{Name: "two"}, prompt)
	commands(`"name":"theirs:two"`, `"name":"theirs:three"`)
	server.RemovePrompts("one")
	commands(`"name":"theirs:two"`, `"name":"theirs:one"`)
}
