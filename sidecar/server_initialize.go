package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

func (s *Server) initialize(p *protocol.InitializeRequest) (*protocol.InitializeResponse, error) {
	c := editors.NewClient(*p)
	s.editor.Introduce(c)
	s.log.Info("editor connected", "name", c.Name, "version", c.Version, "protocol", p.ProtocolVersion, "pillion", c.Pillion.Version)
	caps := &protocol.AgentCapabilities{
		LoadSession:        true,
		PromptCapabilities: &protocol.PromptCapabilities{Image: true, EmbeddedContext: true},
		MCPCapabilities:    &protocol.MCPCapabilities{HTTP: s.o.MCP != nil, SSE: s.o.MCP != nil},
		SessionCapabilities: &protocol.SessionCapabilities{
			List: &protocol.SessionListCapabilities{}, Delete: &protocol.SessionDeleteCapabilities{}, Resume: &protocol.SessionResumeCapabilities{},
			Close: &protocol.SessionCloseCapabilities{}, AdditionalDirectories: &protocol.SessionAdditionalDirectoriesCapabilities{},
		},
	}
	if s.o.Logout != nil {
		caps.Auth = &protocol.AgentAuthCapabilities{Logout: &protocol.LogoutCapabilities{}}
	}
	return &protocol.InitializeResponse{
		ProtocolVersion:   protocol.Version, // the only one we speak: the editor decides whether that will do
		AgentCapabilities: caps,
		AgentInfo:         &protocol.Implementation{Name: "pillion", Title: "Pillion", Version: s.o.Version},
		AuthMethods:       s.authMethods(c),
		Meta:              s.meta(),
	}, nil
}

func (s *Server) meta() map[string]any {
	m := map[string]any{"pillion": protocol.Capabilities{Version: protocol.ExtensionVersion, Methods: s.announced(), Hunks: true, Buffers: true}}
	m["steering"] = map[string]any{"supported": true}
	return m
}

// announced are the _pillion methods that work here.
func (s *Server) announced() []string {
	var out []string
	for name := range s.extensions() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// authMethods leaves out what this editor cannot do: a terminal of its own.
func (s *Server) authMethods(c *editors.Client) []protocol.AuthMethod {
	out := []protocol.AuthMethod{}
	for _, m := range s.o.AuthMethods {
		if m.Type == "terminal" && (c.Caps.Auth == nil || !c.Caps.Auth.Terminal) {
			continue
		}
		out = append(out, m)
	}
	return out
}

func (s *Server) authenticate(ctx context.Context, p *protocol.AuthenticateRequest) (*protocol.AuthenticateResponse, error) {
	known := []string{}
	for _, m := range s.o.AuthMethods {
		id := ""
		switch v := m.Value.(type) {
		case *protocol.AuthMethodAgent:
			id = v.ID
		case *protocol.AuthMethodTerminal:
			id = v.ID
		}
		if id == p.MethodID {
			if s.o.Authenticate != nil {
				if err := s.o.Authenticate(ctx, id); err != nil {
					return nil, err
				}
			}
			return &protocol.AuthenticateResponse{}, nil
		}
		known = append(known, id)
	}
	if len(known) == 0 {
		return nil, rpc.InvalidParams("no authentication is needed; models' keys come from the environment or pillion.jsonc")
	}
	return nil, rpc.InvalidParams("methodId: unknown method %q; known are %q", p.MethodID, known)
}

func (s *Server) logout(ctx context.Context, _ *protocol.LogoutRequest) (*protocol.LogoutResponse, error) {
	if s.o.Logout == nil {
		return nil, rpc.MethodNotFound(protocol.MethodLogout)
	}
	if err := s.o.Logout(ctx); err != nil {
		return nil, fmt.Errorf("logout: %w", err)
	}
	return &protocol.LogoutResponse{}, nil
}
