package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// CompactionState is the stage of a compaction.
type CompactionState string

// A compaction begins, and is then done, failed or cancelled. Only a compaction that is done changes the conversation.
const (
	CompactionBegun     CompactionState = "begun"
	CompactionDone      CompactionState = "done"
	CompactionFailed    CompactionState = "failed"
	CompactionCancelled CompactionState = "cancelled"
)

// CompactionData describes a compaction: in what the model gets, a summary replaces the older part of the conversation. The transcript
// keeps everything.
type CompactionData struct {
	ID      string          `json:"id"` // id of the message that holds the summary
	State   CompactionState `json:"state"`
	Auto    bool            `json:"auto,omitempty"` // Pillion decided, not the person
	Why     string          `json:"why,omitempty"`
	Model   string          `json:"model,omitempty"`
	Summary string          `json:"summary,omitempty"`
	Error   string          `json:"error,omitempty"`

	Prompt  string         `json:"prompt,omitempty"`  // id of a message before From that is kept: the prompt of the running turn
	From    string         `json:"from,omitempty"`    // id of the first message of the kept tail; empty: no tail is kept
	Trimmed map[string]int `json:"trimmed,omitempty"` // call id → bytes kept of its result

	Messages int            `json:"messages,omitempty"` // how many messages the summary replaces
	Before   int            `json:"before,omitempty"`   // tokens of context, estimated
	After    int            `json:"after,omitempty"`
	Usage    provider.Usage `json:"usage,omitzero"`
	Cost     float64        `json:"cost,omitempty"`
}

// CompactionOptions are the settings under "compaction". Zero values mean the defaults.
type CompactionOptions struct {
	NoAuto    bool
	NoPrune   bool
	Reserved  int // tokens kept free for the answer
	TailTurns int // at most so many turns at the end are kept unsummarised; 0: as many as fit
	Recent    int // tokens of the newest messages that are never summarised
}

// ErrNothingToCompact means that the conversation is too short to be compacted.
var ErrNothingToCompact = errors.New("there is nothing to compact yet")

// leastWindow is the smallest usable window, in tokens, for which compaction is tried: the tools alone fill a smaller one.
const leastWindow = 4_000

// freeSummary is how many tokens longer than the replaced messages a summary may be when the person asked for it.
const freeSummary = 2_000

// errNoGain ends a compaction that would not shorten the conversation. The conversation stays unchanged, and history.futile keeps the next
// step from paying for the same summary again.
var errNoGain = errors.New("the summary is not shorter than what it replaces, so the conversation does not change")

// Compact summarises the conversation as a job between two turns. focus is what the summary must keep above all, in the person's words; may
// be empty.
func (s *Session) Compact(ctx context.Context, focus string) (d CompactionData, err error) {
	run := func(ctx context.Context) {
		t := &turn{s: s}
		var set *setup
		if set, err = t.setup(ctx); err == nil {
			d, err = t.compact(ctx, set, compaction{why: "asked for", focus: focus})
		}
	}
	if e := s.do(ctx, run, func(e error) { err = e }); e != nil {
		return d, e
	}
	return d, err
}

// usable returns how many tokens a conversation may have before it is compacted; 0 when the model's window is unknown. The rest is reserved
// for the answer and for the summary: a request that fills the window leaves no room to write one. At least half of the window is usable,
// whatever the settings say.
func usable(m provider.Model, o CompactionOptions) int {
	if m.Context <= 0 {
		return 0 // compaction then waits until the provider refuses a request; see shrink
	}
	reserved := o.Reserved
	if reserved <= 0 {
		reserved = min(20_000, m.Context/4)
		if m.Output > 0 {
			reserved = min(reserved, m.Output)
		}
	}
	return max(m.Context-reserved, m.Context/2)
}

// makeRoom shortens the conversation when the next request would not fit: first it drops old tool outputs, which costs no request, then
// it summarises older turns. compacted reports the latter.
func (t *turn) makeRoom(ctx context.Context, set *setup) (compacted bool) {
	o := set.compaction
	if !o.NoPrune {
		t.prune()
	}
	limit := usable(set.model, o)
	if o.NoAuto || limit < leastWindow || t.tokens(set) < limit {
		return false
	}
	// After a compaction that gained nothing, the conversation must grow by a tenth of the usable window before the next try.
	if h := t.s.hist; h.futile > 0 && h.tokens() < h.futile+limit/10 {
		return false
	}
	_, err := t.compact(ctx, set, compaction{why: "the context is nearly full", auto: true}) // compact has shown a failure
	return err == nil
}

// tokens returns the size of the next request in tokens: the provider's count for the last request, plus an estimate of what was added
// since. Before the first count it also estimates the system prompt and the tools, at four bytes a token.
func (t *turn) tokens(set *setup) int {
	n := t.s.hist.tokens()
	if t.s.hist.used == 0 {
		for _, b := range t.system {
			n += len(b) / 4
		}
		for _, spec := range set.specs {
			n += (len(spec.Description) + len(spec.Parameters)) / 4
		}
	}
	return n
}

// tokens returns the size of the conversation alone. used is valid only for the first usedAt messages: when the list has become shorter,
// after a compaction or a restore, everything is estimated.
func (h *history) tokens() int {
	if h.used > 0 && h.usedAt <= len(h.messages) {
		return h.used + estimateAll(h.messages[h.usedAt:])
	}
	return estimateAll(h.messages)
}

// estimateAll returns the size of messages in tokens.
func estimateAll(all []provider.Message) (n int) {
	for _, m := range all {
		n += estimateMessage(m)
	}
	return n
}

// estimateMessage returns the size of a message in tokens. The four tokens for each part stand for the role and the separators that
// providers add.
func estimateMessage(m provider.Message) (n int) {
	for _, p := range m.Parts {
		n += 4 + estimate(p) + len(p.Input)/4
	}
	return n
}

// compaction says why a compaction is tried and how hard it must try.
type compaction struct {
	why, focus string
	auto       bool
	hard       bool // the provider refused the request as too long, so little may be kept
}

// compact replaces the older part of the conversation by a summary. ErrNothingToCompact is returned before anything is shown; every later
// error has been shown to the person as a failed compaction. After any failure the conversation is unchanged.
func (t *turn) compact(ctx context.Context, set *setup, c compaction) (CompactionData, error) {
	s, h := t.s, t.s.hist
	limit := usable(set.model, set.compaction)
	plan := h.plan(limit, set.compaction, c)
	if plan.messages == 0 && len(plan.trimmed) == 0 {
		return CompactionData{}, ErrNothingToCompact
	}
	before := max(t.tokens(set), estimateAll(h.messages))
	d := CompactionData{ID: newID("cmp_"), State: CompactionBegun, Auto: c.auto, Why: c.why, Before: before, Messages: plan.messages}
	s.emit(EventCompaction, d)
	var extra []string
	var prompt string
	if x := s.rt.extensions(s.Info().Cwd); x.Compacting != nil {
		extra, prompt = x.Compacting(ctx, s.acting(), c.auto, c.focus)
	}

	var text string
	var spent StepData
	var err error
	if plan.messages > 0 {
		text, spent, err = s.errand(ctx, errand{agent: compactionAgent, model: set.info.Model, prompt: prompt,
			text:  strings.Join(append([]string{transcriptFor(plan.gone, c.focus, roomForSummary(set.model))}, extra...), "\n\n"),
			said:  func(text string) { s.text(EventSummary, d.ID, text) },
			again: func() { s.emit(EventCompaction, d) }})
	}
	t.end.Usage, t.end.Cost = sum(t.end.Usage, spent.Usage), t.end.Cost+spent.Cost
	d.Model, d.Usage, d.Cost = spent.Message.Model, spent.Usage, spent.Cost
	var perr *provider.Error
	switch {
	case ctx.Err() != nil:
		d.State = CompactionCancelled
	case errors.Is(err, errNoModelForJob), errors.As(err, &perr) && perr.Kind == provider.ErrContextLength:
		text, err = digest(plan.gone), nil // no model can summarise it; list the facts instead
	case c.hard && plan.messages > 0 && (err != nil || len(text)/4 >= plan.tokens):
		// Without a summary the conversation could not continue at all.
		if err == nil {
			err = errNoGain
		}
		t.s.Notice("warning", "No summary could be made ("+trimDot(err.Error())+"). The facts are kept in short instead.")
		s.emit(EventCompaction, d) // begins again: readers drop the summary that was streamed
		text, err = digest(plan.gone), nil
	}
	if err == nil && d.State == CompactionBegun {
		d.Summary, d.Prompt, d.From, d.Trimmed = text, plan.prompt, plan.from, plan.trimmed
		d.After = max(0, before-plan.tokens) + len(text)/4
		// A compaction that a person asked for may gain nothing, up to freeSummary.
		if gain := plan.tokens - len(text)/4; gain <= 0 && (c.auto || gain < -freeSummary) {
			err = errNoGain
		}
	}
	if err != nil || d.State == CompactionCancelled {
		h.futile = h.tokens()
		if d.State != CompactionCancelled {
			d.State, d.Error = CompactionFailed, t.s.mask(err.Error())
		} else {
			err = ctx.Err()
		}
		d.Summary, d.Prompt, d.From, d.Trimmed, d.After = "", "", "", nil, 0
		s.emit(EventCompaction, d)
		return d, err
	}
	d.State, s.began.compacted = CompactionDone, true
	s.emit(EventCompaction, d)
	h.compact(d)
	t.end.ContextUsed, t.end.ContextSize = h.used, set.model.Context
	return d, nil
}

// roomForSummary returns how many bytes of transcript a request for a summary may have. A quarter of the window, at most 12,000 tokens,
// stays free for the prompt and the answer. An unknown window counts as 32,000 tokens.
func roomForSummary(m provider.Model) int {
	size := m.Context
	if size <= 0 {
		size = 32_000
	}
	return max(4_000, (size-min(size/4, 12_000))*3) // three bytes a token are a cautious estimate
}

// compact replaces the summarised messages by the summary. Loading a session applies stored EventCompaction events with it as well, so the
// result must depend on d alone. It builds a new list, because messages never change.
func (h *history) compact(d CompactionData) {
	text := "This conversation was compacted to save context. What was said and done before, in short:\n\n<summary>\n" + d.Summary +
		"\n</summary>\n\nContinue from here; do not repeat what is done. Read a file again before you rely on its content."
	var list []provider.Message
	if d.Summary != "" {
		list = append(list, provider.Message{ID: d.ID, Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: text, Synthetic: true}}})
	}
	keep := false
	for _, m := range h.messages {
		if keep = keep || d.From != "" && m.ID == d.From; keep || d.Prompt != "" && m.ID == d.Prompt {
			list = append(list, trim(m, d.Trimmed))
		}
	}
	h.messages, h.accepted = list, 0
	h.used, h.usedAt, h.futile = d.After, len(list), 0
}

// trim cuts the tool results of a message. most maps a call id to the bytes that are kept; 0 drops the result. Files are dropped with any
// cut, because they are the largest part of most results.
func trim(m provider.Message, most map[string]int) provider.Message {
	if m.Role != provider.RoleTool || len(most) == 0 {
		return m
	}
	parts := append([]provider.Part(nil), m.Parts...)
	for i, p := range parts {
		n, ok := most[p.CallID]
		if !ok {
			continue
		}
		if parts[i].Files = nil; n == 0 {
			parts[i].Text = prunedText
		} else if n < len(p.Text) {
			parts[i].Text = strings.ToValidUTF8(p.Text[:n], "") + "\n\n[The rest of this output was dropped to fit the model's context. Ask for it in smaller pieces.]"
		}
	}
	m.Parts = parts
	return m
}

// words describes a finished compaction to a person.
func (d CompactionData) words() string {
	if d.Summary == "" {
		return fmt.Sprintf("Long outputs were cut to fit the model's context (about %d tokens now, %d before).", d.After, d.Before)
	}
	return fmt.Sprintf("The conversation was compacted: %s became a summary (about %d tokens now, %d before).", textutil.Plural(d.Messages, "message"), d.After, d.Before)
}

// Words describes any stage of a compaction to a person.
func (d CompactionData) Words() string {
	switch d.State {
	case CompactionBegun:
		return "Compacting the conversation: " + d.Why + "."
	case CompactionFailed:
		return "The conversation could not be compacted: " + trimDot(d.Error) + "."
	case CompactionCancelled:
		return "The compaction was cancelled; the conversation is as it was."
	}
	return d.words()
}
