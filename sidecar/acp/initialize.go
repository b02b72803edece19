package acp

import (
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// initialize answers initialize. The protocol version in the answer is the only one that is spoken; an editor of
// another version must decide whether to continue.
func (s *Connection) initialize(p *protocol.InitializeRequest) (*protocol.InitializeResponse, error) {
	c := editors.NewClient(*p)
	// From here on requests to the editor follow what it has announced.
	s.editor.Introduce(c)
	if s.host.DataLimit > 0 {
		s.editor.SetLimit(s.host.DataLimit)
	}
	s.log.Info("editor connected", "name", c.Name, "version", c.Version, "protocol", p.ProtocolVersion, "pillion", c.Pillion.Version)
	caps := &protocol.AgentCapabilities{
		LoadSession:        true,
		PromptCapabilities: &protocol.PromptCapabilities{Image: true, EmbeddedContext: true},
		MCPCapabilities:    &protocol.MCPCapabilities{HTTP: true, SSE: true},
		SessionCapabilities: &protocol.SessionCapabilities{
			List: &protocol.SessionListCapabilities{}, Delete: &protocol.SessionDeleteCapabilities{}, Resume: &protocol.SessionResumeCapabilities{},
			Close: &protocol.SessionCloseCapabilities{}, AdditionalDirectories: &protocol.SessionAdditionalDirectoriesCapabilities{},
		},
	}
	return &protocol.InitializeResponse{
		ProtocolVersion:   protocol.Version,
		AgentCapabilities: caps,
		AgentInfo:         &protocol.Implementation{Name: "pillion", Title: "Pillion", Version: s.host.Version},
		AuthMethods:       []protocol.AuthMethod{},
		Meta:              s.meta(),
	}, nil
}

// meta is _meta of the answer: what this sidecar does beyond ACP. "steering" is the key that other agents use for it.
func (s *Connection) meta() map[string]any {
	m := map[string]any{"pillion": protocol.Capabilities{Version: protocol.ExtensionVersion, Methods: s.Announced(), Hunks: true, Buffers: true}}
	m["steering"] = map[string]any{"supported": true}
	return m
}

// Announced are the _pillion methods that this side answers, as initialize tells the editor.
func (s *Connection) Announced() []string {
	var out []string
	for name := range s.methods {
		if strings.HasPrefix(name, "_pillion/") {
			out = append(out, name)
		}
	}
	// Sorted, so that the answer is the same at every start.
	slices.Sort(out)
	return out
}

// authenticate refuses: no method was offered, but some editors ask anyway, and the person needs to know where keys
// are set.
func authenticate(*protocol.AuthenticateRequest) (*protocol.AuthenticateResponse, error) {
	return nil, rpc.InvalidParams("no authentication is needed; models' keys come from the environment or pillion.jsonc")
}
