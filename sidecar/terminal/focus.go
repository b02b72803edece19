package terminal

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// focus decides whether a key edits the prompt or answers a question that has appeared above it. A question is answered by
// accident where keys that were meant for the prompt reach it, so:
//
//   - It gets the keys once the keyboard has been quiet for a moment (see quiet) with nothing in the prompt.
//   - With something in the prompt it gets them only after tab, and the same moment of quiet.
//   - A key counts only alone (see lone), after a moment of quiet: it may be the first letter of a sentence, or the last one.
//     Enter after it counts it at once.
//   - Ctrl-C, Ctrl-D and Esc say no at once: nothing is lost by them.
type focus struct {
	question *awaited
	has      bool   // the question has the keys
	told     bool   // question.ready was closed: it must not be closed twice
	wanted   bool   // tab was pressed: the question gets them although the prompt is not empty
	left     bool   // tab was pressed again: the prompt keeps them
	done     bool   // a line was given: what is typed until the question goes is for the prompt
	draft    string // what the prompt held, while a question for a line has it
	last     time.Time
	press1   byte // a key that answers unless another one follows soon; 0: none
	// A message with an older number comes from before the last key and is ignored.
	serial int // counts key presses
}

// burst is how soon one byte follows another only when no person pressed single keys: a paste, or the sequence that a
// terminal sends for an arrow key, which ends in a letter.
const burst = 30 * time.Millisecond

// lone is how long no other key may follow one that answers. Within a word a person types faster than this, so the first letter of a
// sentence that was meant for the prompt does not answer; a person who waits for the answer's effect hardly notices it.
const lone = 200 * time.Millisecond

// rested is a message: the keyboard may have been quiet since the key press of that number.
type rested struct{ serial int }

// alone is a message: no other key may have followed the one of that number.
type alone struct{ serial int }

// typing reports whether a question for a line has the prompt.
func (f *focus) typing() bool { return f.has && !f.done && f.question != nil && f.question.keys == "" }

// show takes over the question that is on the screen now; nil when there is none. moved: a question that had the prompt has gone.
func (f *focus) show(q *awaited) (cmd tea.Cmd, moved bool) {
	if q == f.question {
		return nil, false
	}
	moved = f.typing()
	*f = focus{question: q, draft: f.draft, last: f.last, serial: f.serial}
	if q != nil {
		cmd = f.rest()
	}
	return cmd, moved
}

// rest looks again after a moment of quiet.
func (f *focus) rest() tea.Cmd {
	f.serial++
	serial := f.serial
	return tea.Tick(quiet, func(time.Time) tea.Msg { return rested{serial} })
}

// rested gives the question the keys if no key was pressed meanwhile. moved: the question has the prompt now.
func (f *focus) rested(m rested, empty bool) (cmd tea.Cmd, moved bool) {
	if m.serial != f.serial || f.question == nil || f.has || f.left || !empty && !f.wanted {
		return nil, false
	}
	f.has = true
	if !f.told {
		f.told = true
		close(f.question.ready)
	}
	return nil, f.question.keys == ""
}

// press gets every key first; done: it was not for the prompt.
func (f *focus) press(key string, empty bool) (cmd tea.Cmd, done bool) {
	q := f.question
	if q == nil {
		return nil, false
	}
	// Refusing needs no moment of quiet: it writes nothing.
	if q.keys != "" && (key == "esc" || key == "ctrl+c" || key == "ctrl+d" && empty) {
		f.give('q')
		return nil, true
	}
	if f.typing() || f.done {
		return nil, false
	}
	if f.has {
		return f.answerKey(key)
	}
	// An empty prompt needs no tab: the question gets the keys by itself, unless the person has left it before.
	if key == "tab" && !empty || key == "tab" && f.left {
		f.wanted, f.left = true, false
		return f.rest(), true
	}
	return f.rest(), false // the moment of quiet begins again; the key is for the prompt
}

// answerKey takes a key while the question has them.
func (f *focus) answerKey(key string) (tea.Cmd, bool) {
	if key == "tab" { // a prompt can be typed beside the question
		f.has, f.wanted, f.left = false, false, true
		return nil, true
	}
	now := time.Now()
	gap := now.Sub(f.last)
	f.last = now
	f.serial++
	if held := f.press1; held != 0 {
		// A second key takes the first one back: both belong to a sentence, a paste or a sequence.
		f.press1 = 0
		if key == "enter" && gap > burst {
			f.give(held)
		}
		return nil, true
	}
	if gap < quiet || len(key) != 1 || strings.IndexByte(f.question.keys, key[0]) < 0 {
		return nil, true
	}
	f.press1 = key[0]
	serial := f.serial
	return tea.Tick(lone, func(time.Time) tea.Msg { return alone{serial} }), true
}

// answer answers with a key that no other one has followed.
func (f *focus) answer(m alone) {
	if m.serial == f.serial && f.press1 != 0 && f.question != nil && f.has {
		f.give(f.press1)
	}
}

// give hands over the answer. It never waits: the question may have been cancelled.
func (f *focus) give(key byte) {
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
	f.done = true
	f.question.line <- text // has room: no second line is given
	return true
}

// hint says where the keys go.
func (f *focus) hint() string {
	switch {
	case f.done:
		return ""
	case f.typing():
		return "enter answers · esc dismisses the question"
	case f.has:
		return keyWords(f.question.keys) + " · tab prompt"
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
