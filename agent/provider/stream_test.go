package provider_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

func TestTwentyMegabytesInOneDelta(t *testing.T) {
	all := strings.Repeat("0123456789abcde\n", 20<<20/16)
	for i, kind := range kinds {
		text := all
		if i > 0 { // the formats have one reader of events
			text = all[:2<<20]
		}
		srv := wiretest.New(t, wiretest.Step{Text: text, Chunk: -1})
		r, err := stream(t, newProvider(t, kind, srv), &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
		if err != nil || r.Text != text {
			t.Errorf("%s: %d bytes, %v", kind, len(r.Text), err)
		}
	}
}

func TestStopsAndFailuresOfEveryKind(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			srv := wiretest.New(t, wiretest.MustParse(`[
				{"text":"hi","stop":"max_tokens"}, {"text":"no","stop":"refusal"}, {},
				{"error":{"status":404,"message":"model: m does not exist"}},
				{"error":{"status":429,"retryAfter":"3"}},
				{"error":{"status":503}}, {"error":{"status":500}},
				{"error":{"status":500,"body":"<html>bad gateway</html>"}},
				{"text":"hi","error":{"status":529,"type":"overloaded_error","message":"Overloaded","inStream":true}},
				{"text":"hello","cut":-1}, {"text":"hello","cut":-1,"cutClean":true}, {"text":"hello","cut":1},
				{"calls":[{"name":"read","rawInput":"{\"filePath\": \"a"}]}]`)...)
			p := newProvider(t, kind, srv)
			ask := func() (*result, error) {
				return stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
			}
			for _, want := range []provider.StopReason{provider.StopMaxTokens, provider.StopRefusal, provider.StopEnd} {
				if r, err := ask(); err != nil || r.Stop != want {
					t.Errorf("%s: %q %v", want, r.Stop, err)
				}
			}
			for _, want := range []provider.ErrorKind{provider.ErrNotFound, provider.ErrRateLimit, provider.ErrOverloaded, provider.ErrServer, provider.ErrServer, provider.ErrOverloaded, provider.ErrCut, provider.ErrCut, provider.ErrCut} {
				_, err := ask()
				var e *provider.Error
				if !errors.As(err, &e) || e.Kind != want || strings.Contains(e.Message, "<html") || want == provider.ErrRateLimit && e.RetryAfter != 3*time.Second {
					t.Errorf("%s: %+v", want, err)
				}
			}
			r, err := ask()
			if err != nil || len(r.Calls) != 1 {
				t.Fatalf("%+v %v", r, err)
			}
			if got := string(r.Calls[0].Input); got != `{"filePath": "a` && got != `"{\"filePath\": \"a"` {
				t.Errorf("arguments %s", got)
			}
			if n := len(srv.Requests()); n != 13 {
				t.Errorf("%d requests: something was repeated in silence", n)
			}
		})
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	for _, kind := range kinds {
		srv, err := wiretest.Start(wiretest.Step{Text: "ok"})
		if err != nil {
			t.Fatal(err)
		}
		srv.Repeat = true
		var dials atomic.Int32
		tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}
		idle := make(chan struct{}, 100)
		p, err := provider.New(provider.Config{Kind: kind, BaseURL: baseURL(kind, srv), Key: "k", HTTPClient: &http.Client{Transport: closing{tr, idle}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}); err != nil {
				t.Fatal(err)
			}
			<-idle // the rest of the response has been read
		}
		if n := dials.Load(); n > 2 {
			t.Errorf("%s: %d connections for 5 requests", kind, n)
		}
		tr.CloseIdleConnections()
		srv.Close()
	}
}

// closing tells when a response's body was closed.
type closing struct {
	http.RoundTripper
	closed chan struct{}
}

func (c closing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = closeTeller{resp.Body, c.closed}
	}
	return resp, err
}

type closeTeller struct {
	io.ReadCloser
	closed chan struct{}
}

func (c closeTeller) Close() error {
	err := c.ReadCloser.Close()
	c.closed <- struct{}{}
	return err
}

// silent answers with a stream that says what it was given and then nothing, until its request is cancelled.
type silent struct{ begin string }

func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, s.begin)
		<-req.Context().Done()
		w.CloseWithError(req.Context().Err())
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: r, Request: req}, nil
}

func TestASilentStreamEndsAfterTheIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := provider.New(provider.Config{ID: "slow", Kind: provider.KindCompatible, BaseURL: "http://x/v1", HTTPClient: &http.Client{Transport: silent{chunks(`{"content":"hi"}`)}}})
		start := time.Now()
		err := p.Stream(t.Context(), &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("x")}, func(provider.Event) error { return nil })
		if kindOf(err) != provider.ErrNetwork || !strings.Contains(err.Error(), "sent nothing for 5m") || time.Since(start) != 5*time.Minute {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func TestAStreamLeftOpenAfterItsEndWaitsOnlyForTheUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := provider.New(provider.Config{Kind: provider.KindCompatible, BaseURL: "http://x/v1", HTTPClient: &http.Client{Transport: silent{chunks(`{"content":"hi"}`, stopChunk)}}})
		start := time.Now()
		r, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("x")})
		if err != nil || r.Text != "hi" || r.Stop != provider.StopEnd || time.Since(start) > 10*time.Second {
			t.Errorf("%+v %v after %s", r, err, time.Since(start))
		}
	})
}

func TestAServerThatTalksOnAfterDoneIsLeft(t *testing.T) {
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunks(`{"content":"hi"}`, stopChunk, "[DONE]"))
		for {
			if _, err := io.WriteString(w, chunks(`{"content":"more"}`)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			default:
			}
		}
	}))
	defer srv.Close()
	p, _ := provider.New(provider.Config{Kind: provider.KindCompatible, BaseURL: srv.URL + "/v1"})
	r, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("x")})
	if err != nil || r.Text != "hi" {
		t.Errorf("%+v %v", r, err)
	}
	<-gone
}

func TestAKeyDoesNotFollowARedirectToAnotherHost(t *testing.T) {
	var stolen atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { stolen.Store(true) }))
	defer thief.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	for _, kind := range kinds {
		p, _ := provider.New(provider.Config{Kind: kind, BaseURL: srv.URL, Key: secret})
		if _, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("x")}); kindOf(err) != provider.ErrInvalid || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if stolen.Load() {
		t.Error("a request went to the other host")
	}
}

// counting counts requests.
type counting struct{ n *atomic.Int32 }

func (c counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.n.Add(1)
	return nil, errors.New("no network here")
}

func TestNewTouchesNothingAndRefusesNonsense(t *testing.T) {
	var n atomic.Int32
	for _, kind := range kinds {
		if _, err := provider.New(provider.Config{Kind: kind, BaseURL: "http://127.0.0.1:1", HTTPClient: &http.Client{Transport: counting{&n}}}); err != nil {
			t.Error(err)
		}
	}
	if n.Load() != 0 {
		t.Error("New sent a request")
	}
	for want, cfg := range map[string]provider.Config{
		"needs a baseURL":       {Kind: provider.KindCompatible},
		"unknown kind":          {Kind: "x"},
		"not an http(s) URL":    {Kind: provider.KindOpenAI, BaseURL: "localhost:1234"},
		"use one of anthropic,": {},
	} {
		if _, err := provider.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

func TestNobodyListensSaysSo(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	for _, kind := range kinds {
		p, _ := provider.New(provider.Config{ID: "mine", Kind: kind, BaseURL: "http://" + addr, Key: secret})
		_, err := stream(t, p, &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("x")})
		if kindOf(err) != provider.ErrNetwork || !strings.Contains(err.Error(), "connection to http://"+addr) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAFilterSaysWhatToDo(t *testing.T) {
	for _, said := range []string{"Output blocked by content filtering policy", "The response was filtered due to the prompt triggering Azure OpenAI's content management policy"} {
		srv := wiretest.New(t, wiretest.Step{Error: &wiretest.Error{Status: 400, Message: said}})
		_, err := stream(t, newProvider(t, provider.KindOpenAI, srv), &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")})
		if kindOf(err) != provider.ErrInvalid || !strings.Contains(err.Error(), "another way") {
			t.Error(err)
		}
	}
}
