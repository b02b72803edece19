package acp

import (
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/review"
	"github.com/pillion-dev/pillion/tools"
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
	ledger  *review.Ledger

	child    *childOf         // set in the view of a sub-agent's session
	children map[string]*view // by the task's call; guarded by mu
	over     bool             // the task has ended; guarded by the parent view's mu
}

func newView(es *editorSession) *view {
	return &view{es: es, calls: map[string]*callView{}, settled: map[string]bool{}, ledger: review.NewLedger()}
}

// remember takes in a stored event without showing it.
func (v *view) remember(e agent.Event) {
	switch e.Type {
	case agent.EventSession:
		if d, ok := agent.Value[agent.SessionInfo](e); ok {
			v.mu.Lock()
			v.info = d
			v.mu.Unlock()
		}
	default:
		v.ledger.Take(e)
	}
}

// show sends what an event means to the editor. replay is set for what happened before the editor was there.
func (v *view) show(e agent.Event, replay bool) {
	v.seq, v.past = e.Seq, replay
	switch e.Type {
	case agent.EventSession:
		if d, ok := agent.Value[agent.SessionInfo](e); ok {
			v.showInfo(d)
		}
	case agent.EventPrompt:
		v.ledger.Take(e)
		if d, ok := agent.Value[agent.PromptData](e); ok {
			v.showPrompt(d, false)
		}
	case agent.EventSteer:
		if d, ok := agent.Value[agent.PromptData](e); ok {
			v.showPrompt(d, true)
		}
	case agent.EventText, agent.EventThinking:
		v.showText(e)
	case agent.EventTool:
		if d, ok := agent.Value[agent.ToolData](e); ok {
			v.showTool(d)
			v.follow(d)
			v.ended(d)
		}
	case agent.EventCompaction:
		if d, ok := agent.Value[agent.CompactionData](e); ok {
			v.showCompaction(d)
		}
	case agent.EventSummary:
		if d, ok := agent.Value[agent.TextData](e); ok {
			v.showSummary(d)
		}
	case agent.EventChange, agent.EventReview:
		v.showChange(e, replay)
	case agent.EventRestore:
		v.showRestore(e, replay)
	case agent.EventPlan:
		if d, ok := agent.Value[agent.PlanData](e); ok {
			v.send("plan", planUpdate(d.Todos), protocol.UpdateMeta{})
		}
	case agent.EventNotice:
		if d, ok := agent.Value[agent.NoticeData](e); ok && !replay {
			v.noticeWith(d.Level, d.Text, protocol.UpdateMeta{Install: d.Install})
		}
	case agent.EventTurn:
		if d, ok := agent.Value[agent.TurnData](e); ok {
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
	if d, ok := agent.Value[agent.TextData](e); ok && d.Text != "" {
		v.send(kind, &protocol.ContentChunk{Content: protocol.TextBlock(d.Text), MessageID: d.MessageID}, protocol.UpdateMeta{})
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
		if opts := v.es.choices.configOptions(d); opts != nil {
			v.es.send("config_option_update", &protocol.ConfigOptionUpdate{ConfigOptions: opts})
		}
	}
}

// send sends an update of the event that is being shown. An editor that knows Pillion is told its number.
func (v *view) send(kind string, value any, meta protocol.UpdateMeta) {
	if v.es.editor.Client().Pillion.Version == 0 {
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
	if own && v.es.editor.Client().Pillion.Version == 0 {
		return
	}
	meta := protocol.UpdateMeta{Steered: steered, Own: own}
	for _, b := range Blocks(d.Parts) {
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

// Blocks are a prompt as an editor shows it; what was added for the model alone is left out.
func Blocks(parts []provider.Part) []protocol.ContentBlock {
	out := []protocol.ContentBlock{}
	for _, p := range parts {
		switch {
		case p.Synthetic:
		case p.Type == provider.PartText:
			out = append(out, protocol.TextBlock(p.Text))
		case p.Type == provider.PartFile:
			for _, f := range p.Files {
				block := protocol.TextBlock("(" + f.Mime + " " + f.Name + ")")
				if strings.HasPrefix(f.Mime, "image/") {
					block = protocol.ContentBlock{Type: "image", Value: &protocol.ImageContent{MimeType: f.Mime, Data: encodeBase64(f.Data)}}
				}
				out = append(out, block)
			}
		}
	}
	return out
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

// Notice implements Notifier.
func (v *view) Notice(level, text string) { v.notice(level, text) }

// notice tells the person something: as a notice where the editor shows them, else as a thought, which every editor shows.
func (v *view) notice(level, text string) { v.noticeWith(level, text, protocol.UpdateMeta{}) }

func (v *view) noticeWith(level, text string, meta protocol.UpdateMeta) {
	if text == "" {
		return
	}
	if v.es.editor.Client().ShowsNotices() {
		title, rest, _ := strings.Cut(text, "\n")
		v.send("notice", &protocol.Notice{Severity: protocol.NoticeSeverity(level), Title: title, Description: rest}, meta)
		return
	}
	kind := "agent_thought_chunk"
	if v.es.editor.Client().Profile.HidesThoughts {
		kind = "agent_message_chunk"
	}
	v.es.send(kind, &protocol.ContentChunk{Content: protocol.TextBlock("[" + level + "] " + text + "\n")})
}

// ask tells the person of something that only they can do. In a client without notices it is a message: thoughts are
// folded in some.
func (v *view) ask(text string) {
	if v.es.editor.Client().ShowsNotices() {
		v.notice("warning", text)
		return
	}
	v.es.send("agent_message_chunk", &protocol.ContentChunk{Content: protocol.TextBlock("\n[warning] " + text + "\n\n")})
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
