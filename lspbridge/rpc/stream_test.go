package rpc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"go.lsp.dev/jsonrpc2"
)

// readAll returns every frame a stream delivers and the error that ended it.
func readAll(s Stream) (frames []string, err error) {
	for {
		b, _, err := s.ReadFrame(context.Background())
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(b))
	}
}

func TestLineStream(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"m"}`
	long := `{"jsonrpc":"2.0","id":9,"method":"m","params":{"x":"` + strings.Repeat("x", 4096) + `"}}`
	for _, c := range []struct {
		name, in string
		frames   []string
		answers  string
	}{
		{"plain", note + "\n" + note + "\n", []string{note, note}, ""},
		{"last line without newline", note, []string{note}, ""},
		{"blank lines and CRLF", "\n \r\n" + note + "\r\n\n", []string{note}, ""},
		{"no JSON lives on", "{nope\n" + note + "\n", []string{note}, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the message is not valid JSON"}}` + "\n"},
		{"a number is no message", "5\n" + note, []string{note}, `-32600`},
		{"no method", `{"jsonrpc":"2.0","params":{}}` + "\n" + note, []string{note}, `-32600`},
		{"method of the wrong type names the id", `{"jsonrpc":"2.0","id":7,"method":4}` + "\n" + note, []string{note}, `"id":7,"error":{"code":-32600`},
		{"wrong version", `{"jsonrpc":"1.0","id":7,"method":"x"}` + "\n" + note, []string{note}, `\"jsonrpc\" must be \"2.0\"`},
		{"too long, with its id", long + "\n" + note, []string{note}, `"id":9,"error":{"code":-32600`},
		{"error null", `{"jsonrpc":"2.0","id":1,"result":5,"error":null}`, []string{`{"id":1,"jsonrpc":"2.0","result":5}`}, ""},
		{"result null beside an error", `{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}`, []string{`{"error":{"code":1,"message":"m"},"id":1,"jsonrpc":"2.0"}`}, ""},
		{"undefined result", `{"jsonrpc":"2.0","id":1}`, []string{`{"id":1,"jsonrpc":"2.0","result":null}`}, ""},
		{"error of the wrong shape ends the call", `{"jsonrpc":"2.0","id":1,"error":"boom"}`, []string{`{"error":{"code":-32603,"message":"\"boom\""},"id":1,"jsonrpc":"2.0"}`}, ""},
		{"a malformed response is never answered", `{"jsonrpc":"2.0","id":{},"result":1}` + "\n" + note, []string{note}, ""},
		{"an id that is a whole float", `{"jsonrpc":"2.0","id":1.0,"method":"m"}`, []string{`{"id":1,"jsonrpc":"2.0","method":"m"}`}, ""},
		{"a fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, nil, `"id":1.5,"error":{"code":-32600`},
		{"empty batch", `[]`, nil, `-32600`},
		{"batch of requests stays one", `[` + note + `,` + note + `]`, []string{`[` + note + `,` + note + `]`}, ""},
		{"what is no object in a batch is an invalid request", `[1,[],` + note + `]`, []string{`[{},{},` + note + `]`}, ""},
		{"responses leave a batch", `[{"jsonrpc":"2.0","id":1,"result":5},` + note + `]`, []string{`[` + note + `]`, `{"jsonrpc":"2.0","id":1,"result":5}`}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			frames, err := readAll(NewLineStream(strings.NewReader(c.in), &out, StreamOptions{MaxMessage: 2048}))
			if !errors.Is(err, io.EOF) {
				t.Fatalf("ended with %v", err)
			}
			if !slices.Equal(frames, c.frames) {
				t.Errorf("frames %q, want %q", frames, c.frames)
			}
			if got := out.String(); c.answers == "" && got != "" || !strings.Contains(got, c.answers) {
				t.Errorf("answered %q, want %q", got, c.answers)
			}
		})
	}
}

func TestLineStreamWritesOneLine(t *testing.T) {
	var out bytes.Buffer
	s := NewLineStream(strings.NewReader(""), &out, StreamOptions{})
	if _, err := s.Write(t.Context(), jsonrpc2.NewNotification("m", jsonrpc2.RawMessage("{\n\"a\": \"x\\ny\"\r\n}"))); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"jsonrpc":"2.0","method":"m","params":{ "a": "x\ny"  }}`+"\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestHeaderStream(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"m"}`
	frame := func(b string) string {
		var out bytes.Buffer
		_, _ = NewHeaderStream(nil, &out, StreamOptions{}).WriteFrame(context.Background(), []byte(b))
		return out.String()
	}
	const umlauts = `{"jsonrpc":"2.0","id":3,"result":"äöüäöü𝄞"}` // 52 bytes
	big := `{"jsonrpc":"2.0","id":3,"result":"` + strings.Repeat("x", 64<<10) + `"}`
	for _, c := range []struct {
		name, in string
		frames   []string
		err      error
	}{
		{"plain", frame(note) + frame(note), []string{note, note}, io.EOF},
		{"newlines only", "Content-Length: 30\n\n" + note, []string{note}, io.EOF},
		{"lower case and a second header", "content-length:30\r\nContent-Type: x\r\n\r\n" + note, []string{note}, io.EOF},
		{"log lines before", "starting…\n\nwarning: x\n" + frame(note), []string{note}, io.EOF},
		{"a log without newline before", "starting " + frame(note), []string{note}, io.EOF},
		{"a body that is no JSON", frame("{nope}") + frame(note), []string{note}, io.EOF},
		{"no version", frame(`{"id":1,"result":2}`), []string{`{"id":1,"jsonrpc":"2.0","result":2}`}, io.EOF},
		{"an answer too long ends its call", frame(big) + frame(note), []string{`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the peer's message of 65572 bytes exceeds the limit of 16384 bytes"}}`, note}, io.EOF},
		{"Content-Type comes first", "Content-Type: application/vscode-jsonrpc; charset=utf8\r\nContent-Length: 30\r\n\r\n" + note, []string{note}, io.EOF},
		{"a byte order mark", frame("\ufeff" + note), []string{note}, io.EOF},
		{"an id with quotes put around", frame(`{"jsonrpc":"2.0","id":"7","result":1}`), []string{`{"id":7,"jsonrpc":"2.0","result":1}`}, io.EOF},
		{"an id that never was ours", frame(`{"jsonrpc":"2.0","id":"x7","result":1}`) + frame(note), []string{`{"id":"x7","jsonrpc":"2.0","result":1}`, note}, io.EOF},
		{"a request's id stays text", frame(`{"jsonrpc":"2.0","id":"7","method":"m"}`), []string{`{"jsonrpc":"2.0","id":"7","method":"m"}`}, io.EOF},
		{"a length in characters", "Content-Length: 42\r\n\r\n" + umlauts + frame(note), []string{umlauts, note}, io.EOF},
		{"a length in characters, in the last message", frame(note) + "Content-Length: 42\r\n\r\n" + umlauts, []string{note, umlauts}, io.EOF},
		{"a length that counts too much, again and again", strings.Repeat("Content-Length: 33\r\n\r\n"+note, 3) + frame(note), []string{note, note, note, note}, io.EOF},
		{"a body cut short before the next", "Content-Length: 10\r\n\r\n" + note[:10] + frame(note) + frame(note), []string{note, note}, io.EOF},
		{"cut in the body", frame(note)[:30], nil, io.ErrUnexpectedEOF},
		{"cut in the header", "Content-Length: 30\r\n", nil, io.ErrUnexpectedEOF},
		{"never a header", strings.Repeat("all work and no play\n", 60_000), nil, ErrNotLSP},
		{"a length that lies", "Content-Length: 16000\r\n\r\n{}", nil, io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			frames, err := readAll(NewHeaderStream(strings.NewReader(c.in), &out, StreamOptions{MaxMessage: 16 << 10}))
			if !errors.Is(err, c.err) {
				t.Errorf("ended with %v, want %v", err, c.err)
			}
			if !slices.Equal(frames, c.frames) {
				t.Errorf("frames %q, want %q", frames, c.frames)
			}
		})
	}
}

// Whatever arrives, what is delivered is something Conn takes without ending the connection, and nothing panics.
func FuzzLineStream(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"result":5,"error":null}`, "[]", "[1]", `[{"id":1,"result":2}]`, `{"id":1e2}`, "\x00\n{}\n", `{"jsonrpc":"2.0","method":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzzStream(t, NewLineStream(bytes.NewReader(in), io.Discard, StreamOptions{MaxMessage: 1 << 12}))
	})
}

func FuzzHeaderStream(f *testing.F) {
	for _, s := range []string{"Content-Length: 2\r\n\r\n{}", "x\nContent-Length: 20\n\n{\"id\":1,\"result\":2}", "Content-Length: -1\r\n\r\n", "Content-Length: 99999\r\n\r\n{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		fuzzStream(t, NewHeaderStream(bytes.NewReader(in), io.Discard, StreamOptions{MaxMessage: 1 << 12}))
	})
}

func fuzzStream(t *testing.T, s Stream) {
	for {
		b, _, err := s.ReadFrame(context.Background())
		if err != nil {
			return
		}
		if b[0] == '[' {
			if _, err := jsonrpc2.ParseRequests(b); err != nil {
				t.Fatalf("batch %q would end the connection: %v", b, err)
			}
		} else if _, err := jsonrpc2.DecodeMessage(b); err != nil {
			t.Fatalf("frame %q would end the connection: %v", b, err)
		}
	}
}
