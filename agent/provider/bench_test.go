package provider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const benchDeltas = 20_000

func deltas() []string {
	list := make([]string, benchDeltas)
	for i := range list {
		list[i] = "token "
	}
	return list
}

// BenchmarkDeltas streams 20,000 small deltas from a canned body: our decoding alone.
func BenchmarkDeltas(b *testing.B) {
	for _, kind := range kinds {
		if kind == provider.KindCompatible {
			continue
		}
		b.Run(string(kind), func(b *testing.B) {
			srv, err := wiretest.Start(wiretest.Step{Deltas: deltas(), Burst: true})
			if err != nil {
				b.Fatal(err)
			}
			defer srv.Close()
			var body []byte
			grab := &http.Client{Transport: grabber{&body}}
			p, _ := provider.New(provider.Config{Kind: kind, BaseURL: baseURL(kind, srv), Key: "k", HTTPClient: grab})
			req := &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}
			if err := p.Stream(b.Context(), req, func(provider.Event) error { return nil }); err != nil {
				b.Fatal(err)
			}
			p, _ = provider.New(provider.Config{Kind: kind, BaseURL: baseURL(kind, srv), Key: "k", HTTPClient: &http.Client{Transport: canned{body: body}}})
			bench(b, p)
		})
	}
}

// BenchmarkDeltasHTTP does it over local HTTP, flushed after each event; the server's work is in the figure.
func BenchmarkDeltasHTTP(b *testing.B) {
	for _, kind := range kinds {
		if kind == provider.KindCompatible {
			continue
		}
		b.Run(string(kind), func(b *testing.B) {
			srv, err := wiretest.Start(wiretest.Step{Deltas: deltas()})
			if err != nil {
				b.Fatal(err)
			}
			defer srv.Close()
			srv.Repeat = true
			p, _ := provider.New(provider.Config{Kind: kind, BaseURL: baseURL(kind, srv), Key: "k"})
			bench(b, p)
		})
	}
}

func baseURL(kind provider.Kind, srv *wiretest.Server) string {
	if kind == provider.KindAnthropic || kind == provider.KindGemini {
		return srv.URL
	}
	return srv.OpenAIURL()
}

func bench(b *testing.B, p provider.Provider) {
	req := &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Stream(b.Context(), req, func(e provider.Event) error {
			if e.Type == provider.EventText {
				n++
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if n != b.N*benchDeltas {
		b.Fatalf("%d deltas in %d runs", n, b.N)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deltas/s")
}

// grabber keeps a response's body.
type grabber struct{ body *[]byte }

func (g grabber) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	*g.body, err = io.ReadAll(resp.Body)
	resp.Body.Close()
	resp.Body = io.NopCloser(strings.NewReader(string(*g.body)))
	return resp, err
}

// BenchmarkStep is everything of Pillion around a short answer over local HTTP, on a kept connection.
func BenchmarkStep(b *testing.B) {
	for _, kind := range kinds {
		b.Run(string(kind), func(b *testing.B) {
			srv, err := wiretest.Start(wiretest.Step{Text: "ok"})
			if err != nil {
				b.Fatal(err)
			}
			defer srv.Close()
			srv.Repeat = true
			p, _ := provider.New(provider.Config{Kind: kind, BaseURL: baseURL(kind, srv), Key: "k"})
			req := &provider.Request{Model: provider.Model{ID: "m"}, Messages: user("hi")}
			for b.Loop() {
				if err := p.Stream(b.Context(), req, func(provider.Event) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
