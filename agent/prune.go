package agent

import (
	"fmt"

	"github.com/pillion-dev/pillion/agent/provider"
)

// OpenCode's figures.
const (
	pruneProtect = 40_000 // tokens of the newest tool outputs that always stay
	pruneGain    = 20_000 // tokens that must go for pruning to be worth a cold prompt cache
	pruneTurns   = 2      // prompts whose turns are never touched, the present one included
	pruneFull    = 0.8    // share of the context window from which a turn is pruned in its middle
)

const prunedText = "[The output of this call was dropped to save context. Call the tool again if you need it.]"

// prunable gives the call ids of old tool results that may be dropped, and how many tokens that frees; nil when it is less than
// pruneGain. Outputs of the skill tool stay, because the model works by them.
func (h *history) prunable() (ids map[string]bool, tokens int) {
	ids = map[string]bool{}
	turns, seen := 0, 0
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

// estimate is a result's size in tokens: four bytes each; an image's size is not its bytes.
func estimate(p provider.Part) int {
	n := len(p.Text) / 4
	for _, f := range p.Files {
		if n += 1500; f.Mime == "application/pdf" {
			n += len(f.Data) / 100 // pages are not counted
		}
	}
	return n
}

// prune replaces the results of these calls by prunedText. It is also how a stored EventPrune is applied. Messages are values
// that never change (a request may be reading them), so those it touches are new ones in a new list.
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
	h.used = max(0, h.used-tokens)
}

// prune drops old outputs at the beginning of a turn, and in its middle when the window
// fills. At other times it would only cost the provider's prompt cache.
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
