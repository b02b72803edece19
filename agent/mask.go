package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// HiddenKey stands where a key of the person's was.
const HiddenKey = "[hidden key]"

const (
	hiddenNote    = "\n\n(Pillion wrote " + HiddenKey + " in place of a key of the user's. The file or program has the key itself: never write " + HiddenKey + " anywhere.)"
	hiddenRefused = "This would write " + HiddenKey + " where a key of the user's stands: what you read was masked. Change the other lines only, with edit and an oldString that leaves the key out, or ask the user to do it."
)

// mask hides the person's keys in a text, before it becomes an event, and so before a model or an editor has it.
func (s *Session) mask(text string) string {
	if text == "" {
		return text
	}
	masked := s.rt.o.Secrets.Hide(s.cwd, text) // not Info: callers may hold mu
	if masked != text {
		s.hidden.Store(true)
	}
	return masked
}

// maskParts gives parts without keys; the caller's are left as they are.
func (s *Session) maskParts(parts []provider.Part) []provider.Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Text = s.mask(out[i].Text)
	}
	return out
}

func (s *Session) maskAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = s.mask(t)
	}
	return out
}

// maskMetadata masks what tools say of themselves in words. Change sets are the person's files, and stay whole: they
// are shown to the person, and written.
func (s *Session) maskMetadata(m map[string]any) map[string]any {
	out, own := m, false
	for k, v := range m {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if masked := s.mask(text); masked != text {
			if !own { // the tool's own map may be shared
				out, own = maps.Clone(m), true
			}
			out[k] = masked
		}
	}
	return out
}

// masking is the outermost hook: it sees what the model would read before that is cut or saved. The model is told
// that something was hidden.
func (s *Session) masking() []tools.Hook {
	return []tools.Hook{{After: func(_ context.Context, _ *tools.Call, _ json.RawMessage, r tools.Result, err error) (tools.Result, error) {
		r.Title, r.Metadata = s.mask(r.Title), s.maskMetadata(r.Metadata)
		if masked := s.mask(r.Output); masked != r.Output {
			r.Output = masked + hiddenNote
		}
		return r, err
	}}}
}

// wouldWriteHidden reports a change whose arguments hold the mask: the key would be lost.
func (c *call) wouldWriteHidden() bool {
	return c.data.Kind == tools.KindEdit && c.s.hidden.Load() && strings.Contains(c.raw.String(), HiddenKey)
}
