package external

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools/mcp"
)

// lender serves Pillion's tools to the agents over MCP, so that they need not guess what a language server knows. ACP can only name a
// server's address to an agent, so the tools are behind HTTP on loopback, each agent with a path and a token of its own. An agent in a
// draft reaches no socket in the file system.
type lender struct {
	mu    sync.Mutex
	ln    net.Listener     // guarded by mu; nil before the first agent that can use it
	srv   *http.Server     // guarded by mu
	links map[string]*link // guarded by mu; by path
	last  int              // guarded by mu; the number in the last path
}

// lentName is what the agents call the server.
const lentName = "pillion"

const lentInstructions = "Pillion's tools know this project through its language servers: definitions, references, renames and diagnostics by name, as the files are now. verdict says which errors your changes introduce and fix; call it before you end."

// serve makes the tools of a link's session reachable and returns its server in the form of session/new. It returns nil where the agent
// takes no servers over HTTP or there is nothing to lend.
func (x *lender) serve(l *link) (any, error) {
	if l.can.MCPCapabilities == nil || !l.can.MCPCapabilities.HTTP || len(l.agents.o.Lent(l.info)) == 0 {
		return nil, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ln == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		x.ln, x.links = ln, map[string]*link{}
		x.srv = &http.Server{Handler: http.HandlerFunc(x.serveHTTP), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = x.srv.Serve(ln) }() // ends with close
	}
	token := mcp.Token()
	l.lent = mcp.Handler(token, l.server, l.agents.o.Log)
	x.last++
	path := "/" + strconv.Itoa(x.last)
	x.links[path] = l
	return map[string]any{"type": "http", "name": lentName, "url": "http://" + x.ln.Addr().String() + path,
		"headers": []any{map[string]any{"name": "Authorization", "value": "Bearer " + token}}}, nil
}

// serveHTTP hands a request to the link of its path, which checks the token.
func (x *lender) serveHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	l := x.links[r.URL.Path]
	x.mu.Unlock()
	if l == nil {
		http.NotFound(w, r)
		return
	}
	l.lent.ServeHTTP(w, r)
}

// end makes a link's tools unreachable.
func (x *lender) end(l *link) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for path, of := range x.links {
		if of == l {
			delete(x.links, path)
		}
	}
}

func (x *lender) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.srv != nil {
		_ = x.srv.Close()
	}
}

// server makes the MCP server of one connection of the agent.
func (l *link) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: lentName, Title: "Pillion", Version: l.agents.o.Version},
		&sdk.ServerOptions{Instructions: lentInstructions, Logger: l.agents.o.Log, Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	for _, t := range l.agents.o.Lent(l.info) {
		s.AddTool(mcp.Offer(t), l.callLent)
	}
	return s
}

// callLent carries out tools/call in the running turn: by its rules, in its draft, shown as the agent's own call of this tool where there is
// one. A failure is a result with isError, which the agent's model reads.
func (l *link) callLent(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	failed := func(text string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
	t, err := l.current()
	if err != nil {
		return failed(err.Error())
	}
	defer t.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	for _, tool := range l.agents.o.Lent(l.info) {
		if tool.ID != r.Params.Name {
			continue
		}
		input := r.Params.Arguments
		if len(input) == 0 { // it may be missing in tools/call
			input = json.RawMessage("{}")
		}
		// The agent shows this call itself, perhaps a moment later, because that comes another way. What is reviewed call by call needs a
		// call of its own.
		within := t.host.Called(tool.ID)
		if within == "" && (tool.ReadOnly || t.place.Held) {
			within = "lent_" + rand.Text()
		}
		d, err := t.run(ctx, within, tool, input, nil)
		if err != nil {
			return failed(strings.TrimSpace(d.Output + "\n" + d.Error))
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: d.Output}}}, nil
	}
	return failed("there is no tool " + r.Params.Name + " any more")
}
