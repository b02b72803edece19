package textutil

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func FuzzTree(f *testing.F) {
	for _, s := range []string{
		`{"a": [1, -2.5e+3, true, false, null, {}, [], ""], "a": "again", "b":{"c":"d"}}`, " \t\r\n7 ", `"\u00e9\ud83d\ude00\ud83d\ud83dx\ude00\u0000\"\\\/\b\f\n\r\t"`,
		"\"\xff\xe9\xc3\x28é日𝄞\"", `["\ud800\u0041", "\ud800", "\ud800\\u0041", "\udc00\ud800"]`, `{"":{"":[[[]]]}}`, `"` + strings.Repeat("x\\n", 1000) + `"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			return
		}
		if got := Tree(data); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q:\n%#v, encoding/json says\n%#v", data, got, want)
		}
	})
}

func TestText(t *testing.T) {
	for _, quoted := range []string{`""`, `"a"`, `"a\n\"b\u00e9\ud83d\ude00é日𝄞\ud83d\ud83dx\\\u0000"`, "\"\xff\xe9é\"", `null`, `[1]`, `"`} {
		var want string
		_ = json.Unmarshal([]byte(quoted), &want)
		if got := Text([]byte(quoted)); got != want {
			t.Errorf("%.40q is %.40q", quoted, got)
		}
	}
}

// Raw shares the message: this is why it exists.
func TestRawIsNotACopy(t *testing.T) {
	message := []byte(`{"a": {"b": "text"}}`)
	var v struct{ A struct{ B Raw } }
	if err := json.Unmarshal(message, &v); err != nil || string(v.A.B) != `"text"` {
		t.Fatal(err, string(v.A.B))
	}
	if message[13] = 'T'; string(v.A.B) != `"Text"` {
		t.Error("it is a copy")
	}
}

// A long text is quoted into a buffer of its size, not into one that grows.
func TestAppendJSONOfALongText(t *testing.T) {
	text := strings.Repeat("a\n\"<é\u2028\x01\xff", 100_000)
	want := AppendJSON(nil, text[:longQuote-10])
	if got := AppendJSON(nil, text); !bytes.HasPrefix(got, want[:len(want)-10]) || cap(got) > len(got)+len(got)/50 {
		t.Errorf("%d bytes in a buffer of %d", len(got), cap(got))
	}
	if n := testing.AllocsPerRun(3, func() { AppendJSON([]byte(`{"text":`), text) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
