package external

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// turn is one prompt while the agent works on it.
type turn struct {
	*link
	ctx  context.Context // ends when the prompt has been answered, or is cancelled
	host *agent.ExternalTurn
	emit func(provider.Event) error

	calls sync.WaitGroup // requests of the agent that are being carried out

	mu      sync.Mutex
	failed  error    // guarded by mu: emit's error, which ends the turn
	told    []string // guarded by mu: what the person said with a rejection, for the agent
	rebuked bool     // guarded by mu: the person rejected a call and said nothing, so the prompt is to be cancelled
	ending  bool     // guarded by mu: it was
}

// Prompt implements agent.ExternalAgent.
func (p *Provider) Prompt(ctx context.Context, req *provider.Request, host *agent.ExternalTurn, emit func(provider.Event) error) error {
	l, err := p.agents.link(ctx, p.agent, host.Session().Info())
	if err != nil {
		return err
	}
	l.prompting.Lock() // a cancelled prompt may still be ending
	defer l.prompting.Unlock()
	blocks, seen := l.blocks(req)
	// Before the prompt: an agent that dies in it has read it, and goes on with it when it is started again.
	l.memory.Seen, l.fresh = seen, false
	p.agents.remember(l.info.ID, l.memory)
	stop, err := l.prompt(ctx, host, emit, blocks)
	// What a rejection said goes to the agent at once: its protocol has no place for words in the answer to a permission request.
	for range maxAfterRejection {
		if err != nil || len(stop.told) == 0 {
			break
		}
		stop, err = l.prompt(ctx, host, emit, []any{textBlock(strings.Join(stop.told, "\n\n"))})
	}
	if err != nil {
		return err
	}
	return emit(provider.Event{Type: provider.EventStop, Stop: stop.reason})
}

// maxAfterRejection is how often in a turn the words of a rejection become a prompt of their own. An agent that proposes the same again each
// time would go on without end otherwise, where a rule or a command line gives the same answer each time.
const maxAfterRejection = 2

// stopped is how a prompt ended.
type stopped struct {
	reason provider.StopReason
	told   []string
}

// prompt sends one prompt and carries out what the agent asks until it has answered.
func (l *link) prompt(ctx context.Context, host *agent.ExternalTurn, emit func(provider.Event) error, blocks []any) (stopped, error) {
	inside, cancel := context.WithCancel(ctx)
	t := &turn{link: l, ctx: inside, host: host, emit: emit}
	l.mu.Lock()
	l.turn = t
	l.mu.Unlock()
	defer func() {
		cancel() // commands that it left running in this prompt end with it
		l.mu.Lock()
		l.turn = nil
		l.mu.Unlock()
		t.calls.Wait()
		if l.place.Worked != nil {
			l.place.Worked()
		}
	}()
	type outcome struct {
		raw json.RawMessage
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		// Not ctx: a cancelled prompt is answered too, after session/cancel.
		o.err = l.peer.Call(context.WithoutCancel(ctx), "session/prompt", map[string]any{"sessionId": l.memory.Session, "prompt": blocks}, &o.raw)
		done <- o
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		_ = l.peer.Notify(context.WithoutCancel(ctx), "session/cancel", protocol.CancelNotification{SessionID: l.memory.Session})
		timer := time.NewTimer(cancelLimit)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			l.stop() // it does not listen; the next prompt starts it again
		}
		return stopped{}, ctx.Err()
	}
	t.mu.Lock()
	failed, told := t.failed, t.told
	t.mu.Unlock()
	if failed != nil {
		return stopped{}, failed
	}
	if o.err != nil {
		return stopped{}, l.why(o.err)
	}
	var end struct {
		StopReason protocol.StopReason
		Usage      *struct{ InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens, ThoughtTokens int }
	}
	if err := json.Unmarshal(o.raw, &end); err != nil {
		return stopped{}, failure("%s ended its turn in a way that cannot be read: %w", l.agent.Name, err)
	}
	if u := end.Usage; u != nil {
		usage := provider.Usage{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CachedReadTokens, CacheWrite: u.CachedWriteTokens, Reasoning: u.ThoughtTokens}
		if err := emit(provider.Event{Type: provider.EventUsage, Usage: usage}); err != nil {
			return stopped{}, err
		}
	}
	s := stopped{told: told}
	switch end.StopReason {
	case protocol.StopReasonMaxTokens, protocol.StopReasonMaxTurnRequests:
		s.reason = provider.StopMaxTokens
	case protocol.StopReasonRefusal:
		s.reason = provider.StopRefusal
	default:
		s.reason = provider.StopEnd
	}
	return s, nil
}

// rejected notes that the person said no to a call. With words the agent is told them after this prompt. Without, the prompt is cancelled,
// as a turn of Pillion's own agent ends then: going on without knowing why would only produce the next proposal to reject.
func (t *turn) rejected(what, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if message != "" {
		t.told = append(t.told, "About "+what+": the user rejected it and says: "+message)
		return
	}
	t.rebuked = true
}

// heed cancels the prompt of an agent that goes on after such a rejection. It is called for the next thing that the agent says, and not at
// once, so that the agent has its answer first: many end their turn at it by themselves.
func (t *turn) heed() {
	t.mu.Lock()
	now := t.rebuked && !t.ending
	t.ending = t.ending || now
	t.mu.Unlock()
	if now {
		_ = t.peer.Notify(context.WithoutCancel(t.ctx), "session/cancel", protocol.CancelNotification{SessionID: t.memory.Session})
	}
}

// say emits text or thought. An error of emit ends the turn.
func (t *turn) say(typ provider.EventType, text string) {
	if text == "" {
		return
	}
	if err := t.emit(provider.Event{Type: typ, Text: text}); err != nil {
		t.mu.Lock()
		if t.failed == nil {
			t.failed = err
		}
		t.mu.Unlock()
	}
}

// update handles session/update. Updates come in order, and before the answer of the prompt that they belong to.
func (l *link) update(params json.RawMessage) {
	var head struct {
		SessionID string
		Update    json.RawMessage
	}
	var u protocol.SessionUpdate
	// An update of a kind that is not known here is ignored, so that newer agents can be used.
	if json.Unmarshal(params, &head) != nil || protocol.Decode(head.Update, &u) != nil {
		return
	}
	l.mu.Lock()
	t := l.turn
	l.mu.Unlock()
	// Between prompts there is no turn in which it could be shown: the replay of session/load, which the session has already.
	if t == nil || head.SessionID != l.memory.Session {
		return
	}
	t.heed()
	switch v := u.Value.(type) {
	case *protocol.ContentChunk:
		switch u.SessionUpdate {
		case "agent_message_chunk":
			t.say(provider.EventText, blockText(v.Content))
		case "agent_thought_chunk":
			t.say(provider.EventThinking, blockText(v.Content))
		}
	case *protocol.ToolCall:
		t.show(protocol.ToolCallUpdate{ToolCallID: v.ToolCallID, Title: v.Title, Name: v.Name, Kind: v.Kind, Status: v.Status, Content: v.Content, Locations: v.Locations, RawInput: v.RawInput, RawOutput: v.RawOutput})
	case *protocol.ToolCallUpdate:
		t.show(*v)
	case *protocol.Plan:
		todos := make([]tools.Todo, len(v.Entries))
		for i, e := range v.Entries {
			todos[i] = tools.Todo{Content: e.Content, Status: string(e.Status), Priority: string(e.Priority)}
		}
		_ = t.host.Plan(t.ctx, todos)
	}
}

// blockText is what a content block shows as text.
func blockText(b protocol.ContentBlock) string {
	switch v := b.Value.(type) {
	case *protocol.TextContent:
		return v.Text
	case *protocol.ResourceLink:
		return "[" + v.Name + "](" + v.URI + ")"
	case *protocol.EmbeddedResource:
		if text := v.Resource.Text; text != nil {
			return *text
		}
	}
	return ""
}

// kinds are the tool kinds of ACP as ours.
var kinds = map[protocol.ToolKind]tools.Kind{
	protocol.ToolKindRead: tools.KindRead, protocol.ToolKindEdit: tools.KindEdit, protocol.ToolKindDelete: tools.KindDelete, protocol.ToolKindMove: tools.KindMove,
	protocol.ToolKindSearch: tools.KindSearch, protocol.ToolKindExecute: tools.KindExecute, protocol.ToolKindThink: tools.KindThink, protocol.ToolKindFetch: tools.KindFetch,
}

// show shows a call that the agent runs itself, and returns the session's id of it.
func (t *turn) show(u protocol.ToolCallUpdate) string {
	ended := u.Status == protocol.ToolCallStatusCompleted || u.Status == protocol.ToolCallStatusFailed
	if ended && t.place.Worked != nil {
		t.place.Worked() // before the end is shown: the draft then knows what the call has changed
	}
	return t.host.Show(u.ToolCallID, func(d *agent.ToolData) {
		if u.Name != "" {
			d.Tool = u.Name
		} else if d.Tool == "" {
			d.Tool = t.agent.ID
		}
		if k, ok := kinds[u.Kind]; ok {
			d.Kind = k
		}
		if u.Title != "" {
			d.Title = visible.Text(u.Title)
		}
		if len(u.RawInput) > 0 && string(u.RawInput) != "null" {
			d.Input = u.RawInput
		}
		if u.Content != nil {
			d.Output = t.contentText(u.Content)
		}
		if u.Locations != nil {
			d.Locations = nil
			for _, at := range u.Locations {
				place := tools.Location{Path: at.Path}
				if at.Line != nil {
					place.Line = int(*at.Line)
				}
				d.Locations = append(d.Locations, place)
			}
		}
		switch u.Status {
		case protocol.ToolCallStatusInProgress:
			d.Status = agent.ToolRunning
		case protocol.ToolCallStatusCompleted:
			d.Status = agent.ToolCompleted
		case protocol.ToolCallStatusFailed:
			d.Status, d.ErrorKind = agent.ToolError, "error"
			if d.Error = d.Output; d.Error == "" {
				d.Error = "The call failed."
			}
		}
		if d.Status == "" {
			d.Status = agent.ToolPending
		}
	})
}

// maxShown is how much of a call's content is kept, in bytes: it is for reading, and stored with the session.
const maxShown = 50 << 10

// contentText is the content of a call as text. Diffs are named only: the change itself is shown with the proposal.
func (t *turn) contentText(list []protocol.ToolCallContent) string {
	var parts []string
	for _, c := range list {
		switch v := c.Value.(type) {
		case *protocol.Content:
			if s := blockText(v.Content); s != "" {
				parts = append(parts, s)
			}
		case *protocol.Diff:
			parts = append(parts, "Changed "+visible.Text(t.rel(v.Path)))
		case *protocol.Terminal:
			t.link.mu.Lock()
			x := t.terminals[v.TerminalID]
			t.link.mu.Unlock()
			if x != nil {
				out, _, _ := x.state()
				parts = append(parts, out)
			}
		}
	}
	text := strings.Join(parts, "\n")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "\n…"
	}
	return text
}

// rel is a path as people read it: relative to the session's folder where it is inside.
func (t *turn) rel(path string) string {
	if r, err := filepath.Rel(t.place.Cwd, path); err == nil && filepath.IsLocal(r) {
		return r
	}
	return path
}

// blocks are the messages that the agent has not seen, as content of a prompt, and the id of the last one. What another model and the
// person said before is told in words.
func (l *link) blocks(req *provider.Request) (blocks []any, seen string) {
	from := 0
	if !l.fresh {
		for i, m := range req.Messages {
			if m.ID == l.memory.Seen {
				from = i + 1
			}
		}
		if from == 0 && l.memory.Seen != "" {
			from = max(len(req.Messages)-1, 0) // the message was compacted or taken back; the agent knows the conversation
		}
	}
	list := req.Messages[from:]
	// The trailing messages of the person are the prompt; anything before them is context.
	first := len(list)
	for first > 0 && list[first-1].Role == provider.RoleUser {
		first--
	}
	if told := l.transcript(list[:first]); told != "" {
		blocks = append(blocks, textBlock(told))
	}
	for _, m := range list[first:] {
		seen = m.ID
		for _, p := range m.Parts {
			blocks = append(blocks, l.partBlocks(p)...)
		}
	}
	if len(req.Messages) > 0 {
		seen = req.Messages[len(req.Messages)-1].ID
	}
	return blocks, seen
}

// maxTold is how much of an earlier conversation an agent is told, in bytes, counted from its end.
const maxTold = 40 << 10

// transcript is what was said without the agent, for it to read; "" for nothing. Its own answers are left out: it remembers them, unless
// its conversation is a new one.
func (l *link) transcript(list []provider.Message) string {
	var b strings.Builder
	for _, m := range list {
		if m.Role == provider.RoleTool || m.Role == provider.RoleAssistant && !l.fresh && m.Model == l.agent.Model().String() {
			continue
		}
		for _, p := range m.Parts {
			switch {
			case p.Type == provider.PartText && strings.TrimSpace(p.Text) != "":
				fmt.Fprintf(&b, "\n[%s]\n%s\n", m.Role, strings.TrimSpace(p.Text))
			case p.Type == provider.PartToolCall:
				fmt.Fprintf(&b, "\n[%s called %s]\n", m.Role, p.Name)
			}
		}
	}
	text := b.String()
	if text == "" {
		return ""
	}
	if over := len(text) - maxTold; over > 0 {
		text = "…" + strings.ToValidUTF8(text[over:], "")
	}
	return "This conversation began without you. What was said so far:\n<conversation>" + text + "</conversation>\nThe user's next message follows."
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// partBlocks are a part of a message as content blocks. Pictures go as such where the agent reads them, texts as embedded resources where it
// takes those, and everything else is named.
func (l *link) partBlocks(p provider.Part) (out []any) {
	if p.Type == provider.PartText && p.Text != "" {
		out = append(out, textBlock(p.Text))
	}
	can := l.can.PromptCapabilities
	for _, f := range p.Files {
		switch {
		case strings.HasPrefix(f.Mime, "image/") && can != nil && can.Image:
			out = append(out, map[string]any{"type": "image", "mimeType": f.Mime, "data": base64.StdEncoding.EncodeToString(f.Data)})
		case strings.HasPrefix(f.Mime, "text/") && can != nil && can.EmbeddedContext:
			uri := (&url.URL{Scheme: "file", Path: f.Name}).String()
			out = append(out, map[string]any{"type": "resource", "resource": map[string]any{"uri": uri, "mimeType": f.Mime, "text": string(f.Data)}})
		case strings.HasPrefix(f.Mime, "text/"):
			out = append(out, textBlock(f.Name+":\n"+string(f.Data)))
		default:
			out = append(out, textBlock("(attached: "+f.Name+", "+f.Mime+", which this agent cannot read)"))
		}
	}
	return out
}

// current is the running turn; an error where there is none.
func (l *link) current() (*turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == nil {
		return nil, errors.New("no prompt is running")
	}
	l.turn.calls.Add(1) // under mu, so that prompt waits for every request that has begun
	return l.turn, nil
}
