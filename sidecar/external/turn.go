package external

import (
	"cmp"
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

// turn is one session/prompt while the agent works on it.
type turn struct {
	*link
	ctx  context.Context // done when the prompt has been answered or is cancelled
	host *agent.ExternalTurn
	emit func(provider.Event) error // publishes text, thinking and usage

	calls sync.WaitGroup // requests of the agent that still run

	mu      sync.Mutex
	failed  error    // guarded by mu; the first error of emit, which becomes the turn's error
	told    []string // guarded by mu; messages to the agent that no answer could carry: rejections with words, partly kept writes
	rebuked bool     // guarded by mu; the person rejected a call without a message, so heed must cancel the prompt
	ending  bool     // guarded by mu; heed has cancelled it
	// said has what the agent has said of each of its calls so far, by its own id: a request for permission may name the call alone. Guarded by mu.
	said map[string]protocol.ToolCallUpdate
}

// Prompt implements agent.ExternalAgent.
func (p *Provider) Prompt(ctx context.Context, req *provider.Request, host *agent.ExternalTurn, emit func(provider.Event) error) error {
	l, err := p.agents.link(ctx, p.agent, host.Session().Info())
	if err != nil {
		return err
	}
	l.prompting.Lock() // the cancelled prompt before this one may still be ending
	defer l.prompting.Unlock()
	blocks, seen := l.blocks(req)
	// Stored before the prompt: an agent that crashes in it has read these messages, and continues from them when it is restarted.
	l.memory.Seen, l.fresh = seen, false
	p.agents.store(l.info.ID, l.memory)
	stop, err := l.prompt(ctx, host, emit, blocks)
	// The person's words with a rejection go to the agent at once, as a prompt: in ACP the answer to a permission request has no member for
	// words.
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

// maxAfterRejection is how often in a turn the words of a rejection become a prompt. Without a limit a turn does not end when the agent
// proposes the same again each time and a rule gives the same answer each time.
const maxAfterRejection = 2

// stopped says how a prompt ended, and what the agent still has to be told.
type stopped struct {
	reason provider.StopReason
	told   []string
}

// prompt sends one prompt, and returns when the agent has answered it and all its requests have ended.
func (l *link) prompt(ctx context.Context, host *agent.ExternalTurn, emit func(provider.Event) error, blocks []any) (stopped, error) {
	inside, cancel := context.WithCancel(ctx)
	t := &turn{link: l, ctx: inside, host: host, emit: emit, said: map[string]protocol.ToolCallUpdate{}}
	l.mu.Lock()
	l.turn = t
	l.mu.Unlock()
	defer func() {
		cancel() // ends the commands that the agent left running
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
		// Not ctx: the agent answers a cancelled prompt too, after session/cancel.
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
			l.stop() // it ignores the cancel; the next prompt restarts it
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

// rejected records that the person rejected a call. A message goes to the agent in the next prompt. Without one, heed cancels the prompt,
// as a turn of Pillion's own agent ends then: an agent that does not know why could only make another proposal to reject.
func (t *turn) rejected(what, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if message != "" {
		t.told = append(t.told, "About "+what+": the user rejected it and says: "+message)
		return
	}
	t.rebuked = true
}

// heed cancels the prompt of an agent that continues after a rejection without a message. It runs at the agent's next update or request
// instead of at once, so that the agent receives its answer first: many end their turn by themselves then.
func (t *turn) heed() {
	t.mu.Lock()
	now := t.rebuked && !t.ending
	t.ending = t.ending || now
	t.mu.Unlock()
	if now {
		_ = t.peer.Notify(context.WithoutCancel(t.ctx), "session/cancel", protocol.CancelNotification{SessionID: t.memory.Session})
	}
}

// say emits text or thinking. An error of emit becomes the turn's error.
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

// update handles session/update. The connection delivers updates in order, and before the answer to the prompt that they belong to.
func (l *link) update(params json.RawMessage) {
	var head struct {
		SessionID string
		Update    json.RawMessage
	}
	var u protocol.SessionUpdate
	// Updates of an unknown kind are ignored, so that agents with a later version of ACP work.
	if json.Unmarshal(params, &head) != nil || protocol.Decode(head.Update, &u) != nil || l.noteUpdate(u.Value) {
		return
	}
	l.mu.Lock()
	t := l.turn
	l.mu.Unlock()
	// Updates between prompts belong to the replay of session/load, which the session already has.
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

// blockText returns a content block as text; "" for pictures and sound.
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

// kinds maps ACP's tool kinds to Pillion's.
var kinds = map[protocol.ToolKind]tools.Kind{
	protocol.ToolKindRead: tools.KindRead, protocol.ToolKindEdit: tools.KindEdit, protocol.ToolKindDelete: tools.KindDelete, protocol.ToolKindMove: tools.KindMove,
	protocol.ToolKindSearch: tools.KindSearch, protocol.ToolKindExecute: tools.KindExecute, protocol.ToolKindThink: tools.KindThink, protocol.ToolKindFetch: tools.KindFetch,
}

// collect adds an update to what the agent has said of the call, and returns all of it.
func (t *turn) collect(u protocol.ToolCallUpdate) protocol.ToolCallUpdate {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.said[u.ToolCallID]
	all.ToolCallID = u.ToolCallID
	all.Title, all.Name, all.Kind, all.Status = cmp.Or(u.Title, all.Title), cmp.Or(u.Name, all.Name), cmp.Or(u.Kind, all.Kind), cmp.Or(u.Status, all.Status)
	if u.Content != nil {
		all.Content = u.Content
	}
	if u.Locations != nil {
		all.Locations = u.Locations
	}
	if len(u.RawInput) > 0 && string(u.RawInput) != "null" {
		all.RawInput = u.RawInput
	}
	t.said[u.ToolCallID] = all
	return all
}

// title returns the title of an agent's call as people read it: paths in the project are relative to its folder. OpenCode says tmp/x/a.go for
// /tmp/x/a.go in a project without Git.
func (t *turn) title(s string) string {
	folder := filepath.ToSlash(t.place.Cwd) + "/"
	s = strings.TrimPrefix(strings.ReplaceAll(s, folder, ""), strings.TrimPrefix(folder, "/"))
	return visible.Text(s)
}

// show adds or updates a call that the agent runs itself, and returns the session's id of the call.
func (t *turn) show(u protocol.ToolCallUpdate) string {
	t.collect(u)
	ended := u.Status == protocol.ToolCallStatusCompleted || u.Status == protocol.ToolCallStatusFailed
	if ended && t.place.Worked != nil {
		t.place.Worked() // before the end is published, so that the draft has recorded what the call changed
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
			d.Title = t.title(u.Title)
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

// maxShown is how many bytes of a call's content are kept: people read it, and the session stores it.
const maxShown = 50 << 10

// contentText returns the content of a call as text. A diff is only named: the proposal shows the change itself.
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

// rel returns a path as people read it: relative to the session's folder where it is inside.
func (t *turn) rel(path string) string {
	if r, err := filepath.Rel(t.place.Cwd, path); err == nil && filepath.IsLocal(r) {
		return r
	}
	return path
}

// blocks returns the messages that the agent has not seen, as content of a prompt, and the id of the last one. Messages before the person's
// own are one text: what the person and another model said.
func (l *link) blocks(req *provider.Request) (blocks []any, seen string) {
	from := 0
	if !l.fresh {
		for i, m := range req.Messages {
			if m.ID == l.memory.Seen {
				from = i + 1
			}
		}
		if from == 0 && l.memory.Seen != "" {
			from = max(len(req.Messages)-1, 0) // the message was compacted or undone; the agent knows the conversation, so send only the last message
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

// maxTold is how many bytes of an earlier conversation the agent is told; the beginning is cut off.
const maxTold = 40 << 10

// transcript returns what was said without the agent, for it to read; "" when there is nothing. The agent's own answers are left out: it
// remembers them, unless its conversation is empty.
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

// textBlock returns a text as an ACP content block.
func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// partBlocks returns a part of a message as content blocks. Pictures are sent as such where the agent accepts them, texts as embedded
// resources where it accepts those, and any other file is only named.
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

// current returns the running turn, counted in calls, so the caller must call calls.Done; an error where no prompt runs.
func (l *link) current() (*turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == nil {
		return nil, errors.New("no prompt is running")
	}
	l.turn.calls.Add(1) // under mu, so that prompt waits for every request that has begun
	return l.turn, nil
}
