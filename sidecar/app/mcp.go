package app

import (
	"context"
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

// MCPServers are the MCP servers of each directory: those configured, and those the editor passed in. They are shared
// by a directory's sessions, and others take their place when the configuration changes.
type MCPServers struct {
	app     *App
	Changed func(cwd string) // told after what a directory's servers offer may have changed; nil: nobody wants to know

	mu     sync.Mutex
	sets   map[string]mcpSet       // guarded by mu; by directory
	passed map[string][]mcp.Server // guarded by mu; by directory
	old    []*mcp.Set              // guarded by mu: no longer configured, but calls may be under way
}

// mcpSet is a set with what it was made from.
type mcpSet struct {
	set    *mcp.Set
	config *config.Config
	key    string
}

func newMCPServers(a *App) *MCPServers {
	return &MCPServers{app: a, sets: map[string]mcpSet{}, passed: map[string][]mcp.Server{}}
}

// of are a directory's servers as they are configured now; nil: there are none.
func (m *MCPServers) of(cwd string) *mcp.Set {
	c := m.app.ConfigOf(cwd)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endOld()
	have := m.sets[cwd]
	if have.set != nil && have.config == c {
		return have.set
	}
	servers := ConfiguredMCP(c)
	for _, s := range m.passed[cwd] {
		servers = slices.DeleteFunc(servers, func(x mcp.Server) bool { return x.Name == s.Name })
		servers = append(servers, s)
	}
	raw, _ := json.Marshal(servers)
	if have.set != nil && have.key == string(raw) {
		m.sets[cwd] = mcpSet{have.set, c, have.key}
		return have.set
	}
	if have.set != nil {
		m.old = append(m.old, have.set)
		delete(m.sets, cwd)
	}
	if len(servers) == 0 {
		return nil
	}
	set := m.NewSet(cwd, c, servers)
	m.sets[cwd] = mcpSet{set, c, string(raw)}
	return set
}

// endOld ends replaced sets that nobody is using any more. mu is held.
func (m *MCPServers) endOld() {
	m.old = slices.DeleteFunc(m.old, func(s *mcp.Set) bool {
		if s.Busy() {
			return false
		}
		go s.Close(context.Background())
		return true
	})
}

// Pass takes an editor's servers for the sessions of a directory. They are the person's: the editor's settings.
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
			bad = append(bad, fmt.Errorf("a server of kind %q was left out: it is not known here", s.Type))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed[cwd] = list
	if have, ok := m.sets[cwd]; ok { // look again
		have.config = nil
		m.sets[cwd] = have
	}
	return errors.Join(bad...)
}

func headerMap(list []protocol.HTTPHeader) map[string]string {
	out := map[string]string{}
	for _, h := range list {
		out[h.Name] = h.Value
	}
	return out
}

// each are all sets that are up.
func (m *MCPServers) each() []*mcp.Set {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.old)
	for _, s := range m.sets {
		out = append(out, s.set)
	}
	return out
}

func (m *MCPServers) ended(session string) {
	for _, s := range m.each() {
		s.Ended(session)
	}
}

func (m *MCPServers) close(ctx context.Context) {
	var wait sync.WaitGroup
	for _, s := range m.each() {
		wait.Go(func() { s.Close(ctx) })
	}
	wait.Wait()
}

// ConfiguredMCP are the servers of a configuration that are switched on.
func ConfiguredMCP(c *config.Config) []mcp.Server {
	var out []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(c.MCP)) {
		s := c.MCP[name]
		if s.Enabled != nil && !*s.Enabled || len(s.Command) == 0 && s.URL == "" {
			continue
		}
		made := mcp.Server{Name: name, Dir: s.Cwd, Env: s.Environment, Headers: s.Headers, SSE: s.SSE, NoOAuth: s.OAuth.False, Timeout: time.Duration(s.Timeout) * time.Millisecond}
		made.Reason = c.Reason("mcp." + name)
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

func (m *MCPServers) NewSet(cwd string, c *config.Config, servers []mcp.Server) *mcp.Set {
	return mcp.New(mcp.Options{
		Servers: servers, Root: paths.Worktree(cwd), StateDir: m.app.Place.State, Budget: c.MCPBudget, Version: m.app.Place.version, Log: m.app.O.Log,
		Start: guard.Start, Sample: m.sample,
		Notice: func(level, text string) { m.app.noticeIn(cwd, level, text) },
		Changed: func() {
			if m.Changed != nil {
				go m.Changed(cwd) // an editor may be slow to read, and servers do not wait for it
			}
		},
	})
}

// tools are those of a session's servers now.
func (m *MCPServers) tools(ctx context.Context, s agent.SessionInfo) []tools.Tool {
	if set := m.of(s.Cwd); set != nil {
		return set.Tools(ctx, s.ID)
	}
	return nil
}

// find is a tool of a server that is not offered for want of room.
func (m *MCPServers) find(s agent.SessionInfo, name string) (tools.Tool, bool) {
	set := m.of(s.Cwd)
	if set == nil {
		return tools.Tool{}, false
	}
	return set.Find(s.ID, name)
}

// Await waits for the MCP server that may have a tool of this name.
func (m *MCPServers) Await(ctx context.Context, cwd, tool string) {
	if set := m.of(cwd); set != nil {
		set.Await(ctx, tool)
	}
}

// notes is what the servers say of their tools.
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

// sampleMax is how many tokens a server may have answered at once.
const sampleMax = 8192

// sample answers a server with the session's model. The person has been asked.
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

// resources are what a directory's servers can show. The servers are started, so that it is known soon.
func (m *MCPServers) resources(ctx context.Context, cwd string) []mcp.Resource {
	set := m.of(cwd)
	if set == nil {
		return nil
	}
	set.Start()
	return set.Known(ctx)
}
