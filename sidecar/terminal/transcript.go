package terminal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

const maxError = 600 // characters shown of a call's error

// transcript shows a session's events. The sheet's mu guards it.
type transcript struct {
	*sheet
	*tally
	stop func() // ends the running turn; nil: no one can
	// states keeps a call that is reported twice with one status from being printed twice.
	states map[string]agent.ToolStatus // the last status shown, by call
	answer *markdownStream             // renders the answer; nil: it is shown as it comes
	echo   bool                        // prompts are printed: the Composer clears what was typed when it is sent
	echoed string                      // the message id of the one that was shown already
	// stream is what the open line belongs to: an answer does not continue a line of thoughts.
	stream agent.EventType
	began  time.Time // when the turn began
}

// event shows one event.
func (t *transcript) event(e agent.Event) {
	switch e.Type {
	case agent.EventPrompt, agent.EventSteer:
		if d, ok := agent.Value[agent.PromptData](e); ok && t.echo && d.MessageID != t.echoed {
			t.flush()
			t.prompt(d.Parts)
		}
		// The figures and the clock are those of a turn; a steering message begins none.
		if e.Type == agent.EventPrompt {
			t.flush()
			t.began = t.now()
			t.spends(0, 0, 0)
			t.busy("thinking")
		}
	case agent.EventMessage:
		t.flush() // what one message says does not run into the next
		t.busy("thinking")
		// The summary has the text of the last message only: what came before a tool call is not the answer.
		t.text.Reset()
	case agent.EventText:
		if d, ok := agent.Value[agent.TextData](e); ok {
			t.words(d.Text)
		}
	case agent.EventThinking:
		// Thoughts are dim and never rendered as Markdown: they are not part of the answer.
		if d, ok := agent.Value[agent.TextData](e); ok {
			if t.stream != agent.EventThinking {
				t.flush()
				t.stream = agent.EventThinking
			}
			t.print(t.paint(dim, Clean(d.Text)))
		}
	case agent.EventTool:
		if d, ok := agent.Value[agent.ToolData](e); ok {
			t.tool(d)
		}
	case agent.EventChange:
		if d, ok := agent.Value[agent.ChangeData](e); ok {
			t.change(d)
		}
	case agent.EventPlan:
		if d, ok := agent.Value[agent.PlanData](e); ok {
			t.plan(d)
		}
	case agent.EventStep:
		if d, ok := agent.Value[agent.StepData](e); ok {
			t.spend(d)
		}
	case agent.EventCompaction:
		if d, ok := agent.Value[agent.CompactionData](e); ok {
			t.flush()
			t.line(t.paint(dim, "! "+Clean(d.Words())))
			if d.State == agent.CompactionBegun {
				t.busy("compacting")
			} else {
				t.busy("")
			}
		}
	case agent.EventNotice:
		if d, ok := agent.Value[agent.NoticeData](e); ok && !(t.quit && d.Level == "info") { // who quits is not told how to continue
			t.notice(d)
		}
	case agent.EventTurn:
		if d, ok := agent.Value[agent.TurnData](e); ok {
			t.busy("")
			t.flush()
			t.summary.Stop, t.summary.Error, t.summary.Usage, t.summary.Cost, t.summary.Steps, t.summary.Undone = d.Stop, d.Error, d.Usage, d.Cost, d.Steps, d.Undone
		}
	}
}

// flush ends what streams: the open line, and the part of an answer that was not complete. Everything that prints a
// line of its own calls it first.
func (t *transcript) flush() {
	if t.answer != nil && t.stream == agent.EventText {
		t.tail(nil)
		t.print(t.answer.finish(t.width(), t.color))
	}
	t.endLine()
	t.stream = ""
}

// words shows a piece of the answer. Pieces end anywhere, also inside a line or a mark of Markdown.
func (t *transcript) words(text string) {
	if t.stream != agent.EventText {
		t.flush()
		t.stream = agent.EventText
	}
	t.text.WriteString(text)
	if t.answer == nil {
		t.print(Clean(text))
		t.busy("")
		return
	}
	t.print(t.answer.add(text, t.width(), t.color))
	t.tail(t.answer.rest(t.color))
	t.busy("answering")
}

// say shows a text of Pillion's own. It is rendered in plain mode too: its escapes are no words to be read out.
func (t *transcript) say(text string) {
	var whole markdownStream
	t.print(whole.add(text, t.width(), t.color))
	t.print(whole.finish(t.width(), t.color))
	t.endLine()
}

// prompt prints what the user sent. Synthetic parts are left out: they are words for the model alone.
func (t *transcript) prompt(parts []provider.Part) {
	mark := "› "
	for _, p := range parts {
		text := ""
		switch {
		case p.Synthetic:
			continue
		case p.Type == provider.PartText:
			text = strings.TrimSpace(p.Text)
		case len(p.Files) > 0:
			text = fmt.Sprintf("[%s, %d kB]", p.Files[0].Name, (len(p.Files[0].Data)+999)/1000)
		}
		if text == "" {
			continue
		}
		if mark == "› " { // set off from what is above, unless there is nothing to show: words for the model alone
			t.line("")
		}
		lines := strings.Split(foldLong(Clean(text)), "\n")
		for _, l := range lines {
			for _, row := range strings.Split(ansi.Wrap(l, max(t.width()-2, 8), ""), "\n") {
				t.line(t.paint(bold, mark) + row)
				mark = "  "
			}
		}
	}
}

// foldLong leaves out the middle of a text of many lines, as the composer does with a paste.
func foldLong(text string) string {
	const most = 20 // lines; more would push the conversation off the screen
	lines := strings.Split(text, "\n")
	if len(lines) <= most {
		return text
	}
	lines = append(append(lines[:most/2:most/2], fmt.Sprintf("[… %s]", textutil.Plural(len(lines)-most, "more line"))), lines[len(lines)-most/2:]...)
	return strings.Join(lines, "\n")
}

// notice shows a notice of the session. One with a time in Until is a wait, for example between two attempts at a
// model request, whose clock runs backwards.
func (t *transcript) notice(d agent.NoticeData) {
	t.flush()
	color := dim
	if d.Level != "info" {
		color = yellow
	}
	t.line(t.paint(color, "! "+Clean(d.Text)))
	if d.Until.After(t.now()) {
		t.busy("waiting to try again")
		t.pending.until = d.Until
		t.waitFor(t.pending)
	}
}

// busy names what the user waits for; "" is nothing. The clock is not reset while it stays the same. A wait with an end is
// replaced even by the same words, since its clock means something else.
func (t *transcript) busy(what string) {
	what = Clean(t.rel(what))
	if t.pending.what != what || what == "" || !t.pending.until.IsZero() {
		t.pending = activity{what: what, since: t.now(), turn: t.began}
	}
	t.waitFor(t.pending)
}

// spend adds what a step used to the turn's figures.
func (t *transcript) spend(d agent.StepData) {
	// Cached input counts as input, and thinking as output: the person sees how large the requests were, and the cost
	// beside it has the discounts.
	t.spent.Input += d.Usage.Input + d.Usage.CacheRead + d.Usage.CacheWrite
	t.spent.Output += d.Usage.Output + d.Usage.Reasoning
	t.cost += d.Cost
	t.spends(t.spent.Input, t.spent.Output, t.cost)
}

// tool prints a line when a call ends; while it runs its title is what is waited for.
func (t *transcript) tool(d agent.ToolData) {
	title := d.Title
	if title == "" {
		title = inputTitle(d.Input)
	}
	title = strings.TrimPrefix(title, d.Tool+": ") // "verify: go test", for front ends that show only titles
	switch d.Status {
	case agent.ToolPending, agent.ToolRunning:
		// The answer so far is printed before the call, which may run for long.
		if t.stream != "" {
			t.flush()
		}
		t.busy(strings.TrimSpace(d.Tool + " " + t.rel(title)))
	case agent.ToolCompleted, agent.ToolError:
		if t.states[d.CallID] == d.Status {
			return
		}
		t.flush()
		mark, color := "✓", green
		if d.Status == agent.ToolError {
			mark, color = "✗", red
		}
		took := ""
		// The time that the person took to answer is not the tool's.
		if s := d.Ended.Sub(d.Started) - t.asked[d.CallID]; !d.Started.IsZero() && s >= time.Second {
			took = t.paint(dim, fmt.Sprintf("  %.1fs", s.Seconds()))
		}
		t.line(t.paint(color, mark) + " " + t.paint(bold, d.Tool) + " " + cut(Clean(t.rel(title)), t.width()-len(d.Tool)-12) + took)
		if d.Status == agent.ToolError {
			text := textutil.FirstLine(d.Error)
			if d.ErrorKind == "rejected" {
				text = "not applied" // the rest is for the model; the user has just said it
			}
			t.line(t.paint(dim, "  "+cut(Clean(text), maxError))) // whole: its end says what to do
		}
		t.busy("thinking")
		// After q the call has written what was accepted until then; the turn can end.
		if t.stopping == d.CallID && t.stop != nil {
			t.stopping = ""
			go t.stop() // not under mu: it may send events
		}
	}
	t.states[d.CallID] = d.Status
}

// isNews reports whether a verdict says something else than the one before.
func isNews(d, before *change.Verdict) bool {
	return d != nil && (before == nil || d.Certainty != before.Certainty || d.Reason != before.Reason || d.Headline() != before.Headline())
}

// change shows a change set that was not shown for approval, and what is heard of the problems of one while its question is open.
func (t *transcript) change(d agent.ChangeData) {
	set := d.Whole()
	if set != nil && d.State == change.Proposed && set.Verdict != nil {
		news := isNews(set.Verdict, t.verdicts[set.ID])
		t.verdicts[set.ID] = set.Verdict
		if news && set.ID == t.asking {
			t.flush()
			t.line("  " + t.verdict(set.Verdict))
			t.problems(set.Verdict)
		}
	}
	if set == nil || d.State == change.Proposed || d.State == change.Writing {
		return // AskPermission shows it, or it is applied at once
	}
	// A set that AskPermission has shown is not printed twice.
	if !t.shown[set.ID] {
		t.shown[set.ID] = true
		t.flush()
		t.set(set)
	}
	t.changed(outcome{d.State, set})
}

// plan shows the whole list of todos each time: a line that was printed cannot be changed any more.
func (t *transcript) plan(d agent.PlanData) {
	t.flush()
	for _, todo := range d.Todos {
		box := map[string]string{"completed": t.paint(green, "☑"), "in_progress": t.paint(yellow, "▶"), "cancelled": "☒"}[todo.Status]
		if box == "" {
			box = "☐"
		}
		t.line("  " + box + " " + Clean(todo.Content))
	}
}

// inputTitle picks the telling argument of a call that has no title yet. The order is from the most to the least
// telling one. "" means that none of them is there, or that the input is not complete yet.
func inputTitle(input json.RawMessage) string {
	var m map[string]any
	if json.Unmarshal(input, &m) != nil {
		return ""
	}
	for _, k := range []string{"filePath", "command", "pattern", "path", "url", "query", "description", "operation"} {
		if s, ok := m[k].(string); ok && s != "" {
			return textutil.FirstLine(s)
		}
	}
	return ""
}
