package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
)

type sample struct {
	FilePath string       `json:"filePath" jsonschema:"the file"`
	Limit    int          `json:"limit,omitempty" minimum:"1" maximum:"5000" default:"2000"`
	Ratio    float64      `json:"ratio,omitempty"`
	All      bool         `json:"replaceAll,omitempty"`
	Format   string       `json:"format,omitempty" enum:"text,markdown"`
	Edits    []sampleEdit `json:"edits,omitempty" maxItems:"2"`
	Ignore   []string     `json:"ignore,omitempty"`
	Custom   *bool        `json:"custom,omitempty"`
}

type sampleEdit struct {
	Old string `json:"oldString"`
	New string `json:"newString"`
}

func sampleTool(seen *string) Tool {
	return New("sample", "Words.", func(_ context.Context, p sample, _ *Call) (Result, error) {
		raw, _ := json.Marshal(p)
		*seen = string(raw)
		return Result{Output: "ok"}, nil
	})
}

func TestSchemaIsPlain(t *testing.T) {
	var seen string
	want := `{"type":"object","properties":{` +
		`"filePath":{"type":"string","description":"the file"},` +
		`"limit":{"type":"integer","default":2000,"minimum":1,"maximum":5000},` +
		`"ratio":{"type":"number"},"replaceAll":{"type":"boolean"},` +
		`"format":{"type":"string","enum":["text","markdown"]},` +
		`"edits":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"oldString":{"type":"string"},"newString":{"type":"string"}},"required":["oldString","newString"]}},` +
		`"ignore":{"type":"array","items":{"type":"string"}},"custom":{"type":"boolean"}},"required":["filePath"]}`
	got := sampleTool(&seen).Parameters
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
		t.Fatal("not JSON:", string(got))
	}
	if x, y := show2(a), show2(b); x != y {
		t.Errorf("got  %s\nwant %s", x, y)
	}
	if i, j := strings.Index(string(got), `"filePath"`), strings.Index(string(got), `"limit"`); i > j {
		t.Errorf("properties are not in the struct's order: %s", got)
	}
	if e := New("none", "", func(context.Context, struct{}, *Call) (Result, error) { return Result{}, nil }); string(e.Parameters) != `{"type":"object","properties":{}}` {
		t.Errorf("no parameters: %s", e.Parameters)
	}
}

func show2(v any) string { raw, _ := json.Marshal(v); return string(raw) }

func TestDecode(t *testing.T) {
	for _, c := range []struct{ name, in, want, fails string }{
		{"plain", `{"filePath":"a"}`, `{"filePath":"a","limit":2000}`, ""},
		{"numbers and booleans as strings", `{"filePath":"a","limit":"5","ratio":" 0.5","replaceAll":"True"}`, `{"filePath":"a","limit":5,"ratio":0.5,"replaceAll":true}`, ""},
		{"10.0 is an integer, also in quotes", `{"filePath":"a","limit":"10.0","edits":null}`, `{"filePath":"a","limit":10}`, ""},
		{"an exponent is an integer", `{"filePath":"a","limit":1e3}`, `{"filePath":"a","limit":1000}`, ""},
		{"null is absent, so the default counts", `{"filePath":"a","limit":null,"format":null,"custom":null}`, `{"filePath":"a","limit":2000}`, ""},
		{"unknown keys are ignored", `{"filePath":"a","limit":1,"why":"because","FILEPATH2":1}`, `{"filePath":"a","limit":1}`, ""},
		{"snake case is understood", `{"file_path":"a","limit":1,"replace_all":"false"}`, `{"filePath":"a","limit":1}`, ""},
		{"another case does not smuggle a second value", `{"filePath":"a","FilePath":"b","limit":1}`, `{"filePath":"a","limit":1}`, ""},
		{"object in a string", `"{\"filePath\":\"a\",\"limit\":1}"`, `{"filePath":"a","limit":1}`, ""},
		{"array in a string", `{"filePath":"a","limit":1,"ignore":"[\"x\"]"}`, `{"filePath":"a","limit":1,"ignore":["x"]}`, ""},
		{"false for *bool stays", `{"filePath":"a","limit":1,"custom":"false"}`, `{"filePath":"a","limit":1,"custom":false}`, ""},
		{"enum in another case", `{"filePath":"a","limit":1,"format":"Markdown"}`, `{"filePath":"a","limit":1,"format":"markdown"}`, ""},
		{"< and > survive", `{"filePath":"<a>&","limit":1}`, `{"filePath":"\u003ca\u003e\u0026","limit":1}`, ""},

		{"nothing at all", ``, "", `Missing key at ["filePath"]`},
		{"missing, with what was given instead", `{"path":"a"}`, "", `Missing key (unknown key "path" was ignored) at ["filePath"]`},
		{"null for a required field", `{"filePath":null}`, "", `Expected string, got null at ["filePath"]`},
		{"a number is no string", `{"filePath":5}`, "", `Expected string, got 5 at ["filePath"]`},
		{"every bad field", `{"filePath":5,"limit":0,"replaceAll":"maybe","format":"pdf","edits":[{"oldString":"a"}]}`, "",
			`Missing key at ["edits"][0]["newString"]; Expected string, got 5 at ["filePath"]; Expected "text" | "markdown", got "pdf" at ["format"]; Expected a value greater than or equal to 1, got 0 at ["limit"]; Expected boolean, got "maybe" at ["replaceAll"]`},
		{"half a number", `{"filePath":"a","limit":1.5}`, "", `Expected integer, got 1.5 at ["limit"]`},
		{"hexadecimal, infinity and the like are no numbers", `{"filePath":"a","limit":"0x10","ratio":"Inf"}`, "", `Expected integer, got "0x10" at ["limit"]; Expected number, got "Inf" at ["ratio"]`},
		{"too large for int", `{"filePath":"a","limit":"1e30"}`, "", `Expected a value less than or equal to 5000, got 1e30 at ["limit"]`},
		{"too many items", `{"filePath":"a","edits":[{"oldString":"","newString":""},{"oldString":"","newString":""},{"oldString":"","newString":""}]}`, "", `Expected at most 2 items, got 3 at ["edits"]`},
		{"an array is no input", `[1]`, "", `Expected object, got [1]`},
		{"cut off", `{"filePath": "a`, "", `the input is not valid JSON at line 1, column 16 (near "{\"filePath\": \"a"): it ends too early; it may have been cut off, so send it whole or as several smaller calls`},
		{"cut off, held as a string", `"{\"filePath\": "`, "", `the input is not valid JSON at line 1, column 13 (near "{\"filePath\":"): it ends too early; it may have been cut off, so send it whole or as several smaller calls`},
		{"wrong in the second line", "{\"filePath\":\n 'a'}", "", `the input is not valid JSON at line 2, column 2 (near "{\"filePath\":\n 'a'}"): invalid character '\'' looking for beginning of value`},
		{"two objects", `{"filePath":"a"} {}`, "", `the input is not valid JSON at line 1, column 17 (near "{\"filePath\":\"a\"} {}"): there is text after the end of the object`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen string
			_, err := Invoke(t.Context(), sampleTool(&seen), json.RawMessage(c.in), &Call{}, CapOptions{})
			if c.fails == "" {
				if err != nil || seen != c.want {
					t.Fatalf("got %s, %v; want %s", seen, err, c.want)
				}
				return
			}
			want := "The sample tool was called with invalid arguments: " + c.fails + ".\nPlease rewrite the input so it satisfies the expected schema."
			var e *Error
			var in *InvalidInput
			if !errors.As(err, &e) || e.Kind != "invalid" || !errors.As(err, &in) {
				t.Fatalf("got %v (%s)", err, seen)
			}
			if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}

func TestDecodeForeignSchemas(t *testing.T) {
	schema := `{"type":"object","required":["id"],"$defs":{"n":{"type":"integer"}},"properties":{
		"id":{"$ref":"#/$defs/n"},
		"either":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
		"maybe":{"type":["string","null"]},
		"closed":{"type":"object","properties":{"a":{"type":"boolean"}},"additionalProperties":false},
		"map":{"type":"object","additionalProperties":{"type":"number"}},
		"kind":{"const":"x"},"level":{"enum":[1,2]}}}`
	tool := Tool{ID: "mcp_x", Parameters: json.RawMessage(schema)}
	for _, c := range []struct{ name, in, want, fails string }{
		{"unknown keys go through", `{"id":"7","extra":1}`, `{"extra":1,"id":7}`, ""},
		{"anyOf takes what fits", `{"id":1,"either":["a"]}`, `{"either":["a"],"id":1}`, ""},
		{"anyOf prefers a string over what it holds", `{"id":1,"either":"[\"a\"]"}`, `{"either":"[\"a\"]","id":1}`, ""},
		{"null where it is a value", `{"id":1,"maybe":null}`, `{"id":1,"maybe":null}`, ""},
		{"closed objects lose unknown keys", `{"id":1,"closed":{"a":"true","b":1}}`, `{"closed":{"a":true},"id":1}`, ""},
		{"map values", `{"id":1,"map":{"k":"2.5"}}`, `{"id":1,"map":{"k":2.5}}`, ""},
		{"enum of numbers", `{"id":1,"level":2}`, `{"id":1,"level":2}`, ""},
		{"large numbers keep their digits", `{"id":12345678901234567890}`, `{"id":12345678901234567890}`, ""},
		{"anyOf fails", `{"id":1,"either":5}`, "", `Expected string | array, got 5 at ["either"]`},
		{"anyOf fails inside", `{"id":1,"either":[5]}`, "", `Expected string, got 5 at ["either"][0]`},
		{"const", `{"id":1,"kind":"y"}`, "", `Expected "x", got "y" at ["kind"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Decode(tool, json.RawMessage(c.in))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("got %s, %v; want %s", got, err, c.fails)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
	for _, broken := range []string{`{"type":`, `[]`, `{"$ref":"#"}`, `{"properties":{"a":{"$ref":"https://elsewhere/x"}}}`, ``} {
		got, err := Decode(Tool{ID: "x", Parameters: json.RawMessage(broken)}, json.RawMessage(`{"a":1}`))
		if err != nil || string(got) != `{"a":1}` {
			t.Errorf("schema %q: %s, %v", broken, got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"filePath":"a","limit":"5"}`, `"{\"filePath\":1}"`, `{"edits":[{}]}`, `{"filePath":"\ud800","limit":1e400}`, ``, `[`, `{"filePath":"a","FilePath":"b"}`} {
		f.Add([]byte(s))
	}
	var seen string
	tool := sampleTool(&seen)
	foreign := Tool{ID: "x", Parameters: tool.Parameters}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := Decode(foreign, raw); err == nil && !json.Valid(got) {
			t.Fatalf("foreign: not JSON: %q", got)
		}
		got, err := Decode(tool, raw)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Kind != "invalid" || !strings.HasPrefix(e.Message, "The sample tool") {
				t.Fatalf("error without kind: %v", err)
			}
			return
		}
		var p sample
		if err := json.Unmarshal(got, &p); err != nil {
			t.Fatalf("%q passed as %q but does not fit: %v", raw, got, err)
		}
		if p.Limit < 1 || p.Limit > 5000 || p.Format != "" && p.Format != "text" && p.Format != "markdown" {
			t.Fatalf("%q passed with %+v", raw, p)
		}
		if again, err := Decode(tool, got); err != nil || string(again) != string(got) {
			t.Fatalf("not stable: %q then %q, %v", got, again, err)
		}
	})
}

func BenchmarkTwentyTools(b *testing.B) {
	var seen string
	for b.Loop() {
		for range 20 {
			sampleTool(&seen)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	var seen string
	tool := sampleTool(&seen)
	for b.Loop() {
		if _, err := Decode(tool, json.RawMessage(`{"filePath":"a/b/c.go","limit":"50"}`)); err != nil {
			b.Fatal(err)
		}
	}
}

// A long input in which nothing has to be changed is passed on as it is, without a copy; whatever is changed in it counts.
func TestALongInputIsNotEncodedAgain(t *testing.T) {
	tool := New("write", "Writes.", func(context.Context, struct {
		Path    string `json:"path"`
		Content string `json:"content"`
		Times   int    `json:"times,omitempty"`
	}, *Call) (Result, error) {
		return Result{}, nil
	})
	text := strings.Repeat("x<y ", longInput/4)
	for name, c := range map[string]struct {
		raw  string
		same bool
	}{
		"as it is":          {`{"path": "a", "content": "` + text + `"}`, true},
		"in a string":       {strconv.Quote(`{"path": "a", "content": "` + text + `"}`), false},
		"a number as text":  {`{"path": "a", "times": "3", "content": "` + text + `"}`, false},
		"an unknown key":    {`{"path": "a", "more": 3, "content": "` + text + `"}`, false},
		"another spelling":  {`{"Path": "a", "content": "` + text + `"}`, false},
		"null for optional": {`{"path": "a", "times": null, "content": "` + text + `"}`, false},
	} {
		got, err := Decode(tool, json.RawMessage(c.raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var p map[string]any
		if err := json.Unmarshal(got, &p); err != nil || p["path"] != "a" || p["more"] != nil || len(p["content"].(string)) < longInput/2 {
			t.Errorf("%s: %v %.80s", name, err, got)
		}
		if v, ok := p["times"]; ok && v != 3.0 {
			t.Errorf("%s: times is %v", name, v)
		}
		if same := &got[0] == &json.RawMessage(c.raw)[0] || string(got) == c.raw; same != c.same {
			t.Errorf("%s: passed on as it is: %v", name, same)
		}
	}
}
