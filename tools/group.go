package tools

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Group is one name under which a model sees several tools, because the schemas of all tools are sent with each request. Only the model
// sees the group: permissions, hooks, switches, cards and stored calls have the names of its tools, which a model may call as well.
type Group struct {
	ID          string // a tool of the group is named ID_operation
	Description string // what holds for all operations; a line for each of them follows
}

// groupOperation is the parameter that names one tool of a group.
const groupOperation = "operation"

// WithGroup puts a tool into a group. The tool's id must begin with the group's and "_".
func WithGroup(g *Group) ToolOption { return func(t *Tool) { t.group = g } }

// operation is the tool's name within its group.
func (t Tool) operation() string { return strings.TrimPrefix(t.ID, t.group.ID+"_") }

// apart reports whether the tool is shown by itself: it has no group, or a tool of a plugin or a server has the group's name.
func (t Tool) apart(offered []Tool) bool {
	return t.group == nil || slices.ContainsFunc(offered, func(o Tool) bool { return o.ID == t.group.ID })
}

// Grouped returns the offered tools as a model sees them: each group is one tool, in the place of its first member. It cannot be run; see
// Ungroup.
func Grouped(offered []Tool) []Tool {
	var out []Tool
	done := map[*Group]bool{}
	for _, t := range offered {
		switch {
		case t.apart(offered):
			out = append(out, t)
		case !done[t.group]:
			done[t.group] = true
			out = append(out, t.group.tool(slices.DeleteFunc(slices.Clone(offered), func(o Tool) bool { return o.group != t.group })))
		}
	}
	return out
}

// ShownAlike reports whether a model is shown the same for two lists of offered tools, that is, whether Grouped gives equal names,
// descriptions and parameters.
func ShownAlike(a, b []Tool) bool {
	return slices.EqualFunc(a, b, func(a, b Tool) bool {
		return a.ID == b.ID && a.group == b.group && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
	})
}

// tool describes its members, all of one group, as one tool. Where members differ about a parameter the first one counts: a
// plugin may have changed another.
func (g *Group) tool(members []Tool) Tool {
	all := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, Required: []string{groupOperation}, PropertyOrder: []string{groupOperation}}
	which, plain := &jsonschema.Schema{Type: "string"}, true
	all.Properties[groupOperation] = which
	var b strings.Builder
	b.WriteString(strings.TrimSpace(g.Description) + "\n")
	for _, t := range members {
		which.Enum = append(which.Enum, t.operation())
		// The parameters of one operation stand in its line, because the schema is that of all.
		named := ""
		if s, own := t.shown(); s != nil {
			order := s.PropertyOrder
			if !own {
				order, plain = slices.Sorted(maps.Keys(s.Properties)), false
			}
			for _, name := range order {
				if all.Properties[name] == nil {
					all.Properties[name], all.PropertyOrder = s.Properties[name], append(all.PropertyOrder, name)
				}
			}
			if named = strings.Join(s.Required, ", "); named == "" {
				named = strings.Join(order, ", ")
			}
		}
		b.WriteString("\n- " + t.operation() + "(" + named + "): " + strings.TrimSpace(t.Description))
	}
	text := appendSchema(nil, all)
	// A plugin's schema may have keywords that appendSchema does not write.
	if !plain {
		if raw, err := json.Marshal(all); err == nil {
			text = raw
		}
	}
	return Tool{ID: g.ID, Description: b.String(), Parameters: text}
}

// shown returns the schema of the parameters as a model is to see them. own is false for a schema that New did not make: a plugin may have
// replaced Parameters.
func (t Tool) shown() (s *jsonschema.Schema, own bool) {
	if t.typed != nil && bytes.Equal(t.made, t.Parameters) {
		return t.typed, true
	}
	t.typed = nil
	return t.schema(), false
}

// Ungroup returns the id and the input of the tool that a call of a group means. ok is false when name is no group of the offered tools, or
// its operation none of theirs; the caller then treats the call as it is. The operation may be written in another case, and with
// the group's name in front.
func Ungroup(name string, input json.RawMessage, offered []Tool) (id string, rest json.RawMessage, ok bool) {
	fields := objectOf(input)
	var operation string
	if json.Unmarshal(fields[groupOperation], &operation) != nil {
		return "", nil, false
	}
	delete(fields, groupOperation)
	for _, t := range offered {
		if t.apart(offered) || fold(t.group.ID) != fold(name) {
			continue
		}
		if said := fold(operation); said == fold(t.operation()) || said == fold(t.ID) {
			rest, err := json.Marshal(fields)
			return t.ID, rest, err == nil
		}
	}
	return "", nil, false
}

// objectOf returns the fields of an input; some models send the object as a JSON string. Anything else has none.
func objectOf(input json.RawMessage) map[string]json.RawMessage {
	fields := map[string]json.RawMessage{}
	if v, _, bad := parse(input); bad == nil {
		raw, _ := json.Marshal(v) // v was decoded from JSON
		if json.Unmarshal(raw, &fields) != nil || fields == nil {
			return map[string]json.RawMessage{}
		}
	}
	return fields
}

// GroupCalls says of each tool that a model sees only in a group how a call of it is written. Two requests with equal GroupCalls write the
// same past calls in the same way.
type GroupCalls map[string]groupCall

// groupCall is a tool as its group names it.
type groupCall struct{ group, operation string }

// GroupCallsOf returns the GroupCalls of the offered tools.
func GroupCallsOf(offered []Tool) GroupCalls {
	g := GroupCalls{}
	seen := map[string]bool{}
	for _, t := range offered {
		// The first tool of a name counts: that of a plugin hides ours, and is in no group.
		if !seen[t.ID] && !t.apart(offered) {
			g[t.ID] = groupCall{t.group.ID, t.operation()}
		}
		seen[t.ID] = true
	}
	return g
}

// Regroup undoes Ungroup: it returns a past call as the model wrote it, so that the conversation names only tools that the request
// has. Other calls are returned unchanged.
func (g GroupCalls) Regroup(id string, input json.RawMessage) (string, json.RawMessage) {
	as, ok := g[id]
	if !ok {
		return id, input
	}
	fields := objectOf(input)
	fields[groupOperation], _ = json.Marshal(as.operation)
	whole, err := json.Marshal(fields)
	if err != nil {
		return id, input
	}
	return as.group, whole
}

// operations lists the operations of the group that a model called by name; nil for other names.
func operations(name string, offered []Tool) (out []string) {
	for _, t := range offered {
		if !t.apart(offered) && fold(t.group.ID) == fold(name) {
			out = append(out, t.operation())
		}
	}
	return out
}
