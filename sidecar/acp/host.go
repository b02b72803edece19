package acp

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/mention"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/sidecar/slash"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Host is what the connections of one sidecar share. Log, Listener and Project may be nil, nothing else.
type Host struct {
	Runtime   *agent.Runtime
	Editors   *editors.Registry // where questions of the runtime's sessions arrive
	Desk      *review.Desk      // reviews what was applied
	Grants    permission.Grants // remembered permissions
	Folders   Folders
	Terminals Terminals
	Auth      Auth
	Finder    *mention.Finder   // what @ may mention
	Problems  *ProblemHub       // what language servers say, for editors that follow it
	Reported  *editors.Problems // takes what editors themselves say is wrong
	Listener  Listener
	Project   Project // what is asked about a folder outside of turns; may be nil
	Version   string  // Pillion's
	// DataLimit is how long a program of the editor's may take to answer; 0 means editors.DataTimeout.
	DataLimit time.Duration
	Log       *slog.Logger

	mu      sync.Mutex
	serving []*Connection // connections that are served now; guarded by mu; replaced, never changed in place
}

// Folders are the settings of folders. Package main implements it with the app. A folder is named by its absolute
// path; its settings may change while sessions are open.
type Folders interface {
	// Models are the models that a session can use.
	Models(cwd string) []models.Choice
	// Commands are the slash commands besides the built-in ones.
	Commands(cwd string) []slash.Command
	// Rules are the permission rules in force for an agent.
	Rules(cwd, agent string) permission.Ruleset
	// Trust stores the editor's decision about a folder (said is nil without one) and returns a notice of the settings
	// that are held back; "" when there are none.
	Trust(cwd string, said *bool) (note string)
	// AgentMenu returns what an agent of another maker, if it is the session's model, lets a person choose, and its slash commands.
	AgentMenu(s agent.SessionInfo) ([]protocol.SessionConfigOption, []protocol.AvailableCommand)
	// ChooseForAgent sets an option of AgentMenu.
	ChooseForAgent(ctx context.Context, s agent.SessionInfo, option, value string) error
	// KeptDraft returns a notice of the draft in which the next prompt of a session that was opened again continues; "" without one.
	KeptDraft(s agent.SessionInfo) (note string)
	// PassMCP takes the MCP servers that an editor passes in, before its session starts.
	PassMCP(cwd string, servers []protocol.MCPServer) error
}

// Listener is called when a prompt has come, and when it has been answered. The sidecar gives memory back then, while the person reads.
type Listener interface {
	Asked()
	Answered()
}

// enter adds a connection to those that SettingsChanged notifies, until leave is called. The list is replaced and
// not changed, so that SettingsChanged can walk over it without the lock while an editor connects.
func (h *Host) enter(s *Connection) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving = append(slices.Clone(h.serving), s)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.serving = slices.DeleteFunc(slices.Clone(h.serving), func(x *Connection) bool { return x == s })
	}
}

// AgentMenuChanged sends the editors of a session its options and slash commands, because those of its agent have changed.
func (h *Host) AgentMenuChanged(session string) {
	h.eachSession(func(es *editorSession) {
		if es.ID() == session {
			es.send("config_option_update", &protocol.ConfigOptionUpdate{ConfigOptions: es.choices.configOptions(es.Info())})
			es.sendCommands()
		}
	})
}

// SettingsChanged sends every editor the slash commands of a folder, where they have changed.
func (h *Host) SettingsChanged(cwd string) {
	h.eachSession(func(es *editorSession) {
		if es.Info().Cwd == cwd {
			es.sendCommands()
		}
	})
}

// eachSession calls f for each session that an editor knows.
func (h *Host) eachSession(f func(*editorSession)) {
	h.mu.Lock()
	serving := h.serving
	h.mu.Unlock()
	for _, s := range serving {
		s.eachSession(f)
	}
}
