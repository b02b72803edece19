package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/textutil"
	"github.com/pillion-dev/pillion/tools/web"
)

// everyTool makes the built-in tools with everything configured that some of them need, so that none is missing;
// no page is fetched with that. "invalid" only answers calls of unknown tools.
func everyTool() []tools.Tool {
	var env builtin.Env
	env.Web.Client = &web.Client{}
	env.Web.Engine.Provider = "exa"
	return slices.DeleteFunc(builtin.All(env), func(t tools.Tool) bool { return t.ID == "invalid" })
}

// toolsPage describes the tools that a model can call.
// The order is that of the names, so that a tool that moves in the code does not change the page.
func toolsPage(list []tools.Tool) string {
	slices.SortFunc(list, func(a, b tools.Tool) int { return strings.Compare(a.ID, b.ID) })
	var b strings.Builder
	b.WriteString("# Tools\n\n" + generated)
	b.WriteString("What a model can call, and you with `pillion tool call NAME --input JSON`. The *permission* is the name in the `permission`\n" +
		"section of `pillion.jsonc`; several tools may share one. `pillion tool schema NAME` prints the whole schema. Your own tools, plugins\n" +
		"and MCP servers add more: `pillion tool list` shows what is offered in a project.\n\n")
	b.WriteString("| tool | permission | does |\n|---|---|---|\n")
	for _, t := range list {
		fmt.Fprintf(&b, "| [`%s`](#%s) | `%s` | %s |\n", t.ID, t.ID, permissionOf(t), cell(textutil.FirstLine(t.Description)))
	}
	for _, t := range list {
		var notes []string
		if t.ReadOnly {
			notes = append(notes, "reads only")
		}
		if t.OptIn {
			notes = append(notes, "offered only where a switch names it")
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", t.ID, prose(textutil.FirstLine(t.Description)))
		if len(notes) > 0 {
			fmt.Fprintf(&b, " *%s.*", strings.Join(notes, "; "))
		}
		b.WriteString("\n")
		parameterTable(&b, t.Parameters)
	}
	return b.String()
}

// parameterTable lists a tool's parameters, required ones first and in the order of the schema, the others by
// name. It panics for a schema that is not JSON, which is our own.
func parameterTable(b *strings.Builder, parameters json.RawMessage) {
	var p struct {
		Required   []string
		Properties map[string]struct {
			Type        json.RawMessage
			Description string
			Enum        []string
		}
	}
	if err := json.Unmarshal(parameters, &p); err != nil {
		// A mistake in Pillion: the test of the generated pages finds it.
		panic(err) // our own tools
	}
	if len(p.Properties) == 0 {
		return
	}
	names := slices.Clone(p.Required)
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	b.WriteString("\n| parameter | type | what it is |\n|---|---|---|\n")
	for _, name := range names {
		q := p.Properties[name]
		// A type is a string or a list of strings; both are read as JSON text.
		kind := strings.NewReplacer(`"`, "", "[", "", "]", "", ",", " or ").Replace(string(q.Type))
		if len(q.Enum) > 0 {
			kind = "`" + strings.Join(q.Enum, "` `") + "`"
		}
		if slices.Contains(p.Required, name) {
			name = "**`" + name + "`**"
		} else {
			name = "`" + name + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, kind, cell(q.Description))
	}
}

// permissionOf is the name of a tool in permission rules.
// Tools without one of their own are asked about under their id.
func permissionOf(t tools.Tool) string {
	if t.Permission == "" {
		return t.ID
	}
	return t.Permission
}
