package provider_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
)

// canned answers every request with one body, without a network.
type canned struct {
	body   []byte
	err    error // after the body, io.EOF when nil
	status int
	mime   string
}

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	end := c.err
	if end == nil {
		end = io.EOF
	}
	status := c.status
	if status == 0 {
		status = 200
	}
	mime := c.mime
	if mime == "" {
		mime = "text/event-stream"
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {mime}}, Request: req,
		Body: io.NopCloser(io.MultiReader(bytes.NewReader(c.body), errReader{end})),
	}, nil
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// play streams a canned body through a provider.
func play(t testing.TB, kind provider.Kind, c canned) (*result, error) {
	t.Helper()
	p, err := provider.New(provider.Config{ID: "test", Kind: kind, BaseURL: "http://127.0.0.1:1/v1", Key: secret, HTTPClient: &http.Client{Transport: c}})
	if err != nil {
		t.Fatal(err)
	}
	r := &result{}
	err = p.Stream(context.Background(), &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}, r.add)
	return r, err
}

var recorded = map[provider.Kind]string{
	provider.KindAnthropic: "anthropic", provider.KindOpenAI: "chat", provider.KindResponses: "responses", provider.KindGemini: "gemini",
}

func TestARecordedAnswerCutAtEveryByteIsWholeOrCut(t *testing.T) {
	for kind, name := range recorded {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile("testdata/" + name + ".sse")
			if err != nil {
				t.Fatal(err)
			}
			full, err := play(t, kind, canned{body: body})
			if err != nil {
				t.Fatal(err)
			}
			if full.Text != "Okay, let's \"see\" → größer:\n" || full.Thinking != "I should read both files — first." ||
				len(full.Calls) != 2 || full.Stop != provider.StopTools ||
				strings.ReplaceAll(string(full.Calls[0].Input), " ", "") != `{"filePath":"a.go"}` || string(full.Calls[1].Input) != "{}" {
				t.Fatalf("%+v", full)
			}
			want := provider.Usage{Input: 484, Output: 69, Reasoning: 20, CacheRead: 2048}
			if kind == provider.KindAnthropic {
				want = provider.Usage{Input: 472, Output: 89, CacheRead: 2048, CacheWrite: 12}
			}
			if full.Usage != want {
				t.Fatalf("usage %+v", full.Usage)
			}
			whole := 0
			ends := []error{io.EOF, errors.New("read: connection reset by peer")}
			for n := range body {
				both := ends[n%2 : n%2+1]
				if n > 0 && body[n-1] == '\n' { // between two events each end counts; elsewhere they take turns
					both = ends
				}
				for _, end := range both {
					r, err := play(t, kind, canned{body: body[:n], err: end})
					if !strings.HasPrefix(full.Text, r.Text) || !strings.HasPrefix(full.Thinking, r.Thinking) || len(r.Calls) > 2 {
						t.Fatalf("cut at %d: text %q thinking %q calls %v", n, r.Text, r.Thinking, r.Calls)
					}
					for i, c := range r.Calls {
						if string(c.Input) != string(full.Calls[i].Input) {
							t.Fatalf("cut at %d: call %d has %s", n, i, c.Input)
						}
					}
					switch {
					case err == nil:
						whole++
						if r.Text != full.Text || r.Thinking != full.Thinking || len(r.Calls) != 2 || r.Stop != full.Stop {
							t.Fatalf("cut at %d passes for whole: %+v", n, r)
						}
					case kindOf(err) != provider.ErrCut:
						t.Fatalf("cut at %d: %v", n, err)
					case r.Stop != "":
						t.Fatalf("cut at %d: stopped and failed", n)
					}
				}
			}
			if whole > len(body)/2 {
				t.Errorf("%d cuts of %d bytes pass for whole", whole, len(body))
			}
		})
	}
}
