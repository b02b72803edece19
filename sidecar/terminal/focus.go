package terminal

import (
	"cmp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// focus decides whether a key edits the prompt or answers a question that has appeared above it. A question is answered by
// accident where keys that were meant for the prompt reach it, so:
//
//   - Someone who waits for the question answers it with one key: it gets the keys when it has been on the screen for a while (see notice)
//     and the keyboard is quiet, with nothing in the prompt. A key counts only alone (see lone): it may be the first letter of a
//     sentence, or the last one. Enter after it counts it at once.
//   - Someone who types answers with more than one key, however long the pauses between the keys are: tab, a moment of quiet (see quiet) and
//     the key, or the key alone in the prompt and Enter. That holds for a question that comes while something is in the prompt or soon after a
//     key for it (see recent), and once the person types for the prompt at the question.
//   - Ctrl-C, Ctrl-D and Esc say no at once: nothing is lost by them.
type focus struct {
	question *awaited
	has      bool   // the question has the keys
	told     bool   // question.ready was closed: it must not be closed twice
	wanted   bool   // tab was pressed: the question gets the keys of somebody who types
	typed    bool   // somebody types: a key alone does not answer
	fresh    bool   // the prompt was empty since the question came: what is in it was typed at the question
	done     bool   // a line was given: what is typed until the question goes is for the prompt
	draft    string // what the prompt held, while a question for a line has it
	press1   byte   // a key that answers unless another one follows soon; 0: none
	// A message with an older number comes from before the last key and is ignored.
	serial   int       // counts key presses
	came     time.Time // when the question appeared
	last     time.Time // the last key
	prompted time.Time // the last key for the prompt; zero when it began a turn, whose questions are waited for
}

// burst is how soon one byte follows another only when no person pressed single keys: a paste, or the sequence that a
// terminal sends for an arrow key, which ends in a letter.
const burst = 30 * time.Millisecond

// lone is how long no other key may follow one that answers. Within a word a person types faster than this, so the first letter of a
// sentence that was meant for the prompt does not answer; a person who waits for the answer's effect hardly notices it.
const lone = 200 * time.Millisecond

// recent is how long after a key for the prompt somebody still counts as typing when a question appears. People pause between sentences.
const recent = 10 * time.Second

// rested is a message: the keyboard may have been quiet since the key press of that number.
type rested struct{ serial int }

// alone is a message: no other key may have followed the one of that number.
type alone struct{ serial int }

// typing reports whether a question for a line has the prompt.
func (f *focus) typing() bool { return f.has && !f.done && f.question != nil && f.question.keys == "" }

// show takes over the question that is on the screen now; nil when there is none. empty: nothing is in the prompt. moved: a question that
// had the prompt has gone.
func (f *focus) show(q *awaited, empty bool) (cmd tea.Cmd, moved bool) {
	if q == f.question {
		return nil, false
	}
	moved = f.typing()
	now := time.Now()
	*f = focus{question: q, draft: f.draft, last: f.last, prompted: f.prompted, serial: f.serial, came: now,
		typed: !empty || now.Sub(f.prompted) < recent, fresh: empty}
	if q != nil {
		cmd = f.rest(q.notice)
	}
	return cmd, moved
}

// rest looks again after a moment of quiet.
func (f *focus) rest(d time.Duration) tea.Cmd {
	f.serial++
	serial := f.serial
	return tea.Tick(d, func(time.Time) tea.Msg { return rested{serial} })
}

// early reports whether the question is too new on the screen to have been read.
func (f *focus) early() bool { return time.Since(f.came) < f.question.notice }

// rested gives the question the keys if no key was pressed meanwhile. moved: the question has the prompt now.
func (f *focus) rested(m rested, empty bool) (cmd tea.Cmd, moved bool) {
	if m.serial != f.serial || f.question == nil || f.has || !empty && !f.wanted {
		return nil, false
	}
	if left := f.question.notice - time.Since(f.came); left > 0 {
		return f.rest(left), false // keys were pressed before it could be read
	}
	// Only one key can be mistaken: a line needs Enter.
	f.has = f.wanted || !f.typed || f.question.keys == ""
	if !f.told {
		f.told = true
		close(f.question.ready)
	}
	return nil, f.typing()
}

// prompting is the state of the prompt when a key comes.
type prompting struct {
	empty   bool // nothing is in it
	offered bool // tab accepts a completion
	busy    bool // a turn runs: Enter does not begin one
}

// press gets every key first. text is what it types, if anything. done: it was not for the prompt; otherwise back goes into the prompt before
// it.
func (f *focus) press(key, text string, p prompting) (cmd tea.Cmd, back string, done bool) {
	now := time.Now()
	gap := now.Sub(f.last)
	f.last = now
	q := f.question
	// Refusing needs no moment of quiet: it writes nothing.
	if q != nil && q.keys != "" && (key == "esc" || key == "ctrl+c" || key == "ctrl+d" && p.empty) {
		f.give('q')
		return nil, "", true
	}
	if q != nil && f.has && !f.done && q.keys != "" {
		return f.answerKey(key, text, gap)
	}
	if f.typing() {
		return nil, "", false
	}
	if f.prompted = now; key == "enter" && !p.busy {
		f.prompted = time.Time{}
	}
	if q == nil || f.done {
		return nil, "", false
	}
	f.fresh = f.fresh || p.empty
	// An empty prompt needs no tab unless somebody types. A tab that comes with the question is for the prompt.
	if key == "tab" && !p.offered && (!p.empty || f.typed) && (q.keys == "" || !f.early()) {
		f.wanted = true
		return f.rest(quiet), "", true
	}
	f.typed, f.wanted = true, false
	return f.rest(quiet), "", false // the moment of quiet begins again; the key is for the prompt
}

// answerKey takes a key, and the time since the one before, while the question has them.
func (f *focus) answerKey(key, text string, gap time.Duration) (cmd tea.Cmd, back string, done bool) {
	f.serial++
	held := f.press1
	f.press1 = 0
	switch {
	case held != 0 && key == "enter":
		if gap > burst { // faster is a paste
			f.give(held)
		}
		return nil, "", true
	case held != 0 && text != "":
		back = string(held) // the first letter of a sentence
	case key == "tab": // a prompt can be typed beside the question
	case text == "":
		return nil, "", true
	case held == 0 && gap >= quiet && len(text) == 1 && strings.Contains(f.question.keys, text):
		f.press1 = text[0]
		serial := f.serial
		return tea.Tick(lone, func(time.Time) tea.Msg { return alone{serial} }), "", true
	}
	f.has, f.wanted, f.typed, f.fresh, f.prompted = false, false, true, true, f.last
	return nil, back, key == "tab"
}

// pasted notes that text comes into the prompt without keys; it answers nothing with Enter either.
func (f *focus) pasted() {
	if f.typing() {
		return
	}
	f.has, f.wanted, f.typed, f.fresh, f.press1, f.prompted = false, false, true, false, 0, time.Now()
}

// answer answers with a key that no other one has followed.
func (f *focus) answer(m alone) {
	if m.serial == f.serial && f.press1 != 0 && f.question != nil && f.has {
		f.give(f.press1)
	}
}

// enters reports whether Enter answers the question: a key of it is alone in the prompt, and was typed at the question.
func (f *focus) enters(prompt string) bool {
	q := f.question
	return q != nil && q.keys != "" && !f.has && f.fresh && len(prompt) == 1 && strings.Contains(q.keys, prompt) && !f.early() && time.Since(f.last) > burst
}

// give hands over the answer. It never waits: the question may have been cancelled. Somebody who answers waits for the next question.
func (f *focus) give(key byte) {
	f.prompted = time.Time{}
	select {
	case f.question.key <- key:
	default: // it is answered already
	}
}

// line answers a question for a line; false when none waits for one.
func (f *focus) line(text string) bool {
	if !f.typing() {
		return false
	}
	f.done, f.prompted = true, time.Time{}
	f.question.line <- text // has room: no second line is given
	return true
}

// hint says where the keys go; prompt is what is in the prompt.
func (f *focus) hint(prompt string) string {
	switch {
	case f.done:
		return ""
	case f.typing():
		return "enter answers · esc dismisses the question"
	case f.has:
		return keyWords(f.question.keys) + " · tab prompt"
	case f.enters(prompt):
		return "enter answers " + cmp.Or(meanings[rune(prompt[0])], prompt) + " · tab goes to the question · esc stops"
	case f.typed && prompt == "" && f.told && f.question.keys != "":
		return "with enter: " + keyWords(f.question.keys)
	}
	return "tab goes to the question · esc stops"
}

// meanings are what the keys of questions stand for; a key means the same in every question. The help of a question says more.
var meanings = map[rune]string{'y': "yes", 'n': "no", 'e': "edit", 'a': "rest", 'A': "session", 'P': "project", 'E': "everywhere", 'o': "open", 'c': "comment", 'q': "stop"}

// keyWords names the keys of a question with their meaning, in the question's order.
func keyWords(keys string) string {
	var words []string
	for _, k := range keys {
		if word, ok := meanings[k]; ok {
			words = append(words, string(k)+" "+word)
		}
	}
	return strings.Join(words, " · ")
}
