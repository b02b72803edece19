package external

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// menu is what an agent lets a person choose in a session, as the agent said last. It is stored, so that it is there before the agent is
// started again.
type menu struct {
	Agent    string                         `json:"agent"`
	Options  []protocol.SessionConfigOption `json:"options,omitempty"`
	Modes    *protocol.SessionModeState     `json:"modes,omitempty"` // of an agent whose modes are no option
	Commands []protocol.AvailableCommand    `json:"commands,omitempty"`
	// Chosen has the person's choices by option; each new process of the agent gets them.
	Chosen map[string]string `json:"chosen,omitempty"`
}

// optionModes is the id under which an agent's modes are an option.
const optionModes = "mode"

// options are the agent's options, its modes among them, with what the person chose as the present value.
func (m *menu) options() (out []protocol.SessionConfigOption) {
	for _, o := range m.Options {
		// A group of values, which ACP allows too, has no value.
		o.Options = slices.DeleteFunc(slices.Clone(o.Options), func(v protocol.SessionConfigSelectOption) bool { return v.Value == "" })
		if o.Type == "select" && len(o.Options) > 0 {
			out = append(out, o)
		}
	}
	// Agents that have both repeat the modes as an option.
	if m.Modes != nil && !slices.ContainsFunc(out, func(o protocol.SessionConfigOption) bool {
		return o.ID == optionModes || o.Category == protocol.SessionConfigOptionCategoryMode
	}) {
		o := protocol.SessionConfigOption{ID: optionModes, Name: "Mode", Type: "select", CurrentValue: quoted(m.Modes.CurrentModeID)}
		for _, mode := range m.Modes.AvailableModes {
			o.Options = append(o.Options, protocol.SessionConfigSelectOption{Value: mode.ID, Name: mode.Name, Description: mode.Description})
		}
		out = append(out, o)
	}
	for i, o := range out {
		if value, ok := m.Chosen[o.ID]; ok && has(o, value) {
			out[i].CurrentValue = quoted(value)
		}
	}
	return out
}

func has(o protocol.SessionConfigOption, value string) bool {
	return slices.ContainsFunc(o.Options, func(v protocol.SessionConfigSelectOption) bool { return v.Value == value })
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string can always be encoded
	return b
}

// menu returns a copy of a session's menu with an agent; empty where it has none yet.
func (x *Agents) menu(session, agent string) menu {
	x.mu.Lock()
	defer x.mu.Unlock()
	m, ok := x.menus[session]
	if !ok {
		x.load(session+menuSuffix, &m)
		x.menus[session] = m
	}
	if m.Agent != agent {
		return menu{Agent: agent}
	}
	m.Chosen = maps.Clone(m.Chosen)
	return m
}

// menuSuffix makes the name of a menu's file from a session's id.
const menuSuffix = ".menu"

// changeMenu changes a session's menu, stores it, and tells Options.MenuChanged where it looks different.
func (x *Agents) changeMenu(session, agent string, change func(*menu)) {
	changed := func() bool {
		x.changing.Lock()
		defer x.changing.Unlock()
		was, now := x.menu(session, agent), x.menu(session, agent)
		change(&now)
		before, _ := json.Marshal(was)
		after, _ := json.Marshal(now)
		if string(before) == string(after) {
			return false
		}
		x.mu.Lock()
		x.menus[session] = now
		x.mu.Unlock()
		x.store(session+menuSuffix, now)
		return true
	}()
	if changed && x.o.MenuChanged != nil {
		x.o.MenuChanged(session)
	}
}

// Menu returns what an agent lets a person choose in a session, and its slash commands. Both are empty before the agent was first started
// in the session.
func (x *Agents) Menu(session string, a Agent) (options []protocol.SessionConfigOption, commands []protocol.AvailableCommand) {
	m := x.menu(session, a.ID)
	return m.options(), m.Commands
}

// Choose sets an option of an agent in a session. A running agent is told at once, each later process when it starts. It fails for a value
// that the agent does not offer, and where the agent refuses it.
func (x *Agents) Choose(ctx context.Context, session string, a Agent, option, value string) error {
	m := x.menu(session, a.ID)
	all := m.options()
	at := slices.IndexFunc(all, func(o protocol.SessionConfigOption) bool { return o.ID == option })
	if at < 0 || !has(all[at], value) {
		return fmt.Errorf("%s does not offer %q for %s", a.Name, value, option)
	}
	x.mu.Lock()
	l := x.live[session]
	x.mu.Unlock()
	if l != nil && l.agent.ID == a.ID && l.alive() {
		if err := l.choose(ctx, option, value); err != nil {
			return l.why(err)
		}
	}
	x.changeMenu(session, a.ID, func(m *menu) {
		if m.Chosen == nil {
			m.Chosen = map[string]string{}
		}
		m.Chosen[option] = value
	})
	return nil
}

// choose tells the agent a choice.
func (l *link) choose(ctx context.Context, option, value string) error {
	m := l.agents.menu(l.info.ID, l.agent.ID)
	if slices.ContainsFunc(m.Options, func(o protocol.SessionConfigOption) bool { return o.ID == option }) {
		var all protocol.SetSessionConfigOptionResponse
		err := l.call(ctx, "session/set_config_option", map[string]any{"sessionId": l.memory.Session, "configId": option, "value": value}, &all)
		if err == nil && all.ConfigOptions != nil {
			l.note(func(m *menu) { m.Options = all.ConfigOptions })
		}
		return err
	}
	var none struct{}
	return l.call(ctx, "session/set_mode", map[string]any{"sessionId": l.memory.Session, "modeId": value}, &none)
}

// restore tells a new process what the person chose in an earlier one. An agent that refuses a choice keeps its own.
func (l *link) restore(ctx context.Context) {
	m := l.agents.menu(l.info.ID, l.agent.ID)
	shown := menu{Options: m.Options, Modes: m.Modes} // without the choices: as the agent has them
	for _, o := range shown.options() {
		value, ok := m.Chosen[o.ID]
		if !ok || string(o.CurrentValue) == string(quoted(value)) {
			continue
		}
		if err := l.choose(ctx, o.ID, value); err != nil {
			l.agents.o.Log.Warn("an agent's option", "agent", l.agent.ID, "option", o.ID, "err", err)
		}
	}
}

// begin puts a new conversation into the mode of Agent.Asking, unless the person has chosen one in this session.
func (l *link) begin(ctx context.Context) {
	m := l.agents.menu(l.info.ID, l.agent.ID)
	if _, chosen := m.Chosen[optionModes]; chosen {
		return
	}
	for _, o := range m.options() {
		var now string
		_ = json.Unmarshal(o.CurrentValue, &now)
		mode, ok := l.agent.Asking[now]
		if o.ID != optionModes || !ok || !has(o, mode) {
			continue
		}
		if err := l.choose(ctx, o.ID, mode); err != nil {
			l.agents.o.Log.Warn("an agent's mode", "agent", l.agent.ID, "mode", mode, "err", err)
		}
	}
}

// note changes what is known of the agent's menu.
func (l *link) note(change func(*menu)) { l.agents.changeMenu(l.info.ID, l.agent.ID, change) }

// noteOpened notes the answer to a request that opened the conversation; nil leaves what is known.
func (l *link) noteOpened(modes *protocol.SessionModeState, options []protocol.SessionConfigOption) {
	l.note(func(m *menu) {
		if modes != nil {
			m.Modes = modes
		}
		if options != nil {
			m.Options = options
		}
	})
}

// noteUpdate notes an update that says what can be chosen, and reports whether it was one.
func (l *link) noteUpdate(value any) bool {
	switch v := value.(type) {
	case *protocol.ConfigOptionUpdate:
		l.note(func(m *menu) { m.Options = v.ConfigOptions })
	case *protocol.CurrentModeUpdate:
		l.note(func(m *menu) {
			if m.Modes != nil {
				modes := *m.Modes
				modes.CurrentModeID = v.CurrentModeID
				m.Modes = &modes
			}
			if m.Chosen[optionModes] != v.CurrentModeID { // the agent has left the mode that was chosen
				delete(m.Chosen, optionModes)
			}
		})
	case *protocol.AvailableCommandsUpdate:
		l.note(func(m *menu) { m.Commands = v.AvailableCommands })
	default:
		return false
	}
	return true
}
