package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Long texts are encoded as json.Marshal does, whatever is in them and wherever they are.
func TestEncodeLong(t *testing.T) {
	long := func(s string) string { return strings.Repeat(s, longText/len(s)+quoteStep/3) }
	type inner struct {
		Text  string `json:"text,omitempty"`
		Other *inner `json:"other,omitempty"`
		Raw   json.RawMessage
		At    time.Time
		Bytes []byte
		own   string
	}
	for name, v := range map[string]any{
		"text":              NoticeData{Text: long("x\n")},
		"to be quoted":      NoticeData{Text: long("\"<&>\u2028\x01\\é日𝄞")},
		"not UTF-8":         NoticeData{Text: long("\xff日\xe6")},
		"in a map":          map[string]any{"b": long("b"), "a": []string{"short", long("a")}, "c": 1.5},
		"in structs":        inner{Text: "x", Other: &inner{Text: long("y"), Raw: json.RawMessage(`{"z":1}`), At: time.Unix(1, 0).UTC(), Bytes: []byte("b"), own: "o"}},
		"beside the like":   []string{long("z"), "\x00long text 7\x00"},
		"a mark in another": []string{long("z"), "\x00long text 0\x00"},
	} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(v); string(got) != string(want) {
			t.Errorf("%s: %.100q …, want %.100q …", name, got, want)
		}
		if _, ok := encodeLong(v); !ok && !strings.Contains(name, "like") && !strings.Contains(name, "mark") {
			t.Errorf("%s was encoded the usual way", name)
		}
	}
	raw := json.RawMessage(`{ "content": "` + long("<x>") + `", "n": 1.50}`) // as a model wrote it
	got := encode(ToolData{CallID: "c", Input: raw, Output: long("o")})
	var back ToolData
	if err := json.Unmarshal(got, &back); err != nil || string(back.Input) != string(raw) || len(back.Output) < longText || len(got) > len(raw)+len(back.Output)+1000 {
		t.Errorf("a long input: %v, %.100q", err, back.Input)
	}
	if _, ok := encodeLong(ToolData{Input: json.RawMessage("{" + long("x"))}); ok {
		t.Error("took what is not JSON for JSON")
	}
	if !hasLong(reflect.ValueOf(ToolData{Input: raw})) || hasLong(reflect.ValueOf(ToolData{Input: raw[:100], Metadata: map[string]any{"n": []int{1}, "x": nil}})) {
		t.Error("hasLong")
	}
	if _, ok := encodeLong(NoticeData{Text: "short"}); ok {
		t.Error("a short text was taken apart")
	}
}
