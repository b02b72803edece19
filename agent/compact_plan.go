package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Bounds of the kept tail, in tokens. Within them the tail may have a quarter of the usable window.
const (
	tailLeast = 2_000
	tailMost  = 15_000
)

// cutPlan says what a compaction removes. When no message can be removed, results may still be trimmed.
type cutPlan struct {
	gone     []provider.Message // what the summary replaces
	messages int                // len(gone)
	tokens   int                // of gone, plus what trimming saves; estimated
	// prompt and from are message ids, as in CompactionData.
	prompt  string
	from    string
	trimmed map[string]int // call id → bytes kept of its result
}

// plan decides what a compaction removes. The kept tail begins at a prompt or at an answer, so that a call is never separated from its
// result: providers refuse that. While a turn runs, its newest step and its prompt are always kept. limit is the result of usable, in
// tokens; 0 is unknown and gives the smallest budget. A hard compaction, after the provider refused the request, keeps a quarter of the
// budget.
func (h *history) plan(limit int, o CompactionOptions, c compaction) (p cutPlan) {
	all := h.messages
	if len(all) == 0 {
		return p
	}
	budget := max(tailLeast, min(tailMost, limit/4))
	if o.Recent > 0 {
		budget = o.Recent
	}
	if c.hard {
		budget /= 4
	}
	from := len(all)
	running := h.running()
	if running {
		from = lastStep(all)
	}
	// Keep the newest messages as long as the budget lasts. A result is kept together with its calls, which come before it.
	left, turns := budget-estimateAll(all[from:]), 0
	for i := from - 1; i >= 0; i-- {
		if left -= estimateMessage(all[i]); left < 0 || o.TailTurns > 0 && turns == o.TailTurns {
			break
		}
		// A cut here would separate results from their calls.
		if all[i].Role == provider.RoleTool {
			continue
		}
		from = i
		if all[i].Role == provider.RoleUser {
			turns++
		}
	}
	if from == 0 || from == 1 && strings.HasPrefix(all[0].ID, "cmp_") { // everything fits the budget, except for an earlier summary
		// An automatic compaction has nothing to do then. One that the person asked for, or that must succeed (hard), removes everything
		// except a step that still needs an answer.
		if c.auto && !c.hard {
			return p
		}
		if from = len(all); running {
			from = lastStep(all)
		}
	}
	// A tail of whole turns reads better than one that begins inside a turn, so the cut moves forward to the next prompt. When the running
	// turn alone exceeds the budget, its prompt is kept separately.
	if i := slices.IndexFunc(all[from:], func(m provider.Message) bool { return m.Role == provider.RoleUser }); i > 0 {
		from += i
	} else if i < 0 && running {
		for j := from - 1; j >= 0; j-- {
			if all[j].Role == provider.RoleUser && !synthetic(all[j]) {
				p.prompt = all[j].ID
				break
			}
		}
	}
	for _, m := range all[:from] {
		if m.ID != p.prompt {
			p.gone = append(p.gone, m)
			p.tokens += estimateMessage(m)
		}
	}
	p.messages = len(p.gone)
	if p.messages == 1 && strings.HasPrefix(p.gone[0].ID, "cmp_") || p.messages == 0 { // nothing, or only an earlier summary, is left to summarise
		p = cutPlan{from: all[0].ID}
		p.trim(all, limit)
		return p
	}
	if from < len(all) {
		p.from = all[from].ID
		p.trim(all[from:], limit)
	}
	return p
}

// running reports whether the newest message still needs an answer from a model.
func (h *history) running() bool {
	last := h.messages[len(h.messages)-1]
	return last.Role == provider.RoleTool || last.Role == provider.RoleUser
}

// lastStep returns the index at which the newest step begins: the person's message, or the answer whose results are at the end.
func lastStep(all []provider.Message) int {
	i := len(all) - 1
	for i > 0 && all[i].Role == provider.RoleTool {
		i--
	}
	return i
}

// synthetic reports whether Pillion wrote the whole message; such a message is not the prompt that a turn works on.
func synthetic(m provider.Message) bool {
	return !slices.ContainsFunc(m.Parts, func(p provider.Part) bool { return !p.Synthetic })
}

// trim cuts the results in the kept messages when those alone would fill half of the window: the largest first, each to an equal share.
// Without it one output as large as the window could never be compacted, because the newest step is always kept.
func (p *cutPlan) trim(tail []provider.Message, limit int) {
	if limit <= 0 {
		return
	}
	// Half of the window leaves the other half to the prompt, the tools and the answer.
	most := limit / 2
	size := estimateAll(tail)
	type result struct {
		id   string
		size int
	}
	var results []result
	for _, m := range tail {
		for _, part := range m.Parts {
			if part.Type == provider.PartToolResult {
				results = append(results, result{part.CallID, estimate(part)})
			}
		}
	}
	if size <= most || len(results) == 0 {
		return
	}
	slices.SortStableFunc(results, func(a, b result) int { return b.size - a.size })
	fair := max(most/2/len(results), 100) // tokens that each result may keep
	for _, r := range results {
		if size <= most || r.size <= fair {
			break
		}
		if p.trimmed == nil {
			p.trimmed = map[string]int{}
		}
		p.trimmed[r.id] = fair * 4 // trimmed is in bytes; four bytes are about one token
		size -= r.size - fair
		p.tokens += r.size - fair
	}
}

// Bytes that a transcript shows of each part. Results are the longest and least needed: the answers say what was done with them.
const (
	shownText   = 8_000
	shownInput  = 600
	shownResult = 2_000
)

// transcriptFor returns the request for a summary, of about room bytes. Of a long conversation it shows the newest part, and the summary of
// an earlier compaction, the only record of what came before.
func transcriptFor(all []provider.Message, focus string, room int) string {
	var parts []string
	size, first := 0, 0
	for i, m := range slices.Backward(all) {
		text := shown(m)
		// Show at least one message, however long it is.
		if size+len(text) > room && i > 0 && len(parts) > 0 {
			first = i + 1
			break
		}
		size += len(text)
		parts = append(parts, text)
	}
	slices.Reverse(parts)
	var b strings.Builder
	b.WriteString("Summarise this conversation.\n")
	if focus = strings.TrimSpace(focus); focus != "" {
		b.WriteString("The person asks to keep above all: " + focus + "\n")
	}
	b.WriteString("\n<conversation>\n")
	if first > 0 {
		if strings.HasPrefix(all[0].ID, "cmp_") {
			b.WriteString(shown(all[0]))
		}
		fmt.Fprintf(&b, "[%s left out here to save room]\n\n", textutil.Plural(first, "older message"))
	}
	for _, p := range parts {
		b.WriteString(p)
	}
	b.WriteString("</conversation>")
	return b.String()
}

// shown returns a message for a transcript. Its parts are cut: a summary needs to know what was done, not whole files.
func shown(m provider.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p.Type {
		case provider.PartText:
			who := "person"
			if m.Role == provider.RoleAssistant {
				who = "agent"
			} else if p.Synthetic {
				who = "note"
			}
			fmt.Fprintf(&b, "[%s]\n%s\n\n", who, cutMiddle(p.Text, shownText))
		case provider.PartToolCall:
			fmt.Fprintf(&b, "[call %s] %s\n\n", p.Name, cutMiddle(string(p.Input), shownInput))
		case provider.PartToolResult:
			what := "result"
			if p.IsError {
				what = "failed"
			}
			fmt.Fprintf(&b, "[%s of %s]\n%s\n\n", what, p.Name, cutMiddle(p.Text, shownResult))
		}
		for _, f := range p.Files {
			fmt.Fprintf(&b, "[file %s %s]\n\n", f.Name, f.Mime)
		}
	}
	return b.String()
}

// cutMiddle keeps the beginning and the end of s, about most bytes together, and says how many bytes are missing. A character that the
// cut splits is dropped.
func cutMiddle(s string, most int) string {
	if len(s) <= most {
		return s
	}
	half := most / 2
	return strings.ToValidUTF8(s[:half], "") + "\n… (" + fmt.Sprint(len(s)-2*half) + " bytes left out) …\n" + strings.ToValidUTF8(s[len(s)-half:], "")
}

// digest returns a summary made without a model: the last prompts, the last answers, and how often which call was made. It is used where no
// model can summarise, because the conversation is too long or there is only the built-in model: a poor summary is better than a session
// that cannot continue.
func digest(all []provider.Message) string {
	var asked, said []string
	files := map[string]int{}
	var order []string
	for _, m := range all {
		for _, p := range m.Parts {
			switch {
			case p.Type == provider.PartText && m.Role == provider.RoleUser && (!p.Synthetic || strings.HasPrefix(m.ID, "cmp_")):
				asked = append(asked, "- "+cutMiddle(strings.TrimSpace(p.Text), 600))
			case p.Type == provider.PartText && m.Role == provider.RoleAssistant && strings.TrimSpace(p.Text) != "":
				said = append(said, "- "+cutMiddle(strings.TrimSpace(p.Text), 300))
			case p.Type == provider.PartToolCall:
				if path := pathIn(p); path != "" {
					what := p.Name + " " + path
					if files[what]++; files[what] == 1 {
						order = append(order, what)
					}
				}
			}
		}
	}
	tail := func(list []string, n int) []string { return list[max(0, len(list)-n):] }
	var b strings.Builder
	section := func(head string, lines []string) {
		if len(lines) > 0 {
			b.WriteString("## " + head + "\n" + strings.Join(lines, "\n") + "\n")
		}
	}
	section("The person said", tail(asked, 20))
	section("The agent said", tail(said, 8))
	for i, what := range order {
		order[i] = fmt.Sprintf("- %s (%s)", what, textutil.Plural(files[what], "time"))
	}
	section("Calls", tail(order, 40))
	return strings.TrimSpace(b.String())
}

// pathIn returns the file, command or pattern that a call is about, as one short line; "" when it has none.
func pathIn(p provider.Part) string {
	in := decodeInput(p.Input)
	for _, key := range []string{"filePath", "path", "command", "pattern"} {
		if s, _ := in[key].(string); s != "" {
			return cutMiddle(textutil.FirstLine(s), 120)
		}
	}
	return ""
}

// decodeInput returns a call's arguments; nil when they are not a JSON object, because a model may write anything.
func decodeInput(raw json.RawMessage) (in map[string]any) {
	_ = json.Unmarshal(raw, &in)
	return in
}
