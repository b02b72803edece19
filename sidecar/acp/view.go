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

// view turns a session's events into updates for one editor, in order. It keeps what later updates and approval
// requests refer to: cards of tool calls, the ledger of changes, the views of sub-agents. show is called for one
// event after the other, by the replay and then by the session's event sink; approval requests read the maps from
// other goroutines, which is what mu is for.
type view struct {
	es *editorSession

	// seq counts the events of a session from 1.
	seq       int64 // of the event that is being shown; owned by the event sink
	replaying bool  // the event is from before the editor opened the session

	mu       sync.Mutex
	info     agent.SessionInfo    // as last shown; guarded by mu
	finished map[string]bool      // calls of turns that are over, which the editor still shows; guarded by mu
	calls    map[string]*callView // by call id; guarded by mu
	// ledger has a lock of its own.
	ledger *review.Ledger

	askedPending map[string]string // change sets by call whose approval request was sent before their verdict; guarded by mu

	child     *childOf         // set in the view of a sub-agent's session
	children  map[string]*view // by the task's call; guarded by mu
	taskEnded bool             // the task has ended; guarded by the parent view's mu
}

// newView has shown nothing.
func newView(es *editorSession) *view {
	return &view{es: es, calls: map[string]*callView{}, finished: map[string]bool{}, ledger: review.NewLedger()}
}

// remember reads a stored event without showing it. The editor has kept the conversation; the view must know the
// session's title and options to see what changes later.
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

// showPast shows an event of the past. One that a restore has hidden is only remembered.
func (v *view) showPast(e agent.Event, hidden bool) {
	if hidden {
		v.seq = e.Seq
		v.remember(e)
		return
	}
	v.show(e, true)
}

// show sends the updates of one event. replay is set for what happened before the editor opened the session: notices
// are then out of date.
func (v *view) show(e agent.Event, replay bool) {
	v.seq, v.replaying = e.Seq, replay
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
			v.followChild(d)
			v.childEnded(d)
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
			if d.CutOff() { // in a replay too: nobody could be told when it happened
				v.noticeWith("warning", d.Error, protocol.UpdateMeta{})
			}
		}
		v.forgetFinished()
		if !replay {
			// A turn may have written a command's file.
			go v.es.sendCommands() // it reads files; the event sink must not wait for that
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

// forgetFinished drops, at the end of a turn, what only running calls need. A session of many turns would otherwise
// keep the outputs of all its calls in memory; ids are enough to know that a card is there.
func (v *view) forgetFinished() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.calls {
		if c.tool.Status == agent.ToolCompleted || c.tool.Status == agent.ToolError {
			v.finished[id] = true
			delete(v.calls, id)
		}
	}
	for id, k := range v.children {
		if k.taskEnded {
			delete(v.children, id)
		}
	}
}

// showInfo sends what has changed of a session's title, agent and options.
func (v *view) showInfo(d agent.SessionInfo) {
	v.mu.Lock()
	was := v.info
	v.info = d
	v.mu.Unlock()
	// The title is sent also when it is the first that is known: it is not part of the answer to session/new.
	if d.Title != was.Title {
		v.es.send("session_info_update", &protocol.SessionInfoUpdate{Title: d.Title, UpdatedAt: d.Updated.UTC().Format(time.RFC3339)})
	}
	if was.ID == "" {
		return // the rest was part of the answer that opened the session
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

// send sends an update of the event that is being shown. An editor that knows Pillion gets the event's number, so
// that it can tell replays apart.
func (v *view) send(kind string, value any, meta protocol.UpdateMeta) {
	// All that _meta.pillion has is for editors that know Pillion.
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

// showPrompt shows a prompt. The editor that has sent it shows it already: it only gets the message's id, and only if
// it can tell that from a new prompt.
func (v *view) showPrompt(d agent.PromptData, steered bool) {
	// In a replay the editor starts with an empty conversation and needs its own prompts too.
	own := !v.replaying && v.es.takeOwn(d.MessageID) && !steered
	// Such an editor would show the prompt twice.
	if own && v.es.editor.Client().Pillion.Version == 0 {
		return
	}
	meta := protocol.UpdateMeta{Steered: steered, Own: own}
	for _, b := range Blocks(d.Parts) {
		v.send("user_message_chunk", &protocol.ContentChunk{Content: b, MessageID: d.MessageID}, meta)
	}
}

// takeOwn reports, once, whether a prompt was sent by this connection.
func (es *editorSession) takeOwn(message string) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	own := es.own[message]
	delete(es.own, message)
	return own
}

// Blocks are the parts of a prompt as ACP content, for editors; what was added for the model only is left out. Files
// that are not images become a line with their name: their bytes are of no use to the conversation's view.
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

// planUpdate is a todo list as ACP's plan.
func planUpdate(todos []tools.Todo) *protocol.Plan {
	p := &protocol.Plan{Entries: []protocol.PlanEntry{}}
	for _, t := range todos {
		if t.Status == "cancelled" {
			continue // ACP's plan has no such status
		}
		e := protocol.PlanEntry{Content: t.Content, Priority: protocol.PlanEntryPriority(t.Priority), Status: protocol.PlanEntryStatus(t.Status)}
		switch e.Priority {
		case protocol.PlanEntryPriorityHigh, protocol.PlanEntryPriorityMedium, protocol.PlanEntryPriorityLow:
		default:
			// A model writes priorities and states as it likes; ACP's are closed sets, and an editor may refuse the
			// whole plan for another word.
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

// Notice implements review.Notifier.
func (v *view) Notice(level, text string) { v.notice(level, text) }

// Resumable implements review.Notifier. An editor that knows Pillion is told so as data, and may send the prompt itself.
func (v *view) Resumable(accepted bool) {
	v.noticeWith("info", "The turn was interrupted before your decision. Send a prompt, for example “continue”, to continue.", protocol.UpdateMeta{Resumable: accepted})
}

// notice shows a text to the person: as a notice if the editor has them, else as a thought, which every editor shows.
func (v *view) notice(level, text string) { v.noticeWith(level, text, protocol.UpdateMeta{}) }

// noticeWith is notice with _meta.pillion.
func (v *view) noticeWith(level, text string, meta protocol.UpdateMeta) {
	if text == "" {
		return
	}
	if v.es.editor.Client().ShowsNotices() {
		// The first line is the title of a notice, the rest its description.
		title, rest, _ := strings.Cut(text, "\n")
		v.send("notice", &protocol.Notice{Severity: protocol.NoticeSeverity(level), Title: title, Description: rest}, meta)
		return
	}
	kind := "agent_thought_chunk"
	if v.es.editor.Client().Profile.HidesThoughts {
		kind = "agent_message_chunk"
	}
	// The level is part of the text, since a thought has no severity.
	v.es.send(kind, &protocol.ContentChunk{Content: protocol.TextBlock("[" + level + "] " + text + "\n")})
}

// ask shows a text that the person must act on. In a client without notices it is a message, because some fold
// thoughts.
func (v *view) ask(text string) {
	if v.es.editor.Client().ShowsNotices() {
		v.notice("warning", text)
		return
	}
	v.es.send("agent_message_chunk", &protocol.ContentChunk{Content: protocol.TextBlock("\n[warning] " + text + "\n\n")})
}

// showUsage sends how much of the context is used, in tokens, and the cost so far. A model of unknown size has no
// share that could be shown.
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
