package agent

import (
	"context"
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Extensions are the hooks and plugins of the person for the sessions of a directory. A nil function is not called.
type Extensions struct {
	// Over are tools that replace Pillion's own of the same name.
	Over func(ctx context.Context) []tools.Tool
	// Hooks run around every call, inside those of Options.
	Hooks []tools.Hook
	// Define may change a tool's description and parameters before a model sees them.
	Define func(ctx context.Context, t tools.Tool) tools.Tool
	// Permission may answer a question before the person does; see permission.GateOptions.
	Permission func(ctx context.Context, r permission.Request) permission.Action
	// Insist reports a question that the person must be asked although a rule allows it; an error refuses the request. See
	// permission.GateOptions.
	Insist func(ctx context.Context, r permission.Request) (bool, error)
	// Begin is called when a session is opened, before its first turn in this process, and after a compaction. source is one of the Began
	// constants; the texts that it returns are added to the prompt, for the model.
	Begin func(ctx context.Context, s SessionInfo, source string) []string
	// Prompt is called with a prompt before Message is. The texts that it returns are added to the prompt, for the model. An error
	// refuses the prompt: it becomes no part of the conversation, and the person reads the error.
	Prompt func(ctx context.Context, e Entering) ([]string, error)
	// Stop is called when a turn is about to end by itself. A text that it returns goes to the model, and the turn continues. last is the
	// model's last answer; again says that an earlier Stop has kept this turn going.
	Stop func(ctx context.Context, s SessionInfo, last string, again bool) string
	// Compacting is called before a conversation is summarised; focus is what the person asked for. extra is added to the transcript that
	// is summarised; a prompt that is not empty replaces Pillion's own.
	Compacting func(ctx context.Context, s SessionInfo, auto bool, focus string) (extra []string, prompt string)
	// End is called when a session is closed in this process. It must return soon, since closing waits for it.
	End func(s SessionInfo)
	// Message may change a prompt before it is stored.
	Message func(ctx context.Context, e Entering) []provider.Part
	// Messages may change the conversation of a request before it goes to the model, and only of this request: what is stored stays. The
	// messages are the session's own, so one that changes must be a copy.
	Messages func(ctx context.Context, s SessionInfo, messages []provider.Message) []provider.Message
	// Params may change a request before it goes to the model.
	Params func(ctx context.Context, s SessionInfo, r *provider.Request)
	// Event is called with what happens, one event after the other; no turn waits for it. Names and shapes are OpenCode's.
	Event func(kind string, properties map[string]any)
}

// How a session begins, for Extensions.Begin. The words are Claude Code's, so that its hooks work.
const (
	BeganNew       = "startup"
	BeganAgain     = "resume" // it has had prompts before
	BeganCompacted = "compact"
)

// extensions are those of a directory; never nil, so that callers test only the function that they need.
func (rt *directories) extensions(cwd string) *Extensions {
	if e := rt.o.Plugins.Extensions(cwd); e != nil {
		return e
	}
	return &Extensions{}
}

// addContext adds texts of extensions for the model to a prompt. The parts are synthetic, because the person did not write them. The
// slice is clipped, so that the caller's parts are not overwritten.
func addContext(parts []provider.Part, texts []string) []provider.Part {
	for _, text := range texts {
		parts = append(parts[:len(parts):len(parts)], provider.Part{Type: provider.PartText, Text: "<system-reminder>\n" + text + "\n</system-reminder>", Synthetic: true})
	}
	return parts
}

// beginning is what the extensions were told of the session's beginnings. Only the session's runner uses it.
type beginning struct{ told, compacted bool }

// hear calls Begin when it is due: at the first prompt in this process, and at the first after a compaction. prompts is how many prompts
// the session has had.
func (b *beginning) hear(ctx context.Context, rt *Runtime, s SessionInfo, prompts int) []string {
	source := BeganNew
	switch {
	case b.compacted:
		source = BeganCompacted
	case b.told:
		return nil
	case prompts > 0:
		source = BeganAgain
	}
	b.told, b.compacted = true, false
	if x := rt.extensions(s.Cwd); x.Begin != nil {
		return x.Begin(ctx, s, source)
	}
	return nil
}

// maxKeptGoing is how often in a row Extensions.Stop may keep a turn going; Claude Code's figure. Without it a hook that always refuses
// the end would spend money without limit.
const maxKeptGoing = 8

// keepGoing asks the extensions whether the turn may end. true means that they have given the model more to do.
func (t *turn) keepGoing(ctx context.Context) bool {
	s := t.s
	x := s.rt.extensions(s.Info().Cwd)
	if x.Stop == nil || t.kept >= maxKeptGoing {
		return false
	}
	last := ""
	if n := len(s.hist.messages); n > 0 {
		for _, p := range s.hist.messages[n-1].Parts {
			if p.Type == provider.PartText && s.hist.messages[n-1].Role == provider.RoleAssistant {
				last += p.Text
			}
		}
	}
	more := x.Stop(ctx, s.acting(), last, t.kept > 0)
	if more == "" || ctx.Err() != nil {
		return false
	}
	if t.kept++; t.kept == maxKeptGoing {
		s.Notice("warning", fmt.Sprintf("Hooks have kept this turn going %d times in a row; they are not asked again.", t.kept))
	}
	s.listen(PromptData{MessageID: newID("msg_"), Parts: []provider.Part{{Type: provider.PartText, Text: more, Synthetic: true}}})
	return true
}
