package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/big"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
)

// sink keeps what a peer writes.
type sink struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) Close() error { return nil }

// sameID compares two ids as JSON-RPC does: strings by their characters, numbers by their value.
func sameID(a, b json.RawMessage) bool {
	var x, y string
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && a[0] == '"' && b[0] == '"' {
		return x == y
	}
	m, ok := new(big.Rat).SetString(string(a))
	n, ok2 := new(big.Rat).SetString(string(b))
	if ok && ok2 {
		return m.Cmp(n) == 0
	}
	return string(a) == string(b)
}

// A request with an id is answered with that id, once, in valid UTF-8 JSON, whatever its method, parameters and id hold,
// and whatever the handler says.
func FuzzAnswers(f *testing.F) {
	for _, c := range []struct{ id, method, params, said string }{
		{`1`, "initialize", `{}`, ""}, {`9223372036854775808`, "m", `[]`, ""}, {`-9223372036854775809`, "m", ``, ""}, {`1.5`, "m", `null`, ""},
		{`1e2`, "m", `{}`, ""}, {`1e400`, "m", `{}`, ""}, {`"a"`, "m\xff\xfe", `{"x":"\xff"}`, "\xff"}, {`"\ud800"`, `\ud800`, `5`, ""},
		{`"` + "\xff" + `"`, "m", `{}`, ""}, {`"\u0000\""`, "\u2028", `"x"`, "\u2028"}, {`0.0`, strings.Repeat("€", 200), `{}`, "panic"}, {`-0`, "m", `{}`, ""},
		{`18446744073709551616.0`, "m", `{}`, ""}, {`9007199254740993.0`, "m", `{}`, ""},
	} {
		f.Add(c.id, c.method, c.params, c.said)
	}
	f.Fuzz(func(t *testing.T, id, method, params, said string) {
		line := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"`
		if params != "" {
			line += `,"params":` + params
		}
		line += "}"
		isID := json.Valid([]byte(id)) && strings.Trim(id, " \t\r\n") == id && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
		if len(line) > 1<<12 || !isID || strings.ContainsAny(line, "\r\n") || !json.Valid([]byte(line)) || strings.Count(line, `"method"`) != 1 {
			return // not one request with an id
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &fields) != nil || len(fields) > 4 || string(fields["id"]) != id {
			return // its method or parameters hold further members
		}
		var out sink
		peer := rpc.NewPeer(rpc.NewLineStream(strings.NewReader(line+"\n"), &out, rpc.StreamOptions{}), rpc.PeerOptions{
			Handler: func(_ context.Context, r *rpc.Request) (any, error) {
				switch said {
				case "":
					return nil, rpc.MethodNotFound(r.Method)
				case "panic":
					panic(r.Method)
				}
				return nil, rpc.InvalidParams("%s: %s", said, r.Params)
			},
		})
		<-peer.Done()
		_ = peer.Close()
		out.mu.Lock()
		defer out.mu.Unlock()
		answer := bytes.TrimSuffix(out.b.Bytes(), []byte("\n"))
		var got map[string]json.RawMessage
		if !utf8.Valid(answer) || bytes.ContainsAny(answer, "\n") || json.Unmarshal(answer, &got) != nil {
			t.Fatalf("%q is answered with %q", line, answer)
		}
		// An id that is not valid UTF-8 itself can only be given back as closely as JSON allows.
		want := json.RawMessage(strings.ToValidUTF8(id, "\ufffd"))
		if method != "$/cancel_request" && method != "$/cancelRequest" && !sameID(got["id"], want) {
			t.Fatalf("the id %s is answered as %s", id, got["id"])
		}
		if (got["result"] == nil) == (got["error"] == nil) {
			t.Fatalf("%q is answered with %q", line, answer)
		}
	})
}
