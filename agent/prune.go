package agent

import (
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
)

// The figures are OpenCode's.
const (
	pruneProtect = 40_000 // tokens; the newest tool outputs up to this sum are always kept
	pruneGain    = 20_000 // tokens that pruning must free, because it invalidates the provider's prompt cache
	pruneTurns   = 2      // the last turns that are never pruned, the present one included
	pruneFull    = 0.8    // a running turn is pruned when the context fills this share of the window
)

// prunedText replaces a dropped output. prunable recognises by it an output that was dropped before.
const prunedText = "[The output of this call was dropped to save context. Call the tool again if you need it.]"

// prunable returns the ids of calls whose results may be dropped, and how many tokens that frees; nil when that is less than pruneGain.
// Results of the skill tool are kept: they are instructions that the model follows.
func (h *history) prunable() (ids map[string]bool, tokens int) {
	ids = map[string]bool{}
	turns, seen := 0, 0
	// Walk from the newest to the oldest, so that seen is the size of all newer outputs.
	for i := len(h.messages) - 1; i >= 0; i-- {
		m := h.messages[i]
		if m.Role == provider.RoleUser {
			turns++
			continue
		}
		if m.Role != provider.RoleTool {
			continue
		}
		for j := len(m.Parts) - 1; j >= 0; j-- {
			p := m.Parts[j]
			n := estimate(p)
			if seen += n; turns < pruneTurns || seen <= pruneProtect || p.Name == "skill" || p.Text == prunedText {
				continue
			}
			ids[p.CallID] = true
			tokens += n
		}
	}
	if tokens < pruneGain {
		return nil, 0
	}
	return ids, tokens
}

// estimate returns a result's size in tokens. Four bytes of text are about one token; a picture costs about 1500 tokens whatever its size
// in bytes.
func estimate(p provider.Part) int {
	n := len(p.Text) / 4
	for _, f := range p.Files {
		if n += 1500; f.Mime == "application/pdf" {
			n += len(f.Data) / 100 // a page has far fewer tokens than bytes; the number of pages is not known here
		}
	}
	return n
}

// prune replaces the results of these calls by prunedText. Loading a session applies stored EventPrune events with it too. Messages never
// change, because a request may be reading them: changed copies go into a new list.
func (h *history) prune(ids map[string]bool, tokens int) {
	list := make([]provider.Message, len(h.messages))
	copy(list, h.messages)
	for i, m := range list {
		if m.Role != provider.RoleTool {
			continue
		}
		var parts []provider.Part
		for j, p := range m.Parts {
			if !ids[p.CallID] {
				continue
			}
			if parts == nil {
				parts = append(parts, m.Parts...)
			}
			parts[j].Text, parts[j].Files = prunedText, nil
		}
		if parts != nil {
			list[i].Parts = parts
		}
	}
	h.messages = list
	// Lower the provider's count by the estimate until the next step is counted.
	h.used = max(0, h.used-tokens)
}

// prune drops old outputs at the beginning of a turn; later in the turn it does so only when the window fills, because each time
// invalidates the provider's prompt cache.
func (t *turn) prune() {
	h := t.s.hist
	if t.step > 0 && (t.end.ContextSize == 0 || float64(h.used) < pruneFull*float64(t.end.ContextSize)) {
		return
	}
	ids, tokens := h.prunable()
	if ids == nil {
		return
	}
	h.prune(ids, tokens)
	data := PruneData{Tokens: tokens}
	for id := range ids {
		data.CallIDs = append(data.CallIDs, id)
	}
	t.s.emit(EventPrune, data)
	t.s.Notice("info", fmt.Sprintf("Old tool outputs (about %d tokens) no longer go to the model. They stay in the transcript.", tokens))
}
