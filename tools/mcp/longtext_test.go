package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

// awkward is a text of n bytes and more in which nothing may be cut apart: escapes, characters of two to four bytes, backslashes and quotes.
func awkward(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "\n", "\\", "\\\\", `"`, "\\u0041", "é", "€", "😀", "\u0000", "\x1b[31m", "\t", "\u2028", "]}", strings.Repeat("x", 40)}
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// pass feeds a message in pieces of random lengths, and returns what comes out.
func pass(long *longTexts, message []byte, r *rand.Rand) []byte {
	c := cutter{long: long}
	var out []byte
	for len(message) > 0 {
		n := min(len(message), 1+r.IntN(5000))
		if r.IntN(2) == 0 {
			n = min(n, 1+r.IntN(4))
		}
		out = c.feed(out, message[:n])
		message = message[n:]
	}
	return c.end(out)
}

// ascii is JSON with every character above ASCII as an escape, as many servers write it.
func ascii(p []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(p) {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

func TestALongTextGoesToAFile(t *testing.T) {
	long := &longTexts{dir: filepath.Join(t.TempDir(), "tool-output")}
	r := rand.New(rand.NewPCG(3, 4))
	for _, size := range []int{10, keptText - 200, keptText + 10, 3 * keptText} {
		text := awkward(size)
		for _, encoded := range []bool{false, true} {
			message, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{"content": []any{
				map[string]any{"type": "text", "text": text}, map[string]any{"type": "text", "text": "last"}, map[string]any{"resource": map[string]any{"uri": "a:b", "text": text}}}}})
			if encoded {
				message = ascii(message)
			}
			out := pass(long, message, r)
			var got struct {
				Result struct {
					Content []struct {
						Text     string
						Resource struct{ Text string }
					}
				}
			}
			if err := json.Unmarshal(out, &got); err != nil || len(got.Result.Content) != 3 || got.Result.Content[1].Text != "last" {
				t.Fatalf("%v: %.200s", err, out)
			}
			for _, kept := range []string{got.Result.Content[0].Text, got.Result.Content[2].Resource.Text} {
				head, whole := long.take(kept)
				if whole == nil {
					if head != text || size > keptText {
						t.Fatalf("%d bytes of %d without a file", len(head), size)
					}
					continue
				}
				if len(out) > 2*keptText+1000 {
					t.Errorf("%d bytes were passed on", len(out))
				}
				if !strings.HasPrefix(text, head) || len(head) < keptText/8 {
					t.Errorf("%d bytes were kept, which are not the beginning", len(head))
				}
				file, err := os.ReadFile(whole.Path)
				if err != nil || string(file) != text || whole.Bytes != len(text) || whole.Err != nil {
					t.Fatalf("%v: the file has %d bytes, of %d; %+v", err, len(file), len(text), whole)
				}
				if lines := strings.Count(text, "\n"); whole.Lines != lines && whole.Lines != lines+1 {
					t.Errorf("%d lines", whole.Lines)
				}
				if again, twice := long.take(kept); twice != nil || again != kept {
					t.Error("taken twice")
				}
			}
		}
	}
}

// Wherever a text is cut, what is kept is its beginning: no escape, character or pair of surrogates is cut apart.
func TestWholeCharacters(t *testing.T) {
	text := awkward(2000) + "😀😀\ufffd😀"
	plain, _ := json.Marshal(text)
	for _, quoted := range [][]byte{plain, ascii(plain)} {
		inner := quoted[1 : len(quoted)-1]
		for n := range len(inner) + 1 {
			kept := inner[:wholeCharacters(inner[:n])]
			var got string
			if err := json.Unmarshal([]byte(`"`+string(kept)+`"`), &got); err != nil || !strings.HasPrefix(text, got) || n-len(kept) >= 12 {
				t.Fatalf("%v: %q of %q", err, kept[max(0, len(kept)-20):], inner[max(0, n-20):n])
			}
		}
	}
}

// Nothing else is another text than it was: a resource that a person mentions, a prompt, a request to the model, what is not JSON.
func TestOnlyTextsOfResultsAreCut(t *testing.T) {
	long := &longTexts{dir: t.TempDir()}
	r := rand.New(rand.NewPCG(5, 6))
	text, _ := json.Marshal(awkward(keptText + 5000))
	for _, message := range []string{
		`{"result":{"contents":[{"text":%s}]}}`,
		`{"result":{"messages":[{"content":{"text":%s}}]}}`,
		`{"params":{"content":[{"text":%s}]}}`,
		`{"result":{"content":[{"data":%s}]}}`,
		`{"result":{"content":[{"a":{"text":%s}}]}}`,
		`{"result":{"content":[["text",%s]]}}`,
		`{"result":{"content":{"x":{"text":%s}}}}`,
		`{"result":{"structuredContent":{"content":[{"text":%s}]}}}`,
		`{"result":{"content":[{"text":["text",{"text":%s}]}]}}`,
		`[{"result":{"content":[{"text":%s}]}}]`,
		`}}]{"result":%s`,
		`{"result":{"content":[{"text":` + string(text[:len(text)-1]), // it never ends
		`{"result":{"content":[{"text":"short", "x":%s}]}}`,
		`log: "%s`,
	} {
		message := strings.Replace(message, "%s", string(text), 1)
		if got := pass(long, []byte(message), r); len(message)-len(got) > 1 && !strings.HasSuffix(message, `x`) && strings.Count(message, `"`)%2 == 0 || len(long.cut) > 0 {
			t.Errorf("%.60s: %d bytes of %d, %d files", message, len(got), len(message), len(long.cut))
		}
	}
	if left, _ := os.ReadDir(long.dir); len(left) > 0 {
		t.Error("a file was left: ", left[0].Name())
	}
}

// A server cannot fill the disk with texts that no call waits for, nor with one that never ends, nor name a file of its own.
func TestLongTextsAreBounded(t *testing.T) {
	long := &longTexts{dir: t.TempDir()}
	r := rand.New(rand.NewPCG(7, 8))
	text, _ := json.Marshal(strings.Repeat("x", keptText+1))
	for range maxUnread + 5 {
		pass(long, []byte(`{"result":{"content":[{"text":`+string(text)+`}]}}`), r)
	}
	if left, _ := os.ReadDir(long.dir); len(left) != maxUnread || len(long.cut) != maxUnread || len(long.old) != maxUnread {
		t.Errorf("%d files, %d texts", len(left), len(long.cut))
	}
	if got, whole := long.take("text\x00" + strings.Repeat("A", 26)); whole != nil || !strings.HasPrefix(got, "text\x00") {
		t.Error("a mark was guessed")
	}
	c := cutter{long: &longTexts{}} // to no file
	c.feed(nil, []byte(`{"result":{"content":[{"text":"`))
	for piece := bytes.Repeat([]byte("y"), 1<<20); !c.over; {
		if got := c.feed(nil, piece); len(got) > 0 {
			t.Fatal("passed on")
		}
		if c.saved != nil && c.saved.whole.Bytes > maxSaved+2<<20 {
			t.Fatal("the text is longer than allowed")
		}
	}
}

// What cannot be saved is said.
func TestALongTextThatCannotBeSaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := &longTexts{dir: filepath.Join(file, "x")}
	text := strings.Repeat("word ", keptText/4)
	message, _ := json.Marshal(map[string]any{"result": map[string]any{"content": []any{map[string]any{"text": text}}}})
	var got struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal(pass(long, message, rand.New(rand.NewPCG(1, 1))), &got); err != nil {
		t.Fatal(err)
	}
	r := convert([]sdk.Content{&sdk.TextContent{Text: got.Result.Content[0].Text}}, nil, long)
	if c := tools.Cap(r.Output, tools.CapOptions{Whole: r.Whole}); !strings.Contains(c.Text, "could not be saved") || !strings.Contains(c.Text, fmt.Sprint("of ", len(text), " bytes")) {
		t.Errorf("%s", c.Text[len(c.Text)-300:])
	}
}

// The same over HTTP, as one JSON text and as events, byte by byte.
func TestLongTextsOfBodies(t *testing.T) {
	text := awkward(keptText + 100)
	message, _ := json.Marshal(map[string]any{"result": map[string]any{"content": []any{map[string]any{"text": text}}}})
	short := `{"result":{"content":[{"text":"short"}]}}`
	for kind, body := range map[string]string{
		"application/json":                 string(message),
		"text/event-stream; charset=utf-8": "id: data: {\r\nevent: message\r\ndata: " + string(message) + "\r\n\r\n: data: \"\n\ndata: " + string(message[:20]) + "\n\ndata:" + string(message) + "\n\ndata: " + short + "\n\n",
	} {
		long := &longTexts{dir: t.TempDir()}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}))
		client := &http.Client{Transport: cutBodies{long, http.DefaultTransport}}
		resp, err := client.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(iotest.OneByteReader(resp.Body))
		resp.Body.Close()
		srv.Close()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(got), "\n")
		for i, line := range lines {
			_, data, ok := strings.Cut(line, "data:")
			if kind == "application/json" {
				data, ok = line, true
			}
			var m struct {
				Result struct{ Content []struct{ Text string } }
			}
			if !ok || json.Unmarshal([]byte(data), &m) != nil {
				continue
			}
			kept, whole := long.take(m.Result.Content[0].Text)
			if whole == nil {
				if kept != "short" {
					t.Errorf("%s: line %d was not cut", kind, i)
				}
				continue
			}
			if file, err := os.ReadFile(whole.Path); err != nil || string(file) != text {
				t.Errorf("%s: %v, %d bytes", kind, err, len(file))
			}
		}
		if n := strings.Count(body, "\n"); len(lines) != n+1 || len(long.cut) > 0 || strings.Contains(body, short) && !strings.HasSuffix(string(got), "data: "+short+"\n\n") {
			t.Errorf("%s: %d lines of %d, %d texts left", kind, len(lines), n+1, len(long.cut))
		}
	}
}

// A program and a remote server answer with 3 MB: the model reads the beginning and where the rest is, and the file has all of it.
func TestALongResultIsKept(t *testing.T) {
	text := strings.Repeat("a line of a long result\n", 3<<20/24)
	server := sdk.NewServer(&sdk.Implementation{Name: "big", Version: "1"}, nil)
	for name, content := range map[string][]sdk.Content{
		"one": {&sdk.TextContent{Text: text}},
		"two": {&sdk.TextContent{Text: text}, &sdk.TextContent{Text: "the end"}},
	} {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	for _, plain := range []bool{false, true} {
		remote := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{JSONResponse: plain}))
		set := New(Options{Servers: []Server{{Name: "big", URL: remote.URL}}, Root: t.TempDir(), StateDir: t.TempDir()})
		all := set.Tools(t.Context(), "ses")
		for _, name := range []string{"one", "two"} {
			r, err := tools.Invoke(t.Context(), byName(t, all, "big_"+name), json.RawMessage(`{}`), &tools.Call{SessionID: "ses", CallID: "c", Host: tools.Host{Gate: &gate{}}}, tools.CapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, rest, ok := strings.Cut(r.Output, "The whole text is in ")
			path, _, _ := strings.Cut(rest, "\n")
			if file, err := os.ReadFile(path); !ok || err != nil || string(file) != text {
				t.Errorf("%v %v: %d bytes; %.300s", ok, err, len(file), rest)
			}
			if len(r.Output) > tools.MaxBytes+2000 || !strings.HasPrefix(r.Output, "a line of") || name == "two" && !strings.HasSuffix(r.Output, "the end") {
				t.Errorf("%s: %d bytes", name, len(r.Output))
			}
		}
		set.Close(t.Context())
		remote.CloseClientConnections()
		remote.Close()
	}
}

// FuzzLongTexts compares a message whose long texts went to files with what encoding/json makes of the message itself: the same value where
// it is JSON, and still none where it is not.
func FuzzLongTexts(f *testing.F) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"long enough to be cut \u00e9\ud83d\ude00\ud800\n"}]}}`,
		`{"result":{"content":[{"resource":{"uri":"a:b","text":"a text of a resource","blob":"a text that is none"}},{"text":["no text, a list"]}],"text":"not in content"}}`,
		`{"result":{"content":[{"text":"told first and \\"},{"text":"told \"last\" \u0000 "},7]},"result":{"content":[{"text":"twice the same key"}]}}`,
		"{\"result\":{\"content\":[{\"text\":\"caf\xc3\xa9 \xff\xf0\x9f and \xe2\x82\xac characters\"}]}}",
		"{\"result\":{\"content\":[{\"text\":\"a line break \n that JSON refuses\"}]}}",
		`{"result":{"content":[{"text":"an escape \q that JSON refuses"}]}}`,
		`{"result":{"content":[{"text":"hexadecimal digits \u12G4 of no character"}]}}`,
		`{"result":{"content":[{"text":"a high surrogate \ud83d\u0041 before another"}]}}`,
		`{"result":{"content":[{"text":"never ended`,
	} {
		for kept := range byte(20) {
			f.Add([]byte(message), kept, uint64(kept))
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, kept byte, seed uint64) {
		long := &longTexts{dir: t.TempDir(), kept: 1 + int(kept)}
		out := pass(long, message, rand.New(rand.NewPCG(seed, 7)))
		if len(long.old) == maxUnread {
			return // the files of some may be gone
		}
		value := func(p []byte) (v any) {
			if err := json.Unmarshal(p, &v); err != nil {
				t.Fatalf("%q: %v", p, err)
			}
			return v
		}
		if !json.Valid(message) {
			if json.Valid(out) {
				t.Fatalf("%q is no JSON and becomes %q", message, out)
			}
			return
		}
		var equal func(want, got any)
		equal = func(want, got any) {
			switch want := want.(type) {
			case map[string]any:
				got, ok := got.(map[string]any)
				if !ok || len(got) != len(want) {
					t.Fatalf("%q became %q", message, out)
				}
				for k, v := range want {
					equal(v, got[k])
				}
			case []any:
				got, ok := got.([]any)
				if !ok || len(got) != len(want) {
					t.Fatalf("%q became %q", message, out)
				}
				for k, v := range want {
					equal(v, got[k])
				}
			case string:
				text, ok := got.(string)
				head, whole := long.take(text)
				if !ok || whole == nil {
					if got != any(want) {
						t.Fatalf("%q became %q", want, got)
					}
					return
				}
				file, err := os.ReadFile(whole.Path)
				// The file has the server's own bytes, of which JSON makes characters.
				if is := string([]rune(string(file))); err != nil || is != want || whole.Bytes != len(file) || !strings.HasPrefix(want, head) {
					t.Fatalf("%v: %q became %q, with %q before it", err, want, file, head)
				}
			default:
				if want != got {
					t.Fatalf("%q became %q", message, out)
				}
			}
		}
		equal(value(message), value(out))
	})
}
