package protocol

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/textutil"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	out, err := exec.Command("go", "run", "./gen", "-check").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestDecodeSaysWhere(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"wrong type deep inside": {`{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"text","text":1}]}`, "prompt[1].text: want a string, got a number"},
		"missing member":         {`{"prompt":[]}`, "sessionId: is missing"},
		"missing text":           {`{"sessionId":"s","prompt":[{"type":"text"}]}`, "prompt[0].text: is missing"},
		"unknown variant":        {`{"sessionId":"s","prompt":[{"type":"video"}]}`, `prompt[0].type: unknown value "video"`},
		"no tag":                 {`{"sessionId":"s","prompt":[{"text":"x"}]}`, "prompt[0].type: is missing"},
		"tag of another type":    {`{"sessionId":"s","prompt":[{"type":7}]}`, "prompt[0].type: want a string, got a number"},
		"array for object":       {`[1]`, "want an object, got an array"},
		"null":                   {`null`, "want an object, got null"},
		"object for array":       {`{"sessionId":"s","prompt":{}}`, "prompt: want an array, got an object"},
		"names match exactly":    {`{"SessionId":"s","prompt":[]}`, "sessionId: is missing"},
		"two values":             {`{} {}`, "more than one JSON value"},
	} {
		t.Run(name, func(t *testing.T) {
			var p PromptRequest
			err := Decode([]byte(c.in), &p)
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestDecodeForgivesWhatTheSchemaForgives(t *testing.T) {
	var p InitializeRequest
	err := Decode([]byte(`{"protocolVersion":1.0,"clientCapabilities":{"fs":"yes","terminal":true,"_meta":3},"clientInfo":null,"extra":[]}`), &p)
	if err != nil {
		t.Fatal(err)
	}
	if p.ProtocolVersion != 1 || p.ClientCapabilities == nil || !p.ClientCapabilities.Terminal || p.ClientCapabilities.Fs != nil {
		t.Errorf("got %+v", p)
	}
}

func TestUnionsSurviveARoundTrip(t *testing.T) {
	for _, in := range []string{
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a<b\u0000"}}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","kind":"edit","content":[{"type":"diff","path":"/a","oldText":"","newText":"x"},{"type":"terminal","terminalId":"9"}]}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"c","priority":"high","status":"pending"}]}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","name":"M","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"user_message_chunk","content":{"type":"resource","resource":{"uri":"file:///a","text":""}}}}`,
	} {
		var n SessionNotification
		if err := Decode([]byte(in), &n); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		b, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var a, c any
		if err := json.Unmarshal([]byte(in), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(c)
		if string(x) != string(y) {
			t.Errorf("got  %s\nwant %s", y, x)
		}
	}
}

// What is written by hand for speed is what encoding/json reads and would have written.
func TestTextIsQuotedAsJSONQuotesIt(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c\n\t\r\x00\x1f", "<>&", "😀 ü \u2028", "bad \xff utf-8 \xe2\x82"} {
		var back string
		if err := json.Unmarshal(textutil.AppendJSON(nil, s), &back); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back != want && strings.ToValidUTF8(s, "") == s {
			t.Errorf("got %q, want %q", back, want)
		}
	}
	for _, s := range []any{
		ContentBlock{Type: "text", Value: &TextContent{Text: "a\"b\n<&>ü"}},
		ToolCallContent{Type: "content", Value: &Content{Content: ContentBlock{Type: "text", Value: &TextContent{Text: "x\\y"}}}},
	} {
		fast, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		slow := slowly(s)
		var a, b any
		if json.Unmarshal(fast, &a) != nil || json.Unmarshal([]byte(slow), &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("got %s, want %s", fast, slow)
		}
	}
}

// slowly is a block as encoding/json writes it.
func slowly(v any) string {
	text := func(t *TextContent) string {
		b, _ := json.Marshal(t)
		return `{"type":"text",` + string(b[1:])
	}
	switch v := v.(type) {
	case ContentBlock:
		return text(v.Value.(*TextContent))
	case ToolCallContent:
		return `{"type":"content","content":` + text(v.Value.(*Content).Content.Value.(*TextContent)) + `}`
	}
	return ""
}

func TestStdioServersNeedNoType(t *testing.T) {
	var p NewSessionRequest
	if err := Decode([]byte(`{"cwd":"/","mcpServers":[{"name":"a","command":"/bin/a"},{"type":"http","name":"b","url":"u","headers":[]}]}`), &p); err != nil {
		t.Fatal(err)
	}
	if s, ok := p.MCPServers[0].Value.(*MCPServerStdio); !ok || s.Command != "/bin/a" {
		t.Errorf("got %+v", p.MCPServers[0])
	}
	if s, ok := p.MCPServers[1].Value.(*MCPServerHTTP); !ok || s.URL != "u" {
		t.Errorf("got %+v", p.MCPServers[1])
	}
	if err := Decode([]byte(`{"cwd":"/"}`), &p); err != nil {
		t.Errorf("a client that sends no mcpServers: %v", err)
	}
}

func TestEveryMethodHasATypeThatExists(t *testing.T) {
	for _, m := range Methods {
		if m.Params == "" || m.Side == "" || strings.HasSuffix(m.Params, "Response") {
			t.Errorf("%+v", m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"x","text":"y"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p PromptRequest
		if Decode(b, &p) == nil {
			if _, err := json.Marshal(p); err != nil {
				t.Error(err)
			}
		}
		var n SessionNotification
		if Decode(b, &n) == nil {
			if _, err := json.Marshal(n); err != nil {
				t.Error(err)
			}
		}
	})
}

// Types that live in tools/change are only aliases here: nothing generates their members, so they are compared.
func TestBorrowedTypesFollowTheSchema(t *testing.T) {
	b, err := os.ReadFile("gen/pillion.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Defs map[string]struct {
			Go         string `json:"x-go"`
			Required   []string
			Properties map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	borrowed := map[string]any{"Problem": Problem{}, "ChangeDiagnostics": ChangeDiagnostics{}, "HunkEffect": HunkEffect{}, "TestResult": TestResult{}, "ChangeEvidence": ChangeEvidence{}, "EvidenceCheck": EvidenceCheck{}, "EvidenceUse": EvidenceUse{}, "EvidencePlace": EvidencePlace{}, "EvidenceGroup": EvidenceGroup{}, "EvidenceClaim": EvidenceClaim{}}
	for name, def := range file.Defs {
		if def.Go == "" {
			continue
		}
		v, known := borrowed[name]
		if !known {
			t.Fatalf("%s is borrowed from tools/change; name it in this test", name)
		}
		delete(borrowed, name)
		members := map[string]bool{}
		for f := range reflect.TypeOf(v).Fields() {
			key, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key == "-" {
				continue
			}
			members[key] = true
			if _, ok := def.Properties[key]; !ok {
				t.Errorf("%s: the schema has no %s", name, key)
			}
			if required := slices.Contains(def.Required, key); required == (opts == "omitempty") {
				t.Errorf("%s.%s: required in the schema: %v; left out when empty: %v", name, key, required, !required)
			}
		}
		for key := range def.Properties {
			if !members[key] {
				t.Errorf("%s: the Go type has no %s", name, key)
			}
		}
	}
	if len(borrowed) > 0 {
		t.Errorf("not in the schema: %v", borrowed)
	}
}
