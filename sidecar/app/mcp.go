package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/mcp"
	"github.com/pillion-dev/pillion/tools/paths"
)

// MCPServers manages the MCP servers of each directory: the configured ones and those that the editor passed. The sessions of a directory
// share them. When the configuration changes, they are replaced.
type MCPServers struct {
	app     *App
	Changed func(cwd string) // called when the tools, prompts or resources of a directory's servers may have changed; may be nil

	mu       sync.Mutex
	sets     map[string]mcpSet       // guarded by mu; by directory
	passed   map[string][]mcp.Server // guarded by mu; by directory
	replaced []*mcp.Set              // guarded by mu; sets that are no longer configured but may still run calls
}

// mcpSet is a set and what it was made from. config is compared by identity, which is fast; if it differs, key, the servers as JSON, tells
// whether the servers or only another setting has changed. Restarting servers for every saved setting would lose their state.
type mcpSet struct {
	set    *mcp.Set
	config *config.Config
	key    string
}

// newMCPServers returns an empty registry; a server starts when a session needs it.
func newMCPServers(a *App) *MCPServers {
	return &MCPServers{app: a, sets: map[string]mcpSet{}, passed: map[string][]mcp.Server{}}
}

// of returns a directory's servers as they are configured at present; nil when there are none. Servers of the editor win over configured
// ones of the same name. It starts no server.
func (m *MCPServers) of(cwd string) *mcp.Set {
	if m.app.O.NoMCP {
		return nil
	}
	c := m.app.ConfigOf(cwd)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeReplaced()
	have := m.sets[cwd]
	if have.set != nil && have.config == c {
		return have.set
	}
	servers := ConfiguredMCP(c)
	for _, s := range m.passed[cwd] {
		// Two servers of one name would offer tools of the same names.
		servers = slices.DeleteFunc(servers, func(x mcp.Server) bool { return x.Name == s.Name })
		servers = append(servers, s)
	}
	key := keyOf(servers)
	if have.set != nil && have.key == key {
		m.sets[cwd] = mcpSet{have.set, c, have.key}
		return have.set
	}
	if have.set != nil {
		m.replaced = append(m.replaced, have.set)
		delete(m.sets, cwd)
	}
	if len(servers) == 0 {
		return nil
	}
	set := m.NewSet(cwd, c, servers)
	m.sets[cwd] = mcpSet{set, c, key}
	return set
}

// closeReplaced closes the replaced sets that no call uses any more, in the background, because a server may take seconds to end. The
// caller holds mu.
func (m *MCPServers) closeReplaced() {
	m.replaced = slices.DeleteFunc(m.replaced, func(s *mcp.Set) bool {
		if s.Busy() {
			return false
		}
		go s.Close(context.Background())
		return true
	})
}

// Pass sets the servers that an editor passes with session/new (ACP, mcpServers). They are trusted, because they come from the person's own
// editor settings. They replace the servers that were passed for the directory before. The error names servers of an unknown kind; the
// others are used.
func (m *MCPServers) Pass(cwd string, servers []protocol.MCPServer) error {
	var list []mcp.Server
	var bad []error
	for _, s := range servers {
		switch v := s.Value.(type) {
		case *protocol.MCPServerStdio:
			env := map[string]string{}
			for _, e := range v.Env {
				env[e.Name] = e.Value
			}
			list = append(list, mcp.Server{Name: v.Name, Command: append([]string{v.Command}, v.Args...), Env: env})
		case *protocol.MCPServerHTTP:
			list = append(list, mcp.Server{Name: v.Name, URL: v.URL, Headers: headerMap(v.Headers)})
		case *protocol.MCPServerSSE:
			list = append(list, mcp.Server{Name: v.Name, URL: v.URL, Headers: headerMap(v.Headers), SSE: true})
		default:
			bad = append(bad, fmt.Errorf("an MCP server of kind %q was left out: this version does not support it", s.Type))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed[cwd] = list
	if have, ok := m.sets[cwd]; ok { // makes the next of compare the new list
		have.config = nil
		m.sets[cwd] = have
	}
	return errors.Join(bad...)
}

// headerMap converts ACP's list of headers to a map; the last of several headers of one name counts.
func headerMap(list []protocol.HTTPHeader) map[string]string {
	out := map[string]string{}
	for _, h := range list {
		out[h.Name] = h.Value
	}
	return out
}

// all returns the sets that may be running, including replaced ones. Callers use them without mu, because a server may answer slowly.
func (m *MCPServers) all() []*mcp.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.replaced)
	for _, s := range m.sets {
		out = append(out, s.set)
	}
	return out
}

// sessionEnded drops what the sets keep for a session.
func (m *MCPServers) sessionEnded(session string) {
	// Replaced sets may also keep something for the session.
	for _, s := range m.all() {
		s.Ended(session)
	}
}

// close ends all servers concurrently, within ctx, so that one that hangs does not use up the time of the others.
func (m *MCPServers) close(ctx context.Context) {
	var wait sync.WaitGroup
	for _, s := range m.all() {
		wait.Go(func() { s.Close(ctx) })
	}
	wait.Wait()
}

// ConfiguredMCP returns the enabled servers of a configuration, sorted by name, so that two loads of one file compare equal. An entry with
// neither command nor address cannot be started and is left out.
func ConfiguredMCP(c *config.Config) []mcp.Server {
	var out []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(c.MCP)) {
		s := c.MCP[name]
		if s.Enabled != nil && !*s.Enabled || len(s.Command) == 0 && s.URL == "" {
			continue
		}
		made := mcp.Server{Name: name, Dir: s.Cwd, Env: s.Environment, Headers: s.Headers, SSE: s.SSE, Tools: s.Tools, NoOAuth: s.OAuth.False, Timeout: time.Duration(s.Timeout) * time.Millisecond}
		// guard checks this reason at each start and connection.
		made.Reason = c.Reason("mcp." + name)
		// With both a command and an address the type decides; without a type, the command wins.
		if s.Type == "remote" || len(s.Command) == 0 {
			made.URL = s.URL
		} else {
			made.Command = s.Command
		}
		if v := s.OAuth.Value; v.ClientID != "" || v.Scope != "" {
			made.OAuth = &mcp.OAuth{ClientID: v.ClientID, ClientSecret: v.ClientSecret, Scopes: strings.Fields(v.Scope)}
		}
		out = append(out, made)
	}
	return out
}

// NewSet makes the servers of a directory, which start at their first use. Notices go to the directory's sessions.
func (m *MCPServers) NewSet(cwd string, c *config.Config, servers []mcp.Server) *mcp.Set {
	return mcp.New(m.options(cwd, c, servers))
}

// options returns the options of NewSet. A draft has servers of its own, which differ only in how they are started.
func (m *MCPServers) options(cwd string, c *config.Config, servers []mcp.Server) mcp.Options {
	return mcp.Options{
		Servers: servers, Root: paths.Worktree(cwd), StateDir: m.app.Place.State, Budget: c.MCPBudget, Version: m.app.Place.version, Log: m.app.O.Log,
		Start: guard.Start, Sample: m.sample,
		Notice: func(level, text string) { m.app.noticeIn(cwd, level, text) },
		Changed: func() {
			if m.Changed != nil {
				go m.Changed(cwd) // in the background, so that an editor that reads slowly does not hold up a server
			}
		},
	}
}

// tools returns the tools that a session's servers offer at present.
func (m *MCPServers) tools(ctx context.Context, s agent.SessionInfo) []tools.Tool {
	if set := m.of(s.Cwd); set != nil {
		return set.Tools(ctx, s.ID)
	}
	return nil
}

// find returns a tool that is not offered because the tools of all servers together would use too much of the context (mcp_budget). A model
// learns its name from tool_search.
func (m *MCPServers) find(s agent.SessionInfo, name string) (tools.Tool, bool) {
	set := m.of(s.Cwd)
	if set == nil {
		return tools.Tool{}, false
	}
	return set.Find(s.ID, name)
}

// Await waits while the server starts that may have a tool of this name, so that a script that calls one tool need not retry.
func (m *MCPServers) Await(ctx context.Context, cwd, tool string) {
	if set := m.of(cwd); set != nil {
		set.Await(ctx, tool)
	}
}

// Statuses returns the state of a directory's servers, sorted by name.
func (m *MCPServers) Statuses(cwd string) []mcp.Status {
	if set := m.of(cwd); set != nil {
		return set.Statuses()
	}
	return nil
}

// notes returns the servers' instructions for the system prompt.
func (m *MCPServers) notes(cwd string) []string {
	set := m.of(cwd)
	if set == nil {
		return nil
	}
	if text := set.Instructions(); text != "" {
		return []string{text}
	}
	return nil
}

// sampleMax limits the answer to a server's sampling request, in tokens: the server chooses the number, and the person pays.
const sampleMax = 8192

// sample answers a server's sampling request (MCP, sampling/createMessage) with the session's model. Package mcp has already asked the
// person.
func (m *MCPServers) sample(ctx context.Context, session string, r mcp.Sample) (mcp.Sampled, error) {
	s, ok := m.app.Runtime.Session(session)
	if !ok {
		return mcp.Sampled{}, fmt.Errorf("session %s has ended", session)
	}
	info := s.Info()
	via, model, err := m.app.Models.Resolve(ctx, info.Cwd, info.Model)
	if err != nil {
		return mcp.Sampled{}, err
	}
	// The suffix separates this conversation from what providers cache for the session's id.
	req := &provider.Request{Model: model, MaxOutput: int(min(max(r.MaxTokens, 1), sampleMax)), SessionID: session + "-mcp"}
	if r.System != "" {
		req.System = []string{r.System}
	}
	for _, said := range r.Messages {
		role := provider.RoleUser
		if said.Role == "assistant" {
			role = provider.RoleAssistant
		}
		parts := []provider.Part{{Type: provider.PartText, Text: said.Text}}
		for _, f := range said.Images {
			parts = append(parts, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: f.Mime, Name: f.Name, Data: f.Data}}})
		}
		req.Messages = append(req.Messages, provider.Message{ID: fmt.Sprintf("m%d", len(req.Messages)), Role: role, Parts: parts})
	}
	out := mcp.Sampled{Model: model.String(), Stop: "endTurn"}
	var text strings.Builder
	err = via.Stream(ctx, req, func(e provider.Event) error {
		switch {
		case e.Type == provider.EventText:
			text.WriteString(e.Text)
		case e.Type == provider.EventStop && e.Stop == provider.StopMaxTokens:
			out.Stop = "maxTokens"
		}
		return nil
	})
	out.Text = text.String()
	return out, err
}

// resources returns the resources that a directory's connected servers list. It also starts the servers, so that a later search finds more.
func (m *MCPServers) resources(ctx context.Context, cwd string) []mcp.Resource {
	set := m.of(cwd)
	if set == nil {
		return nil
	}
	set.Start()
	return set.Known(ctx)
}

// keyOf returns a key that is equal for equal servers: servers with the same key are not restarted when the configuration is read again.
func keyOf(servers []mcp.Server) string {
	raw, err := json.Marshal(servers)
	if err != nil { // a field that JSON cannot express: a constant key would keep the old servers for ever
		return rand.Text()
	}
	return string(raw)
}
