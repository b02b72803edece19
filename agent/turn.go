package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// turn is one prompt in the loop. Only the session's runner uses it, so it has no lock; rejected is also set by calls, which run in
// goroutines of their own.
type turn struct {
	s      *Session
	system []string
	agent  string // the agent for which system was made; another agent needs another prompt
	loop   loopWatch
	end    TurnData
	step   int  // counts from 1; a step that is repeated after a compaction counts once
	cut    int  // answers in a row that were cut at the output limit
	empty  int  // empty answers in a row
	drafts int  // how often the turn's draft was sent back to the model
	shrunk bool // the conversation was compacted because a request was too long; a second refusal ends the turn
	kept   int  // how often Extensions.Stop has continued the turn
	guess  int  // estimated tokens of context, where the provider reports none
	limits Limits

	// rejected means that the person rejected a call without a message: calls that have not begun do not run, and the turn ends.
	rejected atomic.Bool
}

// setup is the configuration of one step. Each step makes a new one, because the person may change agent, model and settings while a turn
// runs.
type setup struct {
	info    SessionInfo
	agent   Agent
	model   provider.Model
	via     provider.Provider
	offered []tools.Tool
	within  tools.OfferOptions // the options that chose offered; find applies them to a tool that was left out
	specs   []provider.ToolSpec

	compaction CompactionOptions
}

// turn runs a prompt to its end and returns the end; everything before that is an event. A prompt that an extension refuses does not enter
// the conversation.
func (s *Session) turn(ctx context.Context, p Prompt) TurnData {
	if p.MessageID == "" {
		p.MessageID = newID("msg_")
	}
	// An agent or model for this prompt only is lent to the head, so that approvals, rules and tools use it too.
	if p.Agent != "" || p.Model != "" {
		l := loan{p.Agent, p.Model}
		if a, ok := s.rt.agent(s.Info().Cwd, p.Agent); ok && l.model == "" {
			l.model = s.modelFor(ctx, a)
		}
		s.lend(l)
		defer s.lend(loan{})
	}
	var refused error
	entering := Entering{Session: s.acting(), MessageID: p.MessageID, Parts: p.Parts, Call: s.byHand}
	if p.Parts, refused = entering.complete(ctx, s.rt, s.began.hear(ctx, s.rt, s.acting(), s.hist.prompts)); refused != nil {
		// No event stores the prompt, so no later request sends it: what a hook refused must not reach the model.
		s.Notice("warning", refused.Error())
		end := TurnData{Stop: TurnRefusal, Undone: true, ContextUsed: s.hist.used}
		s.emit(EventTurn, end)
		return end
	}
	info := s.acting()
	s.emit(EventPrompt, PromptData{MessageID: p.MessageID, Parts: p.Parts, Agent: info.Agent, Model: info.Model})
	s.hist.messages = append(s.hist.messages, provider.Message{ID: p.MessageID, Role: provider.RoleUser, Parts: p.Parts})
	s.hist.prompts++
	if info.Title == "" {
		if title := titleOf(p.Parts); title != "" {
			s.change(func(i *SessionInfo) { i.Title = title })
			// Sub-agents have the task's description as their title.
			if s.hist.prompts == 1 && s.of.parent == nil {
				s.namer.start(p, title)
			}
		}
	}
	s.touch()

	// Before the system prompt and the first request are made, which take long enough to create a draft meanwhile.
	if d := s.rt.o.Drafts; d != nil && s.of.parent == nil {
		d.Begin(s)
	}
	// Steering begins after the prompt is stored, so that steered messages are behind the prompt.
	ctx, span := s.spans.turnSpan(ctx, s.acting(), p)
	t := &turn{s: s, limits: p.Limits}
	s.steering()
	stop, err := t.run(ctx)
	t.end.Stop = stop
	if err != nil {
		t.end.Error = t.s.mask(err.Error())
	}
	// A failure after a cancel is a consequence of it, so the turn counts as cancelled.
	if ctx.Err() != nil && stop != TurnEnd {
		t.end.Stop, t.end.Error = TurnCancelled, ""
	}
	if t.end.ContextUsed == 0 && t.guess > 0 { // a provider that reports no tokens
		t.end.ContextUsed, s.hist.usedAt = t.guess, len(s.hist.messages)
	}
	// Without a step the context is as large as after the previous turn.
	if t.end.ContextUsed == 0 {
		t.end.ContextUsed = s.hist.used
	}
	s.hist.used = t.end.ContextUsed
	// After a cancel, background tasks may still run; after a regular end await has waited for them.
	s.tasks.stop()
	t.end.Diff = s.ChangeRecorder.diffs.take()
	s.hist.did.add(t.end.Diff)
	t.end.Tasks, t.end.Rejected = s.tasks.take(), t.rejected.Load()
	s.emit(EventTurn, t.end)
	endTurn(span, t.end)
	s.setDiff(s.hist.did.stat())
	s.touch()
	return t.end
}

// run makes step after step until the turn is over. It returns an error only with TurnError. The order matters: results of background tasks
// and the person's messages are added before makeRoom measures the conversation. The step after the last allowed one is offered no tools,
// so that the model has to sum up.
func (t *turn) run(ctx context.Context) (StopReason, error) {
	for {
		if ctx.Err() != nil {
			return TurnCancelled, nil
		}
		set, err := t.setup(ctx)
		if err != nil {
			return TurnError, err
		}
		if t.limits.Cost > 0 && !provider.Priced(set.model) {
			return TurnError, fmt.Errorf("the price of %s is not known, so the limit of $%.2f cannot be kept; set cost_input and cost_output of this model under provider.%s.models, or limit the steps instead",
				set.model, t.limits.Cost, set.model.Provider)
		}
		t.reportTasks()
		t.takeSteers()
		// The system prompt is made once for each agent, because a change invalidates the provider's prompt cache.
		if t.system == nil || t.agent != set.agent.Name {
			t.system, t.agent = t.s.systemPrompt(ctx, set.agent, set.model), set.agent.Name
		}
		// Before the first step nothing was interrupted: the prompt is still to be answered.
		if t.makeRoom(ctx, set) && t.step > 0 && !t.mayContinue(ctx, set, false) {
			return TurnEnd, nil
		}
		t.step++
		last := t.step > t.steps(set.agent)
		if last {
			set.offered, set.specs = nil, nil
		}
		in, span := t.s.spans.span(ctx, "step", attribute.Int("pillion.step", t.step))
		a, err := t.answer(in, set, last)
		var refused *tooLongError
		if errors.As(err, &refused) && ctx.Err() == nil {
			span.End()
			if err = t.shrink(ctx, set, refused); err == nil {
				if t.step > 1 && !t.mayContinue(ctx, set, true) {
					return TurnEnd, nil
				}
				// The step is repeated with the compacted conversation and must not count twice.
				t.step--
				continue
			}
		}
		// There is no answer that could be stored as a step.
		if err != nil && a == nil {
			span.End()
			if ctx.Err() != nil {
				return TurnCancelled, nil
			}
			return TurnError, err
		}
		stop, over := t.finish(in, set, a, err)
		span.End()
		// The loop guard asked for approval, but no user is connected.
		if t.loop.stuck != "" && stop != TurnCancelled {
			return TurnError, errors.New(t.loop.stuck + " No user could approve that it continues, so the turn ends here")
		}
		// The cost is checked between steps only, so one step may exceed the limit.
		if spent := t.end.Cost + t.s.tasks.cost(); !over && t.limits.Cost > 0 && spent >= t.limits.Cost {
			t.s.Notice("warning", fmt.Sprintf("The turn has cost $%.2f, and its limit is $%.2f. Prompt again to continue.", spent, t.limits.Cost))
			return TurnMaxSteps, nil
		}
		// After the last step the turn is over even if the model called a tool: it was asked to sum up.
		if last && !over {
			stop, over = TurnMaxSteps, true
		}
		if last && stop == TurnEnd {
			stop = TurnMaxSteps
		}
		// Before a regular end, results of background tasks and then the extensions may give the model more to do.
		if over && !last && stop == TurnEnd && !t.rejected.Load() {
			if t.await(ctx) {
				continue
			}
			if ctx.Err() != nil {
				return TurnCancelled, nil
			}
			if t.keepGoing(ctx) {
				continue
			}
		}
		if over && t.finishDraft(ctx, stop, !last) {
			continue
		}
		// stopSteering is false when a message has arrived; otherwise the turn accepts no more from here on.
		if over && !last && stop != TurnError && stop != TurnCancelled && !t.s.stopSteering() {
			continue // a message for this turn has arrived
		}
		if over {
			if stop == TurnError {
				return stop, err
			}
			return stop, nil
		}
	}
}

// finishDraft proposes what the turn has done in its draft, and reports whether the turn continues because Drafts.Finish sent text to the
// model. more means that the turn may take another step. A sub-agent works in the draft of its parent session, which proposes the changes
// of all.
func (t *turn) finishDraft(ctx context.Context, stop StopReason, more bool) bool {
	d := t.s.rt.o.Drafts
	if d == nil || t.s.of.parent != nil {
		return false
	}
	// An interrupted turn proposes nothing: the draft is kept, and the session's next turn continues in it.
	if stop == TurnError || stop == TurnCancelled || ctx.Err() != nil {
		d.Interrupted(t.s)
		return false
	}
	again, over := d.Finish(ctx, t.s, t.drafts, more && stop == TurnEnd && !t.rejected.Load())
	if again == "" {
		return false
	}
	t.drafts++
	t.s.listen(PromptData{MessageID: newID("msg_"), Parts: []provider.Part{{Type: provider.PartText, Synthetic: true, Text: again}}})
	return more && (!over || t.s.steered()) && stop == TurnEnd && ctx.Err() == nil
}

// steps returns the agent's step limit, or DefaultSteps.
func steps(a Agent) int {
	if a.Steps > 0 {
		return a.Steps
	}
	return DefaultSteps
}

// steps returns how many steps this turn may take: the prompt's limit can lower the agent's, never raise it.
func (t *turn) steps(a Agent) int {
	if n := t.limits.Steps; n > 0 {
		return min(n, steps(a))
	}
	return steps(a)
}

// setup reads the present agent, model and settings, and chooses the tools. Its errors are for a person: an unknown agent, no model, a
// provider without a key.
func (t *turn) setup(ctx context.Context) (*setup, error) {
	s := t.s
	set := &setup{info: s.acting()}
	set.compaction = s.rt.o.Configuration.Preferences(set.info.Cwd).Compaction
	var ok bool
	if set.agent, ok = s.rt.agent(set.info.Cwd, set.info.Agent); !ok {
		return nil, s.rt.noAgent(set.info.Cwd, set.info.Agent)
	}
	if s.rt.o.Models == nil {
		return nil, errors.New("no model is configured; `pillion models` shows what there is and how to add one")
	}
	var err error
	if set.via, set.model, err = s.rt.o.Models.Resolve(ctx, set.info.Cwd, set.info.Model); err != nil {
		return nil, err
	}
	if set.info.Model == "" { // the default model could not be resolved when the session was made
		s.change(func(i *SessionInfo) { i.Model = set.model.String() })
	}
	if err := s.makeTools(ctx); err != nil {
		return nil, err
	}
	// The tools are chosen again for each step: an MCP server may have come or gone.
	set.within = s.offerOptions(set.agent, set.model.ID)
	set.offered = tools.Offer(s.tools, set.within)
	if e := s.rt.extensions(set.info.Cwd); e.Define != nil {
		for i, tool := range set.offered {
			set.offered[i] = e.Define(ctx, tool)
		}
	}
	set.specs = s.rt.specs.of(set.offered)
	t.end.ContextSize = set.model.Context
	return set, nil
}

// find returns a tool that was left out because there are too many. Tools that are not offered for other reasons stay hidden: in the step
// without tools, or by the rules.
func (set *setup) find(s *Session, name string) (tools.Tool, bool) {
	if len(set.offered) == 0 {
		return tools.Tool{}, false
	}
	t, ok := s.rt.o.Toolbox.Find(set.info, name)
	if !ok || len(tools.Offer([]tools.Tool{t}, set.within)) == 0 {
		return tools.Tool{}, false
	}
	return t, true
}

// finish runs the answer's calls, stores the step and decides whether the turn is over. failed says why the answer is incomplete; nil when
// it is complete. over is false when another step follows.
func (t *turn) finish(ctx context.Context, set *setup, a *answer, failed error) (stop StopReason, over bool) {
	t.calls(ctx, set, a, failed)
	// The message is built after the calls, because it needs their results.
	message, results := a.messages(set.model.String(), failed == nil && ctx.Err() == nil)
	if failed == nil && ctx.Err() == nil {
		t.completeTexts(ctx, set.info, &message)
	}
	step := StepData{Message: message, Results: results, Usage: a.usage, Cost: provider.Cost(set.model, a.usage), Stop: a.stop}
	switch {
	case ctx.Err() != nil:
		step.Error = "cancelled"
	case failed != nil:
		step.Error = t.s.mask(failed.Error())
	}
	t.s.emit(EventStep, step)
	t.s.hist.add(step.Message, step.Results)
	t.end.Steps++
	t.spend(step)
	// The provider reports no tokens: estimate the size of the context.
	if step.Usage == (provider.Usage{}) {
		t.guess = t.tokens(set)
	}

	// The order of the cases matters: a cancel or a rejection ends the turn whatever the model said, and an answer with calls continues
	// whatever its stop reason is. An external agent has handled its calls itself, so its turn is over with its answer.
	external := isExternal(set.via)
	answered := len(a.calls) > 0 && !external
	switch {
	case ctx.Err() != nil:
		return TurnCancelled, true
	case t.rejected.Load() && t.s.steered():
		return "", false // the person's message says how to continue
	case t.rejected.Load():
		t.s.Notice("info", "The call was rejected, so the turn ends here. Say how to continue.")
		return TurnEnd, true
	// The result of the cut call tells the model to send smaller calls; the turn ends when the third answer in a row is cut.
	case answered && a.stop == provider.StopMaxTokens && a.cutCalls():
		if t.cut++; t.cut >= 3 {
			t.s.Notice("warning", "The model's answers were cut at its output limit three times in a row, in the middle of a call.")
			return TurnMaxTokens, true
		}
		return "", false
	case answered:
		t.cut, t.empty = 0, 0
		return "", false
	case failed != nil:
		return TurnError, true
	// The text was cut: ask the model to continue. An answer of thinking only would be cut in the same way again.
	case a.stop == provider.StopMaxTokens:
		if t.cut++; t.cut > maxContinued || a.onlyThought() || len(message.Parts) == 0 {
			return TurnMaxTokens, true
		}
		t.s.listen(PromptData{MessageID: newID("msg_"), Parts: []provider.Part{{Type: provider.PartText, Text: limitText, Synthetic: true}}})
		return "", false
	case a.stop == provider.StopRefusal:
		t.s.Notice("warning", "The model declined to answer, or its provider's filter stopped it. Put the request another way, or choose another model.")
		return TurnRefusal, true
	// Some models answer tool results with an empty message; a second request usually succeeds.
	case !external && (len(message.Parts) == 0 || a.onlyThought()):
		if t.empty++; t.empty < 2 {
			return "", false
		}
		t.s.Notice("warning", "The model gave an empty answer twice. Ask again, or choose another model.")
		t.end.Undone = true
		return TurnEnd, true
	}
	t.end.Undone = a.stop == provider.StopUndone
	return TurnEnd, true
}

// spend adds a step's tokens and cost to the turn, and records the size of the context, on which later estimates are based.
func (t *turn) spend(step StepData) {
	t.end.Usage = sum(t.end.Usage, step.Usage)
	t.end.Cost += step.Cost
	if u := step.Usage; u != (provider.Usage{}) {
		t.end.ContextUsed = u.Input + u.CacheRead + u.CacheWrite + u.Output + u.Reasoning
		h := t.s.hist
		if h.used, h.usedAt = t.end.ContextUsed, len(h.messages); step.Results != nil && len(step.Results.Parts) > 0 {
			h.usedAt-- // the counted request did not include these results
		}
	}
}

// pause waits for d, or returns false when the turn is cancelled.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeSteers adds the person's messages for this turn to the conversation, and reports whether there were any. Call it only between two
// steps: a provider refuses a message between a call and its result.
func (t *turn) takeSteers() (any bool) {
	jobs := t.s.readSteers()
	for _, j := range jobs {
		t.s.listen(PromptData{MessageID: j.item.ID, Parts: j.item.Parts})
	}
	if len(jobs) > 0 {
		t.rejected.Store(false) // the message says how to continue after the rejection
		t.s.watchers.notify()
	}
	return len(jobs) > 0
}
