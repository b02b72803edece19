package acp

import (
	"context"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/check"
	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// maxReviewCheck is how long the language servers may take to check what is reviewed: they load the project again, in the
// state before the change.
const maxReviewCheck = 2 * time.Minute

// findings tells an editor what a /review finds, in two notifications: that of the language servers comes while the model
// still reads, and needs no model at all. An editor that does not show findings has them in the answer alone.
type findings struct {
	es      *editorSession
	host    Project // nil: no language servers
	message string  // id of the prompt
	target  string  // what followed /review
}

// check asks the language servers, in the background.
func (f *findings) check() {
	if f.host == nil || !f.shown() {
		return
	}
	go func() {
		// The check ends with the connection and not with the prompt: its findings are of use after a cancelled turn
		// too.
		ctx, cancel := context.WithTimeout(f.es.ctx, maxReviewCheck)
		defer cancel()
		found, err := f.host.Review(ctx, f.es.Info().Cwd, f.target)
		if err != nil { // /review also takes files, folders and words, which are the model's alone
			f.es.log.Debug("review: no change to check", "target", f.target, "error", err)
			return
		}
		f.send("servers", found)
	}()
}

// answered reads the findings of the model from the answer. It is called when the turn has ended, before the prompt
// is answered, so that an editor has the findings with the answer.
func (f *findings) answered(ctx context.Context) error {
	if !f.shown() {
		return nil
	}
	answer, err := answerTo(ctx, f.es.Session, f.message)
	if err != nil {
		return err
	}
	f.send("model", check.ParseFindings(f.es.Info().Cwd, answer, check.FileLines))
	return nil
}

// shown reports whether the editor shows findings; otherwise nothing is checked or read.
func (f *findings) shown() bool {
	return f.es.editor.Client().Does(protocol.MethodPillionReviewUpdated)
}

// send sends all findings of one side, "servers" or "model". Lines count from 1.
func (f *findings) send(by string, found []check.Finding) {
	out := protocol.ReviewUpdated{SessionID: f.es.ID(), MessageID: f.message, By: by, Target: f.target, Findings: []protocol.ReviewFinding{}}
	for _, x := range found {
		out.Findings = append(out.Findings, protocol.ReviewFinding{Path: x.Path, Line: int64(x.Line), EndLine: int64(x.EndLine), Severity: string(x.Severity),
			Message: x.Message, Source: x.Source, Code: x.Code, Changed: x.Changed})
	}
	f.es.notify(protocol.MethodPillionReviewUpdated, out)
}

// answerTo is all that the model has said to a prompt, without its thoughts: findings may come before its last tool call.
func answerTo(ctx context.Context, s *agent.Session, message string) (string, error) {
	var b strings.Builder
	// A turn has events of one prompt after the other, so everything between two prompts answers the first.
	mine := false
	err := s.Events(ctx, 0, func(e agent.Event) error {
		if p, ok := agent.Value[agent.PromptData](e); ok && e.Type == agent.EventPrompt {
			mine = p.MessageID == message
		}
		if step, ok := agent.Value[agent.StepData](e); ok && e.Type == agent.EventStep && mine {
			for _, part := range step.Message.Parts {
				if part.Type == provider.PartText {
					b.WriteString(part.Text + "\n\n")
				}
			}
		}
		return nil
	})
	return b.String(), err
}
