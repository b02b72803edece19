package terminal

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// writer types prose at a human speed, with pauses of any kind. Its lines have more than one letter.
type writer struct {
	*rand.Rand
	left []string // keys
}

func newWriter(seed uint64) *writer {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1))}
	words := strings.Fields("y n A P E q ? yes no any please say Allow Project Everything quit you do it now a c e o")
	for range 1 + w.IntN(4) {
		line := words[w.IntN(len(words))]
		for range 1 + w.IntN(5) {
			line += " " + words[w.IntN(len(words))]
		}
		w.left = append(append(w.left, strings.Split(line, "")...), "enter")
	}
	return w
}

// upTo is a time shorter than d.
func (w *writer) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

// pause is the time before the next key.
func (w *writer) pause() time.Duration {
	switch n := w.IntN(20); {
	case n < 14:
		return burst + 10*time.Millisecond + w.upTo(lone)
	case n < 18:
		return lone + w.upTo(2*time.Second)
	}
	return 2*time.Second + w.upTo(recent-3*time.Second)
}

// Somebody who began to type before a question appeared, above a prompt that stays open, answers nothing.
func TestProseAbovePromptAnswersNothing(t *testing.T) {
	answered := 0
	for seed := range uint64(2000) {
		synctest.Test(t, func(t *testing.T) {
			w := newWriter(seed)
			var f focus
			prompt, messages := "", make(chan tea.Msg, 10_000)
			run := func(cmd tea.Cmd) {
				if cmd != nil {
					go func() { messages <- cmd() }()
				}
			}
			var asked []*awaited
			appears := time.After(w.upTo(3 * time.Second)) // as long as somebody types before it
			key := time.After(0)
			for typed := 0; len(w.left) > 0; {
				select {
				case <-appears:
					if typed == 0 {
						appears = time.After(w.upTo(time.Second))
						continue
					}
					q := &awaited{keys: "ynAPEq?", notice: []time.Duration{notice, quiet}[w.IntN(2)], ready: make(chan struct{}), key: make(chan byte, 1), line: make(chan string, 1)}
					asked = append(asked, q)
					cmd, _ := f.show(q, prompt == "")
					run(cmd)
					appears = time.After(time.Second + w.upTo(20*time.Second)) // it is withdrawn, and another comes
				case m := <-messages:
					switch m := m.(type) {
					case rested:
						cmd, _ := f.rested(m, prompt == "")
						run(cmd)
					case alone:
						f.answer(m)
					}
				case <-key:
					k := w.left[0]
					w.left, key = w.left[1:], time.After(w.pause())
					typed++
					if k == "enter" && f.enters(prompt) {
						f.give(prompt[0])
					}
					text := k
					if k == "enter" {
						text = ""
					}
					cmd, back, done := f.press(k, text, prompting{empty: prompt == "", busy: true})
					run(cmd)
					if prompt += back; !done {
						if prompt += text; k == "enter" {
							prompt = ""
						}
					}
				}
			}
			time.Sleep(time.Minute)
			for len(messages) > 0 {
				if m, ok := (<-messages).(alone); ok {
					f.answer(m)
				}
			}
			for _, q := range asked {
				if answered++; len(q.key) > 0 {
					t.Fatalf("seed %d: %q", seed, <-q.key)
				}
			}
		})
	}
	if answered < 1000 {
		t.Errorf("only %d questions", answered)
	}
}

// The same on a terminal without a prompt, where a question lasts and what was typed before it is waiting to be read.
func TestProseAtATerminalAnswersNothing(t *testing.T) {
	for seed := range uint64(2000) {
		synctest.Test(t, func(t *testing.T) {
			w := newWriter(seed)
			p := prose{keys: "ynAPEq?", notice: []time.Duration{notice, quiet}[w.IntN(2)], came: time.Now(), typing: true, stale: true}
			n := 1 + w.IntN(len(w.left)-1) // typed ahead
			p.press([]byte(strings.ReplaceAll(strings.Join(w.left[:n], ""), "enter", "\r")))
			left := w.left[n:]
			for len(left) > 0 {
				pause := w.pause()
				for pause > 0 {
					limit := p.limit()
					if limit == 0 || limit > pause {
						break
					}
					time.Sleep(limit)
					if pause -= limit; p.rest() != 0 {
						t.Fatalf("seed %d: answered by rest", seed)
					}
				}
				time.Sleep(pause)
				if k := p.press([]byte(strings.ReplaceAll(left[0], "enter", "\r"))); k != 0 {
					t.Fatalf("seed %d: %c", seed, k)
				}
				left = left[1:]
			}
		})
	}
}
