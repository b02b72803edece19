package provider

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func events(r io.Reader) (out []string, err error) {
	s := newSSEReader(r)
	for {
		data, _, err := s.next()
		if err != nil {
			return out, err
		}
		out = append(out, string(data))
	}
}

func TestSSE(t *testing.T) {
	tests := map[string]struct {
		in   string
		want string
	}{
		"plain":                   {"data: a\n\ndata: b\n\n", "a|b"},
		"CRLF":                    {"event: x\r\ndata: a\r\n\r\n", "a"},
		"no space":                {"data:a\n\n", "a"},
		"only the first space":    {"data:  a\n\n", " a"},
		"several lines":           {"data: a\ndata: b\n\n", "a\nb"},
		"comments":                {": hi\n\ndata: a\n: ho\n\n", "a"},
		"other fields":            {"id: 1\nretry: 5\ndatax: no\ndata: a\n\n", "a"},
		"empty data":              {"data\n\ndata:\n\ndata: a\n\n", "a"},
		"no blank line at end":    {"data: a\n\ndata: b", "a|b"},
		"many blank lines":        {"\n\n\ndata: a\n\n\n\n", "a"},
		"plain JSON is an event":  {"{\"error\":1}", "{\"error\":1}"},
		"nothing":                 {"", ""},
		"a field without a colon": {"data\ndata: a\n\n", "\na"},
	}
	for name, tt := range tests {
		for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
			got, err := events(r)
			if strings.Join(got, "|") != tt.want || err != io.EOF {
				t.Errorf("%s: %q %v", name, got, err)
			}
		}
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestAnEventWithoutAnEndIsRefused(t *testing.T) {
	if _, err := events(io.MultiReader(strings.NewReader("data: "), endless{})); !errors.Is(err, errEventTooLong) {
		t.Error(err)
	}
	if _, err := events(lines{}); !errors.Is(err, errEventTooLong) {
		t.Error(err)
	}
}

// lines is an event of endlessly many lines.
type lines struct{}

var manyLines = strings.Repeat("data: "+strings.Repeat("y", 1000)+"\n", 64)

func (lines) Read(p []byte) (int, error) { return copy(p, manyLines), nil }

func TestAnEventLeavesAtItsBlankLine(t *testing.T) {
	r, w := io.Pipe()
	s := newSSEReader(r)
	go func() { _, _ = io.WriteString(w, "data: a\n\n") }() // and the pipe stays open
	data, last, err := s.next()
	if string(data) != "a" || last || err != nil {
		t.Errorf("%q %v %v", data, last, err)
	}
}

func TestAReaderThatReturnsNothingForEverEnds(t *testing.T) {
	if _, err := events(iotest.ErrReader(nil)); err != io.ErrNoProgress {
		t.Error(err)
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: {\"a\":1}\r\n\r\ndata: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err1 := events(strings.NewReader(string(in)))
		bytewise, err2 := events(iotest.OneByteReader(strings.NewReader(string(in))))
		if strings.Join(whole, "\x00") != strings.Join(bytewise, "\x00") || err1 != err2 {
			t.Fatalf("%q and %q", whole, bytewise)
		}
	})
}

// FuzzChatChunks: whatever a server sends, the decoder ends, a stream that succeeds has exactly one stop, last, and
// the shortcut for events that are alike changes nothing.
func FuzzChatChunks(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]}}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"message\":{\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\"}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":-1}}\n\n"))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"abc\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"d\\u00e9\\n\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\\"}}]}\n\ndata: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzzAnswer(t, in, func(e emitter, off bool) answer { return &chatAnswer{out: e, like: template{off: off}} })
	})
}

// FuzzOtherAnswers does the same for the three other formats.
func FuzzOtherAnswers(f *testing.F) {
	f.Add([]byte("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n"))
	f.Add([]byte("data: {\"type\":\"response.output_text.delta\",\"sequence_number\":9,\"delta\":\"abc\"}\n\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":10,\"delta\":\"\\td\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\"}]}}\n\n"))
	f.Add([]byte("data: {\"delta\":\"abc\",\"sequence_number\":9,\"type\":\"response.output_text.delta\"}\n\ndata: {\"delta\":\"\\u00e9\",\"sequence_number\":10,\"type\":\"response.output_text.delta\"}\n\n"))
	f.Add([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"args\":[]}}]},\"finishReason\":\"STOP\"}]}\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzzAnswer(t, in, func(e emitter, off bool) answer { return &anthropicAnswer{out: e, like: template{off: off}} })
		fuzzAnswer(t, in, func(e emitter, off bool) answer { return &responsesAnswer{out: e, like: template{off: off}} })
		fuzzAnswer(t, in, func(e emitter, off bool) answer { return &geminiAnswer{out: e, like: template{off: off}} })
	})
}

func fuzzAnswer(t *testing.T, in []byte, make func(emitter, bool) answer) {
	short, err1 := decode(t, in, func(e emitter) answer { return make(e, false) })
	full, err2 := decode(t, in, func(e emitter) answer { return make(e, true) })
	if (err1 == nil) != (err2 == nil) || len(short) != len(full) {
		t.Fatalf("with the shortcut %v %v, without %v %v", short, err1, full, err2)
	}
	for i := range short {
		a, b := short[i], full[i]
		if made := strings.HasPrefix(a.CallID, "call_") && strings.HasPrefix(b.CallID, "call_"); made {
			a.CallID, b.CallID = "", ""
		}
		if a != b {
			t.Fatalf("event %d: with the shortcut %+v, without %+v", i, a, b)
		}
	}
}

func decode(t *testing.T, in []byte, make func(emitter) answer) (out []Event, err error) {
	stops, ends := 0, map[int]int{}
	a := make(emitter{emit: func(e Event) error {
		out = append(out, e)
		if stops > 0 {
			t.Fatal("an event after the stop")
		}
		switch e.Type {
		case EventStop:
			stops++
			if e.Stop == "" {
				t.Fatal("no reason")
			}
		case EventToolEnd:
			if ends[e.Index]++; ends[e.Index] > 1 || e.CallID == "" || e.Text == "" {
				t.Fatalf("call ended: %+v", e)
			}
		}
		return nil
	}})
	s := newSSEReader(strings.NewReader(string(in)))
	for {
		data, _, err := s.next()
		if err != nil {
			break
		}
		p, err := a.event(data)
		if err != nil {
			return out, err
		}
		if p == done {
			break
		}
	}
	if err = a.end(); err == nil && stops != 1 {
		t.Fatalf("%d stops", stops)
	}
	return out, err
}
