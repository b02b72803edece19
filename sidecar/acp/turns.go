package acp

import (
	"context"
	"errors"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/sidecar/slash"
)

// turns answer the methods that make a session work: prompts, their queue, steering and cancelling.
type turns struct {
	*conn
	sessions *sessionTable
	commands *commandList
	project  Project  // nil: /review is the model's alone
	listener Listener // may be nil
}

// prompt answers session/prompt. It takes its place in the session's queue in the order of the wire, and answers when
// its turn has ended.
func (m *turns) prompt(ctx context.Context, r *rpc.Request) (any, error) {
	p, err := decode[protocol.PromptRequest](r)
	if err != nil {
		return nil, err
	}
	es := m.sessions.lookup(p.SessionID)
	if es == nil {
		_, err := m.sessions.find(ctx, p.SessionID)
		return nil, err
	}
	r.Params = nil // what was pasted may be long: this is its second copy, and the parts may be a third
	parts, err := promptParts(p.Prompt)
	if err != nil {
		return nil, err
	}
	p.Prompt = nil // the turn may be long too
	// A turn outlives the editor that began it when others have the session open; else the end of the connection
	// cancels it with its session.
	asked := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(asked))
	defer cancel()
	defer context.AfterFunc(asked, func() {
		if errors.Is(context.Cause(asked), rpc.ErrCancelledByPeer) {
			cancel()
		}
	})()
	// The address of cancel identifies the prompt: functions cannot be compared.
	key := &cancel
	mine, entered := make(chan struct{}), make(chan struct{})
	es.mu.Lock()
	// Both chains are joined in one step, before Async: the next message may be another prompt.
	before, order := es.turns, es.order
	es.turns, es.order = mine, entered
	es.prompts[key] = ""
	es.mu.Unlock()
	r.Async()
	if m.listener != nil {
		m.listener.Asked()
	}
	enter := sync.OnceFunc(func() {
		select {
		case <-order:
			close(entered)
		default: // cancelled while it waited: later requests must still wait for the earlier ones
			go func() { <-order; close(entered) }()
		}
	})
	defer func() {
		enter()
		es.mu.Lock()
		delete(es.prompts, key)
		es.mu.Unlock()
		// A prompt that ends early, as one that was cancelled in the queue, must not let a later command overtake an
		// earlier prompt.
		go func() { <-before; close(mine) }()
		if m.listener != nil {
			m.listener.Answered()
		}
	}()
	for _, c := range []chan struct{}{es.ready, order} {
		select {
		case <-c:
		case <-ctx.Done():
			return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
	}
	if es.err != nil {
		return nil, es.err
	}
	es.sendInitial("")
	prompt := agent.Prompt{Parts: parts}
	c, args, isCommand := slash.Parse(parts, m.commands.of(es.Info().Cwd))
	if isCommand && c.Run != nil {
		p, answer, err := es.runCommand(ctx, before, c, args)
		if err != nil || p == nil {
			return result(answer, err)
		}
		prompt = *p
		// What was attached to the command goes with the prompt that the command made.
		prompt.Parts = append(prompt.Parts, parts[1:]...)
	}
	message := agent.NewMessageID()
	answered := make(chan struct{})
	m.wire.afterAnswer(r, sync.OnceFunc(func() { close(answered) }))
	es.mu.Lock()
	// The view must know its own prompt before Submit: the event may come first.
	es.own[message], es.prompts[key] = true, message
	es.mu.Unlock()
	defer func() {
		es.mu.Lock()
		delete(es.own, message)
		es.mu.Unlock()
	}()
	wait, err := es.Session.Submit(ctx, agent.Prompt{MessageID: message, Parts: es.input.prepare(es.Info().Cwd, prompt.Parts), Agent: prompt.Agent, Model: prompt.Model, Answered: answered})
	enter()
	if err != nil {
		return nil, err
	}
	found := &findings{es: es, host: m.project, message: message, target: args}
	if isCommand && c.Reviews {
		found.check()
	}
	turn, err := wait()
	if err != nil {
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return &protocol.PromptResponse{StopReason: protocol.StopReasonCancelled}, nil
		}
		return nil, err
	}
	// ACP has no stop reason for an error.
	if turn.Stop == agent.TurnError {
		return nil, errors.New(turn.Error)
	}
	if isCommand && c.Reviews {
		if err := found.answered(ctx); err != nil {
			return nil, err
		}
	}
	return promptResponse(message, turn), nil
}

// promptResponse is the answer to a prompt; _meta.pillion has tokens, cost in US dollars and steps. ACP's stop
// reasons are named like ours, so the value is passed on.
func promptResponse(message string, t agent.TurnData) *protocol.PromptResponse {
	return &protocol.PromptResponse{StopReason: protocol.StopReason(t.Stop), Meta: map[string]any{"pillion": map[string]any{
		"messageId": message, "usage": t.Usage, "cost": t.Cost, "steps": t.Steps, "error": t.Error,
	}}}
}

// steer adds a message to the running turn. Without a running turn the editor is told to send a prompt.
func (m *turns) steer(ctx context.Context, es *editorSession, p *protocol.SteeringRequest) (*protocol.SteeringResponse, error) {
	parts, err := promptParts(p.Prompt)
	if err != nil {
		return nil, err
	}
	injected, err := es.Session.Steer(ctx, agent.Prompt{Parts: es.input.prepare(es.Info().Cwd, parts)})
	if err != nil {
		return nil, err
	}
	if injected {
		return &protocol.SteeringResponse{Outcome: "injected"}, nil
	}
	return &protocol.SteeringResponse{Outcome: "promptRequired", Reason: "noRunningTurn"}, nil
}

// cancel handles session/cancel at once: a prompt that follows must not be cancelled. Queued prompts are cancelled
// with the running one.
func (m *turns) cancel(p *protocol.CancelNotification) (any, error) {
	es := m.sessions.lookup(p.SessionID)
	if es == nil {
		return nil, protocol.NotFound("session/cancel: no session %q", p.SessionID)
	}
	es.cancelAll()
	return nil, nil
}
