package agent

import (
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
)

// The figures are OpenCode's.
const (
	pruneProtect = 40_000 // tokens of the newest tool outputs that always stay
	pruneGain    = 20_000 // tokens that pruning must free to be worth a cold prompt cache
	pruneTurns   = 2      // prompts whose turns are never touched, the present one included
	pruneFull    = 0.8    // share of the context window from which a running turn is pruned
)

// prunedText stands for a dropped output. It is also how prunable recognises one that was dropped before.
const prunedText = "[The output of this call was dropped to save context. Call the tool again if you need it.]"

// prunable returns the ids of calls whose results may be dropped, and how many tokens that frees; nil when it is less than pruneGain.
// Results of the skill tool stay: they are instructions that the model works by.
func (h *history) prunable() (ids map[string]bool, tokens int) {
	ids = map[string]bool{}
	turns, seen := 0, 0
	// From the newest to the oldest, so that seen counts the outputs that are newer.
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

// estimate is a result's size in tokens: four bytes of text are one token, and a picture costs about 1500 whatever its bytes.
func estimate(p provider.Part) int {
	n := len(p.Text) / 4
	for _, f := range p.Files {
		if n += 1500; f.Mime == "application/pdf" {
			n += len(f.Data) / 100 // a page has far fewer tokens than bytes, and pages are not counted
		}
	}
	return n
}

// prune replaces the results of these calls by prunedText. A stored EventPrune is applied by it as well. Messages never change, because a
// request may be reading them, so those it touches are copies in a new list.
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
	// The provider's count is lowered by the estimate until the next step counts again.
	h.used = max(0, h.used-tokens)
}

// prune drops old outputs at the beginning of a turn, and during it only when the window fills: each time costs the provider's prompt
// cache.
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
