package provider

import "strings"

// thinkTags takes a leading <think>…</think> out of a text: local servers without a reasoning parser leave it in the answer. A tag later
// in an answer is text: people ask about HTML and about models. Only bytes that may still become a tag are held back; inside a thought
// that is at most seven.
type thinkTags struct {
	state int    // 0: at the start, 1: inside, 2: after
	held  string // what may be the beginning of a tag
}

// thinkOpen and thinkClose are the form in which DeepSeek-R1 and Qwen models write their thoughts.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// split sends a piece of the answer as thought or text. A tag may be cut between two pieces, so bytes that may be the beginning of one
// wait for the next piece or for flush.
func (t *thinkTags) split(text string, send func(Event) error) error {
	if t.state == 2 {
		return send(Event{Type: EventText, Text: text})
	}
	text = t.held + text
	t.held = ""
	if t.state == 0 {
		trimmed := strings.TrimLeft(text, " \n\r\t")
		switch {
		case strings.HasPrefix(trimmed, thinkOpen):
			t.state = 1
			text = strings.TrimPrefix(trimmed[len(thinkOpen):], "\n")
		case strings.HasPrefix(thinkOpen, trimmed): // also nothing but white space
			// After more than 64 bytes of white space no thought is expected: they are shown as text.
			if len(text)-len(trimmed) > 64 {
				break
			}
			t.held = text
			return nil
		}
		if t.state == 0 {
			t.state = 2
			return send(Event{Type: EventText, Text: text})
		}
	}
	thought, after, closed := strings.Cut(text, thinkClose)
	if !closed {
		keep := partialSuffix(text, thinkClose)
		thought, t.held = text[:len(text)-keep], text[len(text)-keep:]
	}
	if thought != "" {
		if err := send(Event{Type: EventThinking, Text: thought}); err != nil {
			return err
		}
	}
	if closed {
		t.state = 2
		// The newlines after the closing tag belong to it.
		if after = strings.TrimLeft(after, "\n"); after != "" {
			return send(Event{Type: EventText, Text: after})
		}
	}
	return nil
}

// flush sends what was held back when the answer ends.
func (t *thinkTags) flush(send func(Event) error) error {
	held := t.held
	t.held = ""
	switch {
	case held == "":
		return nil
	case t.state == 1:
		return send(Event{Type: EventThinking, Text: held})
	}
	return send(Event{Type: EventText, Text: held})
}

// partialSuffix is how many bytes at the end of s may be the beginning of tag.
// At most one byte less than the tag: a whole one would have been found.
func partialSuffix(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
