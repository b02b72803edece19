package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/shell/visible"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// callView is the card of a tool call, as the editor has it. The fields are guarded by the view's mu.
type callView struct {
	// tool is the last state that was shown; showTool sends what differs from it.
	tool  agent.ToolData
	title string
	diffs []protocol.ToolCallContent
	// shown: of a sub-agent's call, where not all are shown; unsent: its card has still to be sent.
	shown, unsent bool
	// by are the diffs of a task's sub-agent, where its own calls have no cards, by change set; order is theirs.
	by    map[string][]protocol.ToolCallContent
	order []string
}

// toolStatus translates our states into ACP's, which have no cancelled or rejected: both are failed, and _meta says
// which.
var toolStatus = map[agent.ToolStatus]protocol.ToolCallStatus{
	agent.ToolPending:   protocol.ToolCallStatusPending,
	agent.ToolRunning:   protocol.ToolCallStatusInProgress,
	agent.ToolCompleted: protocol.ToolCallStatusCompleted,
	agent.ToolError:     protocol.ToolCallStatusFailed,
}

// showTool sends the card of a call once, and later only what has changed of it.
func (v *view) showTool(d agent.ToolData) {
	d = printable(d)
	v.mu.Lock()
	c := v.calls[d.CallID]
	fresh := c == nil && !v.finished[d.CallID]
	generic := !v.es.editor.Client().ShowsHunks()
	if c == nil {
		c = &callView{}
		v.calls[d.CallID] = c
		if generic && d.Status == agent.ToolPending {
			// Some clients keep the title that a card came with, so it comes once the title can say what the call does.
			c.unsent = true
			v.mu.Unlock()
			return
		}
	}
	// A call of an earlier turn (finished) is on the screen already, so its late state is an update.
	fresh, c.unsent = fresh || c.unsent, false
	was := c.tool
	d = d.After(was)
	c.tool = d
	title := d.Title
	said := inputHint(d, v.info.Cwd)
	if command := commandIn(d); generic && command != "" {
		title = command // not what the model calls it
	}
	if title == "" {
		title = strings.TrimSpace(d.Tool + " " + said.what)
	}
	content := v.toolContent(c)
	u := protocol.ToolCallUpdate{ToolCallID: d.CallID}
	if title != c.title {
		u.Title, c.title = title, title
	}
	if d.Status != was.Status {
		u.Status = toolStatus[d.Status]
	}
	// While the model streams it, the input is the beginning of a JSON text, which no editor could parse.
	if len(d.Input) > 0 && !slices.Equal(d.Input, was.Input) && json.Valid(d.Input) {
		u.RawInput = d.Input
	}
	if locs := locations(d.Locations); len(locs) > 0 && !slices.Equal(d.Locations, was.Locations) {
		u.Locations = locs
		// The tool has not said yet where it works; its parameter has, so the editor can open the file early.
	} else if len(locs) == 0 && said.path != "" && d.Status != was.Status && d.Status == agent.ToolRunning {
		u.Locations = []protocol.ToolCallLocation{{Path: said.path}}
	}
	if d.Status == agent.ToolCompleted || d.Status == agent.ToolError {
		u.RawOutput = rawOutput(d)
	}
	v.mu.Unlock()
	if d.Status == agent.ToolRunning {
		v.es.relays.show(v.es, d)
	}
	if len(content) > 0 {
		u.Content = content
	}
	if generic && !v.replaying && d.ErrorKind == editors.KindUnsaved && d.Status == agent.ToolError && was.Status != d.Status {
		defer v.ask(editors.WhatIsUnsaved(d.Error)) // some clients show no reason of a failed call, and only the person can save
	}
	if fresh {
		v.send("tool_call", &protocol.ToolCall{
			ToolCallID: d.CallID, Title: title, Name: d.Tool, Kind: toolKind(d.Kind), Status: toolStatus[d.Status],
			Content: u.Content, Locations: u.Locations, RawInput: u.RawInput, RawOutput: u.RawOutput,
		}, toolMeta(d))
		return
	}
	v.send("tool_call_update", &u, toolMeta(d))
}

// printable is a call whose texts an editor may show. The output of a command, a file or a page must not reorder the
// lines of a card (bidirectional controls) or control a terminal that shows it. The model gets the exact text,
// because it has to quote it in edits. Every text of a tool's result passes here; a diff does not, since it is what
// will be written.
func printable(d agent.ToolData) agent.ToolData {
	d.Title, d.Output, d.Error = visible.Printable(d.Title), visible.Printable(d.Output), visible.Printable(d.Error)
	d.Metadata = maps.Clone(d.Metadata) // the other belongs to the event log
	for name, value := range d.Metadata {
		if text, ok := value.(string); ok && name != "diff" { // output so far, a preview, an answer's first lines
			d.Metadata[name] = visible.Printable(text)
		}
	}
	return d
}

// toolMeta is _meta.pillion of a call. Its member Outcome says why a call failed that ACP only calls failed.
func toolMeta(d agent.ToolData) protocol.UpdateMeta {
	m := protocol.UpdateMeta{Tool: d.Tool, StartedAt: stamp(d.Started), EndedAt: stamp(d.Ended)}
	m.TerminalID, _ = d.Metadata["terminalId"].(string)
	m.ParentToolCallID = d.Parent
	if d.Status == agent.ToolError {
		switch d.ErrorKind {
		case "cancelled", "rejected", "denied":
			m.Outcome = d.ErrorKind
		case "interrupted", "not_run", "dismissed":
			m.Outcome = "cancelled"
		}
	}
	return m
}

// stamp is a time for the wire; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// commandIn is the command that a call runs, with invisible characters made visible; "" for other calls. Only tools
// of the kind execute are looked at: another tool's parameter of that name is not run.
func commandIn(d agent.ToolData) string {
	if d.Kind != tools.KindExecute {
		return ""
	}
	var in struct{ Command string }
	if json.Unmarshal(d.Input, &in) != nil {
		return ""
	}
	return visible.Text(in.Command)
}

// hint is a text and a path from a call's input, shown until the tool itself has set a title.
type hint struct{ what, path string }

// inputHint looks for the parameters that tools have in common.
func inputHint(d agent.ToolData, cwd string) (a hint) {
	var in map[string]textutil.Raw
	if d.Title != "" && len(d.Locations) > 0 || json.Unmarshal(d.Input, &in) != nil {
		return a
	}
	// The order is from the most to the least telling one; only filePath is a place that an editor can open.
	for _, key := range []string{"filePath", "command", "pattern", "path", "url", "query", "description", "operation"} {
		var text string
		if json.Unmarshal(in[key], &text) != nil || text == "" {
			continue
		}
		if a.what == "" {
			a.what = textutil.FirstLine(text)
		}
		if key == "filePath" {
			a.path = text
			if !filepath.IsAbs(text) {
				a.path = filepath.Join(cwd, text)
			}
		}
	}
	return a
}

// toolContent is the content of a call's card: its diffs, then its output or error. v.mu is held.
func (v *view) toolContent(c *callView) []protocol.ToolCallContent {
	d := c.tool
	var text string
	switch d.Status {
	case agent.ToolCompleted:
		text = d.Output
	case agent.ToolError:
		text = failureText(d)
	default:
		text, _ = d.Metadata["output"].(string) // a running command shows what it has said so far
		if id, ok := v.es.relays.shownIn(v.es, d); ok {
			return append(slices.Clone(c.diffs), terminalContent(id))
		}
	}
	out := slices.Clone(c.diffs)
	for _, id := range c.order {
		out = append(out, c.by[id]...)
	}
	if text != "" {
		// Such output is not Markdown, and would be drawn as if it were.
		if d.Kind == tools.KindExecute || d.Kind == tools.KindRead || d.Kind == tools.KindSearch {
			text = fenced(text)
		}
		out = append(out, protocol.TextOfCall(text))
	}
	for _, a := range d.Attachments {
		if strings.HasPrefix(a.Mime, "image/") {
			out = append(out, protocol.ToolCallContent{Type: "content", Value: &protocol.Content{
				Content: protocol.ContentBlock{Type: "image", Value: &protocol.ImageContent{MimeType: a.Mime, Data: encodeBase64(a.Data)}}}})
		}
	}
	return out
}

// failureText is the output of a failed call so far, and why it failed.
func failureText(d agent.ToolData) string {
	said := d.Output
	if said == "" {
		said, _ = d.Metadata["output"].(string)
	}
	// The output may hold the error already.
	if said == "" || strings.Contains(said, d.Error) {
		return cmp.Or(said, d.Error)
	}
	return said + "\n\n" + d.Error
}

// rawOutput is a call's result as data, for editors that show it.
func rawOutput(d agent.ToolData) json.RawMessage {
	out := map[string]any{}
	if d.Output != "" {
		out["output"] = d.Output
	}
	if d.Error != "" {
		out["error"] = map[string]string{"kind": d.ErrorKind, "message": d.Error}
	}
	if len(d.Metadata) > 0 {
		out["metadata"] = d.Metadata
	}
	return rawJSON(out)
}

// toolKind is ACP's kind of a tool.
func toolKind(k tools.Kind) protocol.ToolKind {
	if k == "" {
		return protocol.ToolKindOther
	}
	return protocol.ToolKind(k)
}

// locations are the places of a call for the wire; lines count from 1.
func locations(list []tools.Location) []protocol.ToolCallLocation {
	var out []protocol.ToolCallLocation
	for _, l := range list {
		p := protocol.ToolCallLocation{Path: l.Path}
		if l.Line > 0 {
			n := int64(l.Line)
			p.Line = &n
		}
		out = append(out, p)
	}
	return out
}

// fenced is text as a code block in Markdown.
func fenced(text string) string { return fencedAs("", text) }

// fencedAs is text as a code block in a language. The fence is longer than any in the text, so that the text cannot
// end its block and continue as Markdown. A line of backticks ends a block only when it is at least as long as the
// fence (CommonMark, section 4.5).
func fencedAs(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// call is a tool call that the editor has been shown.
func (v *view) call(id string) (agent.ToolData, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.calls[id]
	if c == nil {
		return agent.ToolData{}, false
	}
	return c.tool, true
}
