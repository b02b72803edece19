package textutil

import (
	"encoding/json"
	"fmt"
	"testing"
	"unicode/utf8"
)

func ExamplePlural() {
	fmt.Println(Plural(1, "file"), "and", Plural(3, "hunk"))
	// Output: 1 file and 3 hunks
}

func ExampleFirstLine() {
	fmt.Println(FirstLine("\n\n  undefined: x\n\tsee main.go:3\n"))
	// Output: undefined: x
}

func ExampleShorten() {
	fmt.Println(Shorten("größer", 6), Shorten("größer", 4))
	// Output: größer grö…
}

func ExampleAppendJSON() {
	fmt.Printf("%s\n", AppendJSON([]byte(`{"text":`), "a <b> \"c\"\n\xff"))
	// Output: {"text":"a <b> \"c\"\n\ufffd"
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("a\x00\"\\\n\u2028\xff\xed\xa0\x80é\U0001f600")
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendJSON(nil, s)
		if bytes := AppendJSON(nil, []byte(s)); string(bytes) != string(b) {
			t.Fatalf("%q as bytes, %q as a string", bytes, b)
		}
		var back string
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		if utf8.ValidString(s) && back != s {
			t.Fatalf("%q came back as %q", s, back)
		}
		want, _ := json.Marshal(s)
		var w string
		_ = json.Unmarshal(want, &w)
		if back != w {
			t.Fatalf("%q: %q, encoding/json says %q", s, back, w)
		}
	})
}
