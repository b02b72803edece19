package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// builders make the body of a request, by kind.
func builders() map[Kind]func(*Request) []byte {
	a := &anthropicProvider{base: base{cfg: Config{Kind: KindAnthropic}}}
	c := &chatProvider{base: base{cfg: Config{Kind: KindCompatible}}}
	r := &responsesProvider{base: base{cfg: Config{Kind: KindResponses}}}
	g := &geminiProvider{base: base{cfg: Config{Kind: KindGemini}}}
	return map[Kind]func(*Request) []byte{
		KindAnthropic:  func(req *Request) []byte { return a.body(req, nil) },
		KindCompatible: func(req *Request) []byte { b, _ := c.body(req, nil); return bytes.Join(b, nil) },
		KindResponses:  func(req *Request) []byte { b, _ := r.body(req, nil); return b },
		KindGemini:     func(req *Request) []byte { b, _ := g.body(req, nil); return b },
	}
}

// longHistory has n messages of about 2 KB.
func longHistory(n int) []Message {
	out := make([]Message, 0, n+8)
	text := strings.Repeat("func main() {\n\tfmt.Println(\"hello, world\") // größer\n}\n", 35)
	for i := 0; len(out) < n; i++ {
		out = append(out, Message{ID: fmt.Sprint("u", i), Role: RoleUser, Parts: []Part{{Type: PartText, Text: "do it"}}})
		out = append(out, step(i, text)...)
	}
	return out[:n]
}

func step(i int, text string) []Message {
	id := fmt.Sprint("call_", i)
	return []Message{
		{ID: fmt.Sprint("a", i), Role: RoleAssistant, Model: "p/m", Parts: []Part{{Type: PartText, Text: "reading"}, {Type: PartToolCall, CallID: id, Name: "read", Input: json.RawMessage(`{"filePath":"a.go"}`)}}},
		{ID: fmt.Sprint("t", i), Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: id, Name: "read", Text: text}}},
	}
}

func request(messages []Message) *Request {
	return &Request{Model: Model{Provider: "p", ID: "claude-haiku-4-5", Output: 8000}, SessionID: "s", System: []string{"be good"}, Messages: messages,
		Tools: []ToolSpec{{Name: "read", Description: "reads", Parameters: json.RawMessage(`{"type":"object","properties":{"filePath":{"type":"string"}}}`)}}}
}

func TestACachedBodyEqualsAFreshOneWhateverHappenedToTheHistory(t *testing.T) {
	cached := builders()
	h := longHistory(21)
	histories := map[string][]Message{
		"first":     h[:10],
		"grown":     h[:15],
		"same":      h[:15],
		"reverted":  h[:4],
		"grown on":  h,
		"compacted": append([]Message{{ID: "sum", Role: RoleUser, Parts: []Part{{Type: PartText, Text: "summary"}}}}, h[17:]...),
	}
	pruned := append([]Message(nil), h...)
	pruned[2] = Message{ID: pruned[2].ID, Role: RoleTool, Parts: []Part{{Type: PartToolResult, CallID: "call_0", Name: "read", Text: "[cleared]"}}}
	histories["pruned under the same ids"] = pruned
	for _, name := range []string{"first", "grown", "same", "reverted", "grown on", "pruned under the same ids", "compacted", "grown on", "first"} {
		for kind, build := range builders() {
			want := build(request(histories[name]))
			if got := cached[kind](request(histories[name])); !bytes.Equal(got, want) {
				t.Errorf("%s, %s:\n got %.300s\nwant %.300s", kind, name, got, want)
			}
			if !json.Valid(want) {
				t.Errorf("%s, %s: not JSON", kind, name)
			}
		}
	}
}

func TestOnlyNewMessagesAreEncoded(t *testing.T) {
	var conv conversation
	h := longHistory(30)
	count := 0
	enc := func(int, *Message, *entry) { count++ }
	conv.encode(h[:20], enc)
	conv.encode(h[:22], enc)
	copied := append([]Message(nil), h[:22]...) // another slice of the same messages
	conv.encode(copied, enc)
	if count != 22 {
		t.Errorf("%d messages encoded", count)
	}
}

func TestTheCacheForgetsWhatIsNotUsed(t *testing.T) {
	var c cache
	for i := range 40 {
		conv := c.acquire(fmt.Sprint("s", i), "m")
		conv.encode(longHistory(2), func(_ int, _ *Message, e *entry) { e.enc = make([]byte, 2<<20) })
		c.release(conv)
	}
	total := 0
	for _, conv := range c.convs {
		total += conv.size
	}
	if total > maxCached+8<<20 || len(c.convs) < 2 {
		t.Errorf("%d conversations hold %d bytes", len(c.convs), total)
	}
	if c.convs["s39\x00m"] == nil || c.convs["s0\x00m"] != nil {
		t.Error("not the least recently used went")
	}
}

// BenchmarkStep500 is what a step costs with 500 messages: two new ones encoded, the body put together.
func BenchmarkStep500(b *testing.B) {
	for kind, build := range builders() {
		b.Run(string(kind), func(b *testing.B) {
			h := longHistory(500)
			text := strings.Repeat("x := 1 // \"new\"\n", 130)
			build(request(h))
			var size int
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				size = len(build(request(append(h[:500:500], step(1000+i, text)...))))
			}
			b.SetBytes(int64(size))
		})
	}
}

func BenchmarkFirstStep500(b *testing.B) {
	h := longHistory(500)
	for b.Loop() {
		builders()[KindAnthropic](request(h))
	}
}

func TestAnEndedSessionIsForgotten(t *testing.T) {
	var c cache
	for _, key := range [][2]string{{"s1", "m"}, {"s1", "n"}, {"s1-title", "m"}, {"s10", "m"}} {
		c.release(c.acquire(key[0], key[1]))
	}
	c.forget("s1")
	if len(c.convs) != 1 || c.convs["s10\x00m"] == nil {
		t.Errorf("%d conversations are kept", len(c.convs))
	}
}

// Twenty sessions that offer the same tools encode them once; other tools are other bytes.
func TestConversationsShareTheirTools(t *testing.T) {
	c := &cache{}
	made := 0
	body := func(session, tool string) string {
		conv := c.acquire(session, "m")
		defer c.release(conv)
		return string(conv.encodeTools([]ToolSpec{{Name: tool, Parameters: json.RawMessage(`{}`)}}, func() []byte { made++; return []byte(tool) }))
	}
	for i := range 20 {
		for _, tool := range []string{"read", "edit"} {
			if got := body(fmt.Sprint("s", i), tool); got != tool {
				t.Fatalf("session %d got %q for %q", i, got, tool)
			}
		}
	}
	if made != 2 {
		t.Errorf("two lists of tools were encoded %d times", made)
	}
	for i := range 50 {
		if name := fmt.Sprint("t", i); body("s0", name) != name {
			t.Fatal("wrong bytes for ", name)
		}
	}
	if len(c.tools) > 4 {
		t.Errorf("%d lists are kept", len(c.tools))
	}
}
