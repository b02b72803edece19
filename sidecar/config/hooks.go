package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/hooks"
)

// HookGroup is a list of commands and the matcher that selects their events. Its form is that of Claude Code's settings files.
type HookGroup struct {
	Matcher string `json:"matcher,omitempty" doc:"tools by Claude Code's names (Bash, Edit|Write, mcp__SERVER__TOOL), or what began a session (startup, resume, compact); a list with |, or a regular expression; empty: all"`
	Hooks   []Hook `json:"hooks,omitempty" doc:"commands, which run beside each other"`
}

// Hook is one command.
type Hook struct {
	Type      string   `json:"type,omitempty" doc:"command, the only kind" enum:"command"`
	Command   string   `json:"command,omitempty" doc:"a line for bash, or with args a program; $CLAUDE_PROJECT_DIR is the project"`
	Args      []string `json:"args,omitempty" doc:"arguments of the program; it is started without a shell"`
	Timeout   float64  `json:"timeout,omitempty" doc:"seconds; default 600"`
	Async     bool     `json:"async,omitempty" doc:"do not wait for it; what it answers has no effect"`
	OnFailure string   `json:"onFailure,omitempty" doc:"block: a failure of the command blocks as exit code 2 does" enum:"block,continue"`

	place string // where it was written; "" in a configuration that was not loaded
}

// noteHooks removes hooks of unknown events from a layer, with a note, and stores where each of the other hooks was written: merge
// joins the lists, and the Config that is decoded from them has no places. It runs after check, so all types are right.
func (l *loader) noteHooks(n *node) {
	section := n.get("hooks")
	if section == nil {
		return
	}
	kept := section.members[:0:0]
	for _, event := range section.members {
		if !slices.Contains(hooks.Events, event.key) {
			l.note(event.at, "hooks."+event.key, "there is no such event here; there are "+strings.Join(hooks.Events, ", "))
			continue
		}
		for _, group := range event.value.elems {
			if list := group.get("hooks"); list != nil {
				for _, h := range list.elems {
					l.hookPlaces[event.key] = append(l.hookPlaces[event.key], h.origin())
				}
			}
		}
		kept = append(kept, event)
	}
	section.members = kept
}

// placeHooks gives each hook the place that noteHooks has stored. Both visit the hooks in the order of the layers. A hook without a
// place would count as the person's own, so both must skip the same ones.
func (c *Config) placeHooks(places map[string][]string) {
	for event, groups := range c.Hooks {
		all := places[event]
		for g := range groups {
			for h := range groups[g].Hooks {
				if len(all) > 0 {
					groups[g].Hooks[h].place, all = all[0], all[1:]
				}
			}
		}
	}
}

// HooksOf are the commands for an event about one of names, in the order of the files; the same command is listed once. Each
// carries the place and the folder of its file, and cannot start while that folder is not trusted.
func (c *Config) HooksOf(event string, names ...string) (out []hooks.Command) {
	if c.DisableAllHooks {
		return nil
	}
	seen := map[string]bool{}
	for _, g := range c.Hooks[event] {
		if !hooks.Matches(g.Matcher, names...) {
			continue
		}
		for _, h := range g.Hooks {
			// If the same script is in the person's settings and in the project's, it runs once. The first one is used, with the
			// trust of its folder.
			key := strings.Join(append([]string{h.Command}, h.Args...), "\x00")
			if h.Command == "" || seen[key] {
				continue
			}
			seen[key] = true
			r := guard.Reason{Who: guard.Hook, Setting: "hooks." + event, Place: h.place}
			if file, _, _ := place(h.place); c.projectFiles[file] != "" {
				r.Folder, r.Trusted = c.projectFiles[file], c.trustedNow
			}
			out = append(out, hooks.Command{Command: h.Command, Args: h.Args, Timeout: time.Duration(h.Timeout * float64(time.Second)), Async: h.Async, Strict: h.OnFailure == "block", Reason: r})
		}
	}
	return out
}

// Environ are the variables of the setting env as NAME=value, sorted, for commands of the agent and for hooks. Keys among them are
// passed only to programs that the setting environment names, like those of the environment itself.
func (c *Config) Environ(who, program string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		out = append(out, name+"="+c.Env[name])
	}
	return guard.WithoutKeys(out, who, program)
}

// claudeHooks copies the hooks section of a settings file of Claude Code's into ours; the shape is the same. Keys that are not known are
// noted and left out, because check would report them as mistakes in a file that was not written for Pillion. Handlers of other types than
// commands (an HTTP address, a prompt for a model) are noted too and do not run. ok is false where nothing is left.
func (l *loader) claudeHooks(m member) (member, bool) {
	out := m.value.object()
	for _, event := range m.value.members {
		groups := &node{file: event.value.file, line: event.value.line, column: event.value.column, kind: kindArray}
		for _, g := range event.value.elems {
			group := g.object()
			for _, f := range g.members {
				switch {
				case f.key == "matcher" && f.value.kind == kindString:
					group.members = append(group.members, f)
				case f.key == "hooks":
					list := *f.value
					list.elems = nil
					for i, h := range f.value.elems {
						if kept := l.claudeHook(h, "hooks."+event.key+"["+strconv.Itoa(i)+"]"); kept != nil {
							list.elems = append(list.elems, kept)
						}
					}
					group.members = append(group.members, member{f.key, f.at, &list})
				// A matcher that is not a string is removed: without a matcher the group is about everything, which is safe for a
				// hook that guards something.
				case f.key != "matcher" && f.key != "description":
					l.note(f.at, "hooks."+event.key+"."+f.key, "there is no such setting here")
				}
			}
			groups.elems = append(groups.elems, group)
		}
		out.members = append(out.members, member{event.key, event.at, groups})
	}
	return member{"hooks", m.at, out}, len(out.members) > 0
}

// claudeHook copies the fields of one handler that Pillion knows; nil: it is not run, and a note says why. where is its dotted
// path. The node is copied, because other code reads the tree of the file too.
func (l *loader) claudeHook(h *node, where string) *node {
	if kind := h.get("type"); kind != nil && kind.text != "command" {
		l.note(h, where, "hooks of the type "+kind.text+" are not run; commands are")
		return nil
	}
	if s := h.get("shell"); s != nil && s.text != "bash" {
		l.note(h, where, "hooks run in bash, not in "+s.text)
		return nil
	}
	out := *h
	out.members = nil
	for _, f := range h.members {
		switch f.key {
		case "type", "command", "args", "timeout", "async", "onFailure":
			if f.key == "command" { // the text is for a shell, where braces have a meaning too
				v := *f.value
				v.raw = true
				f.value = &v
			}
			out.members = append(out.members, f)
		case "statusMessage", "shell", "description":
		case "if": // without its condition a guard would block, or allow, more than it says
			l.note(f.at, where, "hooks with a condition (if) are not run; test it in the command")
			return nil
		default:
			l.note(f.at, where+"."+f.key, "there is no such setting here")
		}
	}
	return &out
}
