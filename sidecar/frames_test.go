package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a client sends, the answer is valid UTF-8 JSON with the request's own id.
func TestAnswersAreTextWithTheRequestsOwnID(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	r.start("")
	for _, c := range []struct{ send, id string }{
		{`{"jsonrpc":"2.0","id":"u","method":"no/such` + "\xff\xfe" + `method","params":{}}`, `"u"`},
		{`{"jsonrpc":"2.0","id":"l","method":"` + strings.Repeat("ü", 4000) + `","params":{}}`, `"l"`},
		{`{"jsonrpc":"2.0","id":92233720368547758070,"method":"session/list","params":{}}`, `92233720368547758070`},
		{`{"jsonrpc":"2.0","id":-92233720368547758099,"method":"session/list","params":{}}`, `-92233720368547758099`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"session/list","params":{}}`, `1.5`},
	} {
		if _, err := r.ed.conn.Write([]byte(c.send + "\n")); err != nil {
			t.Fatal(err)
		}
		for {
			m, line := r.ed.receive()
			if m["method"] != nil {
				continue
			}
			var answer struct{ ID, Error json.RawMessage }
			if !utf8.ValidString(line) || json.Unmarshal([]byte(line), &answer) != nil || string(answer.ID) != c.id || len(answer.Error) == 0 || len(line) > 1000 {
				t.Errorf("answered %q with %q", c.send, line)
			}
			break
		}
	}
}
