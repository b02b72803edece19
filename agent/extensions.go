package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Extensions are a person's hooks and plugins for the sessions of a directory. A nil function is not called.
type Extensions struct {
	// Over returns tools that replace Pillion's own of the same name.
	Over func(ctx context.Context) []tools.Tool
	// Hooks run around every call, inside those of Options.
	Hooks []tools.Hook
	// Define may change a tool's description and parameters before a model sees them.
	Define func(ctx context.Context, t tools.Tool) tools.Tool
	// Permission may answer an approval request before the person does; see permission.GateOptions.
	Permission func(ctx context.Context, r permission.Request) permission.Action
	// Insist reports that the person must be asked although a rule allows the request; an error refuses the request. See
	// permission.GateOptions.
	Insist func(ctx context.Context, r permission.Request) (bool, error)
	// Begin is called before a session's first turn in this process, and before the first turn after a compaction. source is one of the
	// Began constants. The returned texts are added to the prompt, for the model.
	Begin func(ctx context.Context, s SessionInfo, source string) []string
	// Prompt is called with a prompt, before Message. The returned texts are added to the prompt, for the model. An error refuses the
	// prompt: it does not enter the conversation, and the person reads the error.
	Prompt func(ctx context.Context, e Entering) ([]string, error)
	// Stop is called when a turn is about to end by itself. A non-empty result goes to the model, and the turn continues. last is the
	// model's last answer; again means that an earlier Stop has already continued this turn.
	Stop func(ctx context.Context, s SessionInfo, last string, again bool) string
	// Compacting is called before a conversation is summarised. focus is what the person asked to keep. extra is added to the transcript
	// that is summarised; a non-empty prompt replaces Pillion's own.
	Compacting func(ctx context.Context, s SessionInfo, auto bool, focus string) (extra []string, prompt string)
	// Continue is called after a conversation was compacted in the middle of a turn, which false ends. overflow: the provider had refused the
	// request as too long.
	Continue func(ctx context.Context, s SessionInfo, model provider.Model, overflow bool) bool
	// End is called when a session is closed in this process. It must return soon, because closing waits for it.
	End func(s SessionInfo)
	// Message may change a prompt before it is stored.
	Message func(ctx context.Context, e Entering) []provider.Part
	// Command may change the parts of a slash command's prompt; args is what the person typed behind its name. An error stops the command.
	Command func(ctx context.Context, s SessionInfo, name, args string, parts []provider.Part) ([]provider.Part, error)
	// Text may change a text of an answer once it is complete; message and part identify it. The conversation keeps the result. Editors have
	// shown the text while it streamed, and show that.
	Text func(ctx context.Context, s SessionInfo, message string, part int, text string) string
	// Messages may change the conversation that one request sends; the stored conversation stays. The messages are the session's own, so
	// Messages must copy one before it changes it.
	Messages func(ctx context.Context, s SessionInfo, messages []provider.Message) []provider.Message
	// Params may change a request before it goes to the model.
	Params func(ctx context.Context, s SessionInfo, r *provider.Request)
	// Event is called with each event of a session, one after the other; no turn waits for it. Names and shapes are those of OpenCode's
	// event bus.
	Event func(kind string, properties map[string]any)
}

// Why Extensions.Begin is called. The words are Claude Code's, so that its hooks work.
const (
	BeganNew       = "startup"
	BeganAgain     = "resume" // the session had prompts before this process opened it
	BeganCompacted = "compact"
)

// extensions returns those of a directory; never nil, so that callers test only the function that they call.
func (rt *directories) extensions(cwd string) *Extensions {
	if e := rt.o.Plugins.Extensions(cwd); e != nil {
		return e
	}
	return &Extensions{}
}

// CommandParts returns the parts of a slash command's prompt as extensions leave them; see Extensions.Command.
func (s *Session) CommandParts(ctx context.Context, name, args string, parts []provider.Part) ([]provider.Part, error) {
	x := s.rt.extensions(s.Info().Cwd)
	if x.Command == nil {
		return parts, nil
	}
	return x.Command(ctx, s.Info(), name, args, parts)
}

// completeTexts lets extensions change the texts of a complete answer, before it enters the conversation.
func (t *turn) completeTexts(ctx context.Context, info SessionInfo, m *provider.Message) {
	x := t.s.rt.extensions(info.Cwd)
	if x.Text == nil {
		return
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Type != provider.PartText || p.Text == "" {
			continue
		}
		if text := x.Text(ctx, info, m.ID, i, p.Text); text != p.Text {
			p.Text, p.Signature = text, "" // a signature holds for the text that the provider signed
		}
	}
	// Providers refuse a text part without text.
	m.Parts = slices.DeleteFunc(m.Parts, func(p provider.Part) bool {
		return p.Type == provider.PartText && strings.TrimSpace(p.Text) == "" && p.Signature == ""
	})
	if onlyThinking(m.Parts) {
		m.Parts = nil // as in answer.messages
	}
}

// addContext adds texts of extensions to a prompt, for the model. The parts are synthetic, because the person did not write them. The slice
// is clipped, so that append does not overwrite the caller's parts.
func addContext(parts []provider.Part, texts []string) []provider.Part {
	for _, text := range texts {
		parts = append(parts[:len(parts):len(parts)], provider.Part{Type: provider.PartText, Text: "<system-reminder>\n" + text + "\n</system-reminder>", Synthetic: true})
	}
	return parts
}

// beginning records which calls of Begin were made. Only the session's runner uses it.
type beginning struct{ told, compacted bool }

// hear calls Begin when it is due: at the first prompt in this process, and at the first one after a compaction. prompts is how many
// prompts the session has had.
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

// maxKeptGoing is how often in a row Extensions.Stop may continue a turn; Claude Code's figure. Without a limit, a hook that always refuses
// the end would spend money for ever.
const maxKeptGoing = 8

// mayContinue asks the extensions whether the turn goes on after a compaction, which has taken the place of what the model knew of its
// work.
func (t *turn) mayContinue(ctx context.Context, set *setup, overflow bool) bool {
	x := t.s.rt.extensions(t.s.Info().Cwd)
	if x.Continue == nil || x.Continue(ctx, t.s.acting(), set.model, overflow) {
		return true
	}
	t.s.Notice("info", "The turn ends here because a plugin does not let it continue after a compaction. Prompt again to continue.")
	return false
}

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
