package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools"
)

// HiddenKey replaces a user's key in everything that goes to a model, an editor or the event log.
const HiddenKey = "[hidden key]"

// What the model reads: hiddenNote after a result with a masked key, hiddenRefused as the error of an edit that would write the mask.
const (
	hiddenNote    = "\n\n(Pillion wrote " + HiddenKey + " in place of a key of the user's. The file or program has the key itself: never write " + HiddenKey + " anywhere.)"
	hiddenRefused = "This would write " + HiddenKey + " where a key of the user's stands: what you read was masked. Change the other lines only, with edit and an oldString that leaves the key out, or ask the user to do it."
)

// masker hides the user's keys in all events and requests: without it a key that a tool has read is sent to a model and kept in the event
// log. It takes no lock, so callers may hold any.
type masker struct {
	secrets Secrets
	cwd     string
	hidden  atomic.Bool // the model has read a text in which a key was masked; see wouldWriteHidden
}

// mask hides the user's keys in a text. Call it before the text becomes an event: after that, a model and an editor have the text.
func (m *masker) mask(text string) string {
	if text == "" {
		return text
	}
	masked := m.secrets.Hide(m.cwd, text)
	if masked != text {
		m.hidden.Store(true)
	}
	return masked
}

// maskParts returns a copy of the parts with the keys in their texts masked. Files are not masked, because they go to the model as bytes.
func (m *masker) maskParts(parts []provider.Part) []provider.Part {
	out := slices.Clone(parts)
	for i := range out {
		out[i].Text = m.mask(out[i].Text)
	}
	return out
}

// maskAll masks each text, in a new slice.
func (m *masker) maskAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = m.mask(t)
	}
	return out
}

// maskMetadata masks the texts in a tool's metadata. Change sets are not masked: they are the person's files, which the person must see and
// write unchanged.
func (m *masker) maskMetadata(data map[string]any) map[string]any {
	out, own := data, false
	for k, v := range data {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if masked := m.mask(text); masked != text {
			if !own { // the tool's own map may be shared, so it is not changed
				out, own = maps.Clone(data), true
			}
			out[k] = masked
		}
	}
	return out
}

// masking returns the outermost hook. It masks a result before the result is cut or saved, and tells the model that something is hidden, so
// that the model does not write the mask into a file.
func (m *masker) masking() []tools.Hook {
	return []tools.Hook{{After: func(_ context.Context, _ *tools.Call, _ json.RawMessage, r tools.Result, err error) (tools.Result, error) {
		r.Title, r.Metadata = m.mask(r.Title), m.maskMetadata(r.Metadata)
		if masked := m.mask(r.Output); masked != r.Output {
			r.Output = masked + hiddenNote
		}
		return r, err
	}}}
}

// wouldWriteHidden reports an edit whose arguments contain the mask: it would overwrite the key in the file.
func (c *call) wouldWriteHidden() bool {
	return c.data.Kind == tools.KindEdit && c.s.hidden.Load() && bytes.Contains(c.raw.bytes(), []byte(HiddenKey))
}
