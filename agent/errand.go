package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
)

// builtinProvider is the provider of the quickfix model. That model understands a small grammar and writes no text, so it is not asked for
// titles and summaries. An external agent is not asked either: its answer would become a turn of its own conversation.
const builtinProvider = "builtin"

// Names of the hidden agents.
const (
	titleAgent      = "title"
	summaryAgent    = "summary"
	compactionAgent = "compaction"
	commitAgent     = "commit"
)

// SmallModels is implemented by a Models that knows a provider's small model for jobs such as titles. "" means that there is none, and the
// job is done without a model.
type SmallModels interface {
	Small(cwd, model string) string
}

// errNoModelForJob means that no model can do the job. Callers have a fallback: the first line of a prompt, or a digest.
var errNoModelForJob = errors.New("no model for this")

// errNoWords means that the model's answer had no text.
var errNoWords = errors.New("the model gave an empty answer")

// errand is one request of a hidden agent. It has no tools and is not part of the conversation.
type errand struct {
	agent  string
	model  string            // empty: the agent's model
	text   string            // the content of the request
	prompt string            // replaces the agent's system prompt; empty: the agent's own
	said   func(text string) // receives the text while it streams; may be nil
	again  func()            // called before the request is retried: the text passed to said is void; may be nil
}

// errands sends the requests of hidden agents for one session, beside its conversation.
type errands struct {
	rt     *Runtime
	head   *Head
	masker *masker
	spans  tracer
}

// errand sends one request and returns its text without surrounding white space. Temporary errors (rate limits, network) are retried. spent
// is set even when the request failed, because its tokens were paid for. The request has a session id of its own, so that a provider's
// prompt cache does not mix it with the conversation.
func (x *errands) errand(ctx context.Context, e errand) (text string, spent StepData, err error) {
	info := x.head.acting()
	a, ok := x.rt.agent(info.Cwd, e.agent)
	if !ok {
		return "", spent, errNoModelForJob
	}
	model := a.Model
	if model == "" {
		model = e.model
	}
	via, m, err := x.rt.o.Models.Resolve(ctx, info.Cwd, model)
	if err != nil {
		return "", spent, err
	}
	if m.Provider == builtinProvider || isExternal(via) {
		return "", spent, errNoModelForJob
	}
	prompt := e.prompt
	if prompt == "" {
		prompt = a.Prompt
	}
	if prompt == "" {
		prompt = promptText(e.agent)
	}
	req := &provider.Request{Model: m, System: []string{x.masker.mask(prompt)}, Temperature: a.Temperature, TopP: a.TopP, SessionID: info.ID + "-" + e.agent,
		Messages: []provider.Message{{ID: newID("msg_"), Role: provider.RoleUser, Parts: []provider.Part{{Type: provider.PartText, Text: e.text}}}}}
	for attempt := 1; ; attempt++ {
		var b strings.Builder
		stop := provider.StopReason("")
		err = streamTo(ctx, x.spans.traced(via), req, func(v provider.Event) {
			switch v.Type {
			case provider.EventText:
				b.WriteString(v.Text)
				if e.said != nil && v.Text != "" {
					e.said(v.Text)
				}
			case provider.EventUsage:
				// The counts are cumulative for one attempt; those of a failed attempt before it are not added.
				spent.Usage = v.Usage
			case provider.EventStop:
				stop = v.Stop
			}
		})
		spent.Cost = provider.Cost(m, spent.Usage)
		spent.Message.Model = m.String()
		text = strings.TrimSpace(b.String())
		if err == nil {
			switch {
			case stop == provider.StopRefusal:
				err = errors.New("the model declined")
			case text == "":
				err = errNoWords
			}
			return text, spent, err
		}
		var perr *provider.Error
		if ctx.Err() != nil || !errors.As(err, &perr) || !perr.Retriable() || attempt == maxAttempts {
			return "", spent, err
		}
		wait := x.rt.backoff(attempt, perr)
		if wait > longestWait || !pause(ctx, wait) {
			return "", spent, err
		}
		if e.again != nil {
			e.again()
		}
	}
}

// streamTo streams a request and calls take with each event, in the caller's goroutine, so that take needs no lock. When ctx ends it
// returns at once: a provider that ignores its context gets errLeft at its next event.
func streamTo(ctx context.Context, via provider.Provider, req *provider.Request, take func(provider.Event)) error {
	events := make(chan provider.Event)
	done := make(chan error, 1)
	left := make(chan struct{})
	defer close(left)
	go func() {
		done <- via.Stream(ctx, req, func(e provider.Event) error {
			select {
			case events <- e:
				return nil
			case <-left:
				return errLeft
			}
		})
	}()
	for {
		select {
		case e := <-events:
			take(e)
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
