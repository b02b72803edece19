package provider

import "testing"

func TestTheShortcutIsTakenAndExact(t *testing.T) {
	var got []string
	a := &chatAnswer{out: emitter{emit: func(e Event) error { got = append(got, e.Text); return nil }}}
	chunk := func(s string) []byte {
		return []byte(`{"id":"x","choices":[{"index":0,"delta":{"content":` + s + `},"finish_reason":null}]}`)
	}
	if _, err := a.event(chunk(`"first"`)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		raw, want string
		fits      bool
	}{
		{`"plain"`, "plain", true}, {`"gr\u00fc\u00df\n\\\"x\""`, "grüß\n\\\"x\"", true}, {`"größer"`, "größer", true}, {"\"bad\xff\"", "bad\ufffd", true},
		{`"a","x":"b"`, "", false}, {`"a\"`, "", false}, {"\"a\nb\"", "", false}, {`null`, "", false}, {`"\q"`, "", false},
	} {
		got = nil
		ok, err := a.like.try(chunk(tt.raw))
		if ok != tt.fits || err != nil || tt.fits && (len(got) != 1 || got[0] != tt.want) {
			t.Errorf("%s: %v %q %v", tt.raw, ok, got, err)
		}
	}
	if _, err := a.event([]byte(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)); err != nil {
		t.Fatal(err)
	}
	if a.like.apply != nil {
		t.Error("the template outlives an event of another shape")
	}
}

func TestTheShortcutTakesARunningNumberOnEitherSide(t *testing.T) {
	for _, tt := range []struct{ first, second, third string }{
		{`{"sequence_number":9,"type":"response.output_text.delta","delta":"abc"}`, `{"sequence_number":10,"type":"response.output_text.delta","delta":"d\te"}`, `{"sequence_number":x,"type":"response.output_text.delta","delta":"d"}`},
		{`{"type":"response.output_text.delta","delta":"abc","sequence_number":9,"z":[]}`, `{"type":"response.output_text.delta","delta":"d\te","sequence_number":10,"z":[]}`, `{"type":"response.output_text.delta","delta":"d","sequence_number":10,"z":[1]}`},
	} {
		got := ""
		a := &responsesAnswer{out: emitter{emit: func(e Event) error { got += e.Text; return nil }}}
		if _, err := a.event([]byte(tt.first)); err != nil {
			t.Fatal(err)
		}
		if ok, err := a.like.try([]byte(tt.second)); !ok || err != nil || got != "abcd\te" {
			t.Errorf("%s: %v %v %q", tt.second, ok, err, got)
		}
		if ok, _ := a.like.try([]byte(tt.third)); ok {
			t.Errorf("%s fits", tt.third)
		}
	}
}
