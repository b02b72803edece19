package app

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/patch"
)

// claudeCall is a call as hooks see it: the tool and its arguments have Claude Code's names.
type claudeCall struct {
	Name  string
	Input map[string]any
	tool  string // Pillion's name
}

// names returns the names that a matcher may use: Claude Code's and Pillion's.
func (c claudeCall) names() []string {
	if c.Name == "Task" {
		return []string{"Task", "Agent", c.tool}
	}
	return []string{c.Name, c.tool}
}

// claudeNames maps Pillion's tools to Claude Code's names. Tools that change a declaration are an Edit, because a hook that guards files
// must see them.
var claudeNames = map[string]string{
	"bash": "Bash", "read": "Read", "edit": "Edit", "multiedit": "MultiEdit", "write": "Write", "apply_patch": "Edit", "glob": "Glob", "grep": "Grep", "list": "LS",
	"webfetch": "WebFetch", "websearch": "WebSearch", "task": "Task", "todowrite": "TodoWrite", "skill": "Skill", "question": "AskUserQuestion", "plan_exit": "ExitPlanMode",
	"bash_output": "BashOutput", "bash_kill": "KillShell",
	"symbol_replace": "Edit", "symbol_insert_before": "Edit", "symbol_insert_after": "Edit", "symbol_delete": "Edit", "symbol_rename": "Edit",
}

// claudeCalls returns a call as hooks see it: usually one, for a patch one for each file. Paths are absolute, as in Claude Code.
func claudeCalls(tool string, input json.RawMessage, cwd string, conf *config.Config) []claudeCall {
	var in map[string]any
	_ = json.Unmarshal(input, &in) // anything but an object has no arguments
	c := claudeCall{Name: claudeNames[tool], tool: tool, Input: map[string]any{}}
	if c.Name == "" {
		c.Name = serverName(tool, conf)
	}
	for k, v := range in {
		if claudeNames[tool] != "" { // arguments of servers' tools keep their names
			k = snake(k)
		}
		c.Input[k] = v
	}
	absolute := func(p string) string {
		if !filepath.IsAbs(p) {
			p = filepath.Join(cwd, p)
		}
		return filepath.Clean(p) // a hook that compares paths must not be deceived by ..
	}
	for _, key := range []string{"file_path", "path"} {
		if p, ok := c.Input[key].(string); ok && p != "" && claudeNames[tool] != "" {
			c.Input[key] = absolute(p)
		}
	}
	switch tool {
	case "grep":
		if g, ok := c.Input["include"]; ok {
			c.Input["glob"] = g
			delete(c.Input, "include")
		}
	case "multiedit":
		if list, ok := c.Input["edits"].([]any); ok {
			edits := make([]any, len(list))
			for i, e := range list {
				edits[i] = e
				if m, ok := e.(map[string]any); ok {
					named := map[string]any{}
					for k, v := range m {
						named[snake(k)] = v
					}
					edits[i] = named
				}
			}
			c.Input["edits"] = edits
		}
	case "apply_patch":
		// Each file is a separate call, because hooks check file_path. The tool's own parser finds the files; a patch that it refuses
		// changes nothing.
		text, _ := in["patchText"].(string)
		var out []claudeCall
		if parsed, err := patch.Parse(text); err == nil {
			added := map[string]bool{}
			for _, op := range parsed.Ops {
				added[op.Path] = op.Kind == patch.Add
			}
			for _, path := range parsed.Paths() {
				x := claudeCall{Name: "Edit", tool: tool, Input: map[string]any{"file_path": absolute(path), "patch_text": text}}
				if added[path] {
					x.Name = "Write"
				}
				out = append(out, x)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return []claudeCall{c}
}

// changedCalls returns a proposed change as hooks see it: one call for each file, for a rename one for each of its two paths. The texts are
// those of the whole file.
func changedCalls(tool string, set *change.Set) (out []claudeCall) {
	for _, f := range set.Files {
		for _, path := range []string{f.Path, f.NewPath} {
			if path == "" {
				continue
			}
			x := claudeCall{Name: "Edit", tool: tool, Input: map[string]any{"file_path": filepath.Clean(path), "old_string": f.Old, "new_string": f.New}}
			if f.Kind == change.Create {
				x.Name, x.Input = "Write", map[string]any{"file_path": filepath.Clean(path), "content": f.New}
			}
			out = append(out, x)
		}
	}
	return out
}

// serverName returns Claude Code's name of an MCP server's tool, mcp__SERVER__TOOL; other tools keep their names.
func serverName(tool string, conf *config.Config) string {
	best := ""
	for server := range conf.MCP {
		prefix := tools.Name(server) + "_"
		if strings.HasPrefix(tool, prefix) && len(server) > len(best) {
			best = server
		}
	}
	if best == "" {
		return tool
	}
	return "mcp__" + tools.Name(best) + "__" + strings.TrimPrefix(tool, tools.Name(best)+"_")
}

// ourInput converts an input that a hook has changed back to Pillion's argument names. Decoding the input accepts other names too, and
// checks everything.
func ourInput(tool string, input json.RawMessage) json.RawMessage {
	var in map[string]any
	if json.Unmarshal(input, &in) != nil {
		return input
	}
	out := map[string]any{}
	for k, v := range in {
		switch {
		case tool == "grep" && k == "glob":
			k = "include"
		case claudeNames[tool] != "" && tool != "task": // task's own names have underscores
			k = camel(k)
		}
		if list, ok := v.([]any); ok && tool == "multiedit" && k == "edits" {
			for _, e := range list {
				if m, ok := e.(map[string]any); ok {
					for name, x := range m {
						if c := camel(name); c != name {
							m[c] = x
							delete(m, name)
						}
					}
				}
			}
		}
		out[k] = v
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return input
	}
	return raw
}

// response returns a result in the form of tool_response.
func (c claudeCall) response(r tools.Result) map[string]any {
	switch c.Name {
	case "Bash":
		return map[string]any{"stdout": r.Output, "stderr": "", "interrupted": r.Metadata["aborted"] == true, "isImage": false, "exitCode": r.Metadata["exit"]}
	case "Edit", "MultiEdit", "Write":
		return map[string]any{"filePath": c.Input["file_path"], "success": true, "output": r.Output}
	}
	return map[string]any{"output": r.Output, "success": true}
}

// snake converts filePath to file_path.
func snake(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// camel converts file_path to filePath.
func camel(s string) string {
	parts := strings.Split(s, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}
