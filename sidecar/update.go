package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
)

// view turns a session's events into updates for one editor, in order, and keeps what later updates and permission
// requests refer to.
type view struct {
	es *editorSession

	seq  int64 // of the event that is being shown; owned by who shows
	past bool  // it happened before the editor was there

	mu      sync.Mutex
	info    agent.SessionInfo    // as last shown; guarded by mu
	settled map[string]bool      // calls of turns that are over, which the editor still shows; guarded by mu
	calls   map[string]*callView // by call id; guarded by mu
	ledger  *ledger              // guarded by mu

	child    *childOf         // set in the view of a sub-agent's session
	children map[string]*view // by the task's call; guarded by mu
	over     bool             // the task has ended; guarded by the parent view's mu
}

// callView is a tool call as the editor has it.
type callView struct {
	tool  agent.ToolData
	title string
	diffs []protocol.ToolCallContent
	// shown: of a sub-agent's call, where not all are shown; unsent: its card has still to be sent.
	shown, unsent bool
	// by are the diffs of a task's sub-agent, where its own calls have no cards, by change set; order is theirs.
	by    map[string][]protocol.ToolCallContent
	order []string
}

func newView(es *editorSession) *view {
	return &view{es: es, calls: map[string]*callView{}, settled: map[string]bool{}, ledger: newLedger()}
}

// value gives an event's data typed, whether it is fresh or stored.
func value[T any](e agent.Event) (T, bool) {
	if v, ok := e.Value.(T); ok {
		return v, true
	}
	if p, ok := e.Value.(*T); ok && p != nil {
		return *p, true
	}
	var v T
	return v, json.Unmarshal(e.Data, &v) == nil
}

// remember takes in a stored event without showing it.
func (v *view) remember(e agent.Event) {
	switch e.Type {
	case agent.EventSession:
		if d, ok := value[agent.SessionInfo](e); ok {
			v.mu.Lock()
			v.info = d
			v.mu.Unlock()
		}
	default:
		v.takeLedger(e)
	}
}

// show sends what an event means to the editor. replay is set for what happened before the editor was there.
func (v *view) show(e agent.Event, replay bool) {
	v.seq, v.past = e.Seq, replay
	switch e.Type {
	case agent.EventSession:
		if d, ok := value[agent.SessionInfo](e); ok {
			v.showInfo(d)
		}
	case agent.EventPrompt:
		v.takeLedger(e)
		if d, ok := value[agent.PromptData](e); ok {
			v.showPrompt(d, false)
		}
	case agent.EventSteer:
		if d, ok := value[agent.PromptData](e); ok {
			v.showPrompt(d, true)
		}
	case agent.EventText, agent.EventThinking:
		v.showText(e)
	case agent.EventTool:
		if d, ok := value[agent.ToolData](e); ok {
			v.showTool(d)
			v.follow(d)
			v.ended(d)
		}
	case agent.EventCompaction:
		if d, ok := value[agent.CompactionData](e); ok {
			v.showCompaction(d)
		}
	case agent.EventSummary:
		if d, ok := value[agent.TextData](e); ok {
			v.showSummary(d)
		}
	case agent.EventChange, agent.EventReview:
		v.showChange(e, replay)
	case agent.EventRestore:
		v.showRestore(e, replay)
	case agent.EventPlan:
		if d, ok := value[agent.PlanData](e); ok {
			v.send("plan", planUpdate(d.Todos), protocol.UpdateMeta{})
		}
	case agent.EventNotice:
		if d, ok := value[agent.NoticeData](e); ok && !replay {
			v.notice(d.Level, d.Text)
		}
	case agent.EventTurn:
		if d, ok := value[agent.TurnData](e); ok {
			v.showUsage(d)
		}
		v.settle()
		if !replay {
			go v.es.tellCommands() // reads files; nobody waits for it
		}
	}
}

// showText sends a piece of an answer or of a thought.
func (v *view) showText(e agent.Event) {
	kind := "agent_message_chunk"
	if e.Type == agent.EventThinking {
		kind = "agent_thought_chunk"
	}
	if d, ok := value[agent.TextData](e); ok && d.Text != "" {
		v.send(kind, &protocol.ContentChunk{Content: textBlock(d.Text), MessageID: d.MessageID}, protocol.UpdateMeta{})
	}
}

// settle is for the end of a turn: what only a running call needs is let go.
func (v *view) settle() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.calls {
		if c.tool.Status == agent.ToolCompleted || c.tool.Status == agent.ToolError {
			v.settled[id] = true
			delete(v.calls, id)
		}
	}
	for id, k := range v.children {
		if k.over {
			delete(v.children, id)
		}
	}
}

func (v *view) showInfo(d agent.SessionInfo) {
	v.mu.Lock()
	was := v.info
	v.info = d
	v.mu.Unlock()
	if d.Title != was.Title {
		v.es.send("session_info_update", &protocol.SessionInfoUpdate{Title: d.Title, UpdatedAt: d.Updated.UTC().Format(time.RFC3339)})
	}
	if was.ID == "" {
		return // the answer that made the session says the rest
	}
	if d.Agent != was.Agent {
		v.es.send("current_mode_update", &protocol.CurrentModeUpdate{CurrentModeID: d.Agent})
	}
	if d.Agent != was.Agent || d.Model != was.Model || d.Effort != was.Effort || d.Review != was.Review {
		if opts := v.es.server.configOptions(d); opts != nil {
			v.es.send("config_option_update", &protocol.ConfigOptionUpdate{ConfigOptions: opts})
		}
	}
}

// send sends an update of the event that is being shown. An editor that knows Pillion is told its number.
func (v *view) send(kind string, value any, meta protocol.UpdateMeta) {
	if v.es.server.currentClient().pillion.Version == 0 {
		v.es.send(kind, value)
		return
	}
	if v.child != nil {
		meta = v.childMeta(meta)
		v.es.sendWith(kind, value, &meta)
		return
	}
	seq := v.seq
	meta.Seq = &seq
	v.es.sendWith(kind, value, &meta)
}

// showPrompt shows the person's words. The editor that sent a prompt has them already: it is only told their id, where
// it can tell that from another's words.
func (v *view) showPrompt(d agent.PromptData, steered bool) {
	own := !v.past && v.es.takeOwn(d.MessageID) && !steered
	if own && v.es.server.currentClient().pillion.Version == 0 {
		return
	}
	meta := protocol.UpdateMeta{Steered: steered, Own: own}
	for _, b := range blocks(d.Parts) {
		v.send("user_message_chunk", &protocol.ContentChunk{Content: b, MessageID: d.MessageID}, meta)
	}
}

// takeOwn reports, once, whether a prompt is one of this connection's own.
func (es *editorSession) takeOwn(message string) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	own := es.own[message]
	delete(es.own, message)
	return own
}

// blocks are a prompt as an editor shows it; what was added for the model alone is left out.
func blocks(parts []provider.Part) []protocol.ContentBlock {
	out := []protocol.ContentBlock{}
	for _, p := range parts {
		switch {
		case p.Synthetic:
		case p.Type == provider.PartText:
			out = append(out, textBlock(p.Text))
		case p.Type == provider.PartFile:
			for _, f := range p.Files {
				block := textBlock("(" + f.Mime + " " + f.Name + ")")
				if strings.HasPrefix(f.Mime, "image/") {
					block = protocol.ContentBlock{Type: "image", Value: &protocol.ImageContent{MimeType: f.Mime, Data: encodeBase64(f.Data)}}
				}
				out = append(out, block)
			}
		}
	}
	return out
}

var toolStatus = map[agent.ToolStatus]protocol.ToolCallStatus{
	agent.ToolPending:   protocol.ToolCallStatusPending,
	agent.ToolRunning:   protocol.ToolCallStatusInProgress,
	agent.ToolCompleted: protocol.ToolCallStatusCompleted,
	agent.ToolError:     protocol.ToolCallStatusFailed,
}

// showTool sends a call's card once, then only what changed of it.
func (v *view) showTool(d agent.ToolData) {
	v.mu.Lock()
	c := v.calls[d.CallID]
	fresh := c == nil && !v.settled[d.CallID]
	if c == nil {
		c = &callView{}
		v.calls[d.CallID] = c
	}
	fresh, c.unsent = fresh || c.unsent, false
	was := c.tool
	c.tool = d
	title := d.Title
	said := announce(d, v.info.Cwd)
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
	if len(d.Input) > 0 && !slices.Equal(d.Input, was.Input) && json.Valid(d.Input) {
		u.RawInput = d.Input
	}
	if locs := locations(d.Locations); len(locs) > 0 && !slices.Equal(d.Locations, was.Locations) {
		u.Locations = locs
	} else if len(locs) == 0 && said.path != "" && d.Status != was.Status && d.Status == agent.ToolRunning {
		u.Locations = []protocol.ToolCallLocation{{Path: said.path}}
	}
	if d.Status == agent.ToolCompleted || d.Status == agent.ToolError {
		u.RawOutput = rawOutput(d)
	}
	v.mu.Unlock()
	if d.Status == agent.ToolRunning {
		v.es.server.relay(v.es, d)
	}
	if len(content) > 0 {
		u.Content = content
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

// toolMeta is what an editor that knows Pillion is told of a call besides.
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

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// announcement is what a call's input already says before the tool has words of its own.
type announcement struct{ what, path string }

func announce(d agent.ToolData, cwd string) (a announcement) {
	var in map[string]json.RawMessage
	if d.Title != "" && len(d.Locations) > 0 || json.Unmarshal(d.Input, &in) != nil {
		return a
	}
	for _, key := range []string{"filePath", "command", "pattern", "path", "url", "query", "description", "operation"} {
		var text string
		if json.Unmarshal(in[key], &text) != nil || text == "" {
			continue
		}
		if a.what == "" {
			line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
			a.what = line
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

// toolContent is what a call's card shows: its diffs, then its output or error. v.mu is held.
func (v *view) toolContent(c *callView) []protocol.ToolCallContent {
	d := c.tool
	var text string
	switch d.Status {
	case agent.ToolCompleted:
		text = d.Output
	case agent.ToolError:
		text = failed(d)
	default:
		text, _ = d.Metadata["output"].(string) // a running command shows what it has said so far
		if id, ok := v.es.server.shownIn(v.es, d); ok {
			return append(slices.Clone(c.diffs), terminalContent(id))
		}
	}
	out := slices.Clone(c.diffs)
	for _, id := range c.order {
		out = append(out, c.by[id]...)
	}
	if text != "" {
		if d.Kind == tools.KindExecute || d.Kind == tools.KindRead || d.Kind == tools.KindSearch {
			text = fenced(text)
		}
		out = append(out, textContent(text))
	}
	for _, a := range d.Attachments {
		if strings.HasPrefix(a.Mime, "image/") {
			out = append(out, protocol.ToolCallContent{Type: "content", Value: &protocol.Content{
				Content: protocol.ContentBlock{Type: "image", Value: &protocol.ImageContent{MimeType: a.Mime, Data: encodeBase64(a.Data)}}}})
		}
	}
	return out
}

// failed is what a call that failed had said until then, and why it failed.
func failed(d agent.ToolData) string {
	said := d.Output
	if said == "" {
		said, _ = d.Metadata["output"].(string)
	}
	if said == "" || strings.Contains(said, d.Error) {
		return cmp.Or(said, d.Error)
	}
	return said + "\n\n" + d.Error
}

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

func toolKind(k tools.Kind) protocol.ToolKind {
	if k == "" {
		return protocol.ToolKindOther
	}
	return protocol.ToolKind(k)
}

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

// fenced is text as a block of code.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

func planUpdate(todos []tools.Todo) *protocol.Plan {
	p := &protocol.Plan{Entries: []protocol.PlanEntry{}}
	for _, t := range todos {
		if t.Status == "cancelled" {
			continue // a plan has no word for it
		}
		e := protocol.PlanEntry{Content: t.Content, Priority: protocol.PlanEntryPriority(t.Priority), Status: protocol.PlanEntryStatus(t.Status)}
		switch e.Priority {
		case protocol.PlanEntryPriorityHigh, protocol.PlanEntryPriorityMedium, protocol.PlanEntryPriorityLow:
		default:
			e.Priority = protocol.PlanEntryPriorityMedium
		}
		switch e.Status {
		case protocol.PlanEntryStatusInProgress, protocol.PlanEntryStatusCompleted:
		default:
			e.Status = protocol.PlanEntryStatusPending
		}
		p.Entries = append(p.Entries, e)
	}
	return p
}

// notice tells the person something: as a notice where the editor shows them, else as a thought, which every editor shows.
func (v *view) notice(level, text string) {
	if text == "" {
		return
	}
	if v.es.server.currentClient().showsNotices() {
		title, rest, _ := strings.Cut(text, "\n")
		v.es.send("notice", &protocol.Notice{Severity: protocol.NoticeSeverity(level), Title: title, Description: rest})
		return
	}
	v.es.send("agent_thought_chunk", &protocol.ContentChunk{Content: textBlock("[" + level + "] " + text + "\n")})
}

func (v *view) showUsage(d agent.TurnData) {
	if d.ContextSize <= 0 {
		return
	}
	u := &protocol.UsageUpdate{Used: int64(d.ContextUsed), Size: int64(d.ContextSize)}
	if d.Cost > 0 {
		u.Cost = &protocol.Cost{Amount: d.Cost, Currency: "USD"}
	}
	v.send("usage_update", u, protocol.UpdateMeta{})
}

// call is a tool call the editor has been shown.
func (v *view) call(id string) (agent.ToolData, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.calls[id]
	if c == nil {
		return agent.ToolData{}, false
	}
	return c.tool, true
}

// How many bytes of text a change's diffs carry: of one file whole, beyond it only the changed places; and of all files,
// beyond which they are only named. One message must stay below what editors read.
const (
	maxDiffText  = 4 << 20
	maxDiffTotal = 10 << 20
)

// diffContent is a change as ACP shows it: one diff for each file.
func diffContent(set *change.Set) []protocol.ToolCallContent {
	var out []protocol.ToolCallContent
	total := 0
	for _, f := range set.Files {
		d := &protocol.Diff{Path: f.Path, NewText: f.New}
		old := f.Old
		if len(f.Old)+len(f.New) > maxDiffText || f.OldRef != "" || f.NewRef != "" { // or its texts are kept elsewhere
			old, d.NewText = excerpts(f)
		}
		if total += len(old) + len(d.NewText); total > maxDiffTotal {
			out = append(out, textContent(fmt.Sprintf("%s %s: too large to show beside the others", f.Kind, f.Path)))
			continue
		}
		if f.Kind != change.Create {
			d.OldText = &old
		}
		switch f.Kind {
		case change.Delete:
			d.NewText = ""
		case change.Rename:
			out = append(out, textContent(fmt.Sprintf("Rename %s to %s", f.Path, f.NewPath)))
			d.Path = f.NewPath
			if f.Old == f.New {
				continue
			}
		}
		out = append(out, protocol.ToolCallContent{Type: "diff", Value: d})
	}
	return out
}

// excerpts are the changed places of a file too large to show whole.
func excerpts(f change.File) (old, now string) {
	var a, b strings.Builder
	for _, h := range f.Hunks {
		head := fmt.Sprintf("… line %d …\n", h.OldStart)
		if a.Len()+b.Len()+len(h.OldText)+len(h.NewText) > maxDiffText {
			a.WriteString("… and more …\n")
			b.WriteString("… and more …\n")
			break
		}
		a.WriteString(head + h.OldText)
		b.WriteString(head + h.NewText)
	}
	return a.String(), b.String()
}
