package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
)

// Summary describes what was done in the session: in the words of the hidden summary agent or, where no model can, as a list of prompts and
// calls. It runs as a job, after a running turn, because the history has no lock. The error says that the conversation is empty, or why the
// model failed.
func (s *Session) Summary(ctx context.Context) (text string, err error) {
	run := func(ctx context.Context) {
		if len(s.hist.messages) == 0 {
			err = errors.New("nothing was said yet")
			return
		}
		// 60,000 bytes are about 15,000 tokens.
		text, _, err = s.errand(ctx, errand{agent: summaryAgent, model: s.Info().Model, text: transcriptFor(s.hist.messages, "", 60_000)})
		// Without a model, or with a conversation too long for it, a list of facts is better than an error.
		var perr *provider.Error
		if errors.Is(err, errNoModelForJob) || errors.As(err, &perr) && perr.Kind == provider.ErrContextLength {
			text, err = digest(s.hist.messages), nil
		}
		if total := s.hist.did.stat(); err == nil && total != nil {
			text = strings.TrimSpace(text) + "\n\n" + total.String() + " in this session."
		}
	}
	if e := s.do(ctx, run, func(e error) { err = e }); e != nil {
		return "", e
	}
	return text, err
}
