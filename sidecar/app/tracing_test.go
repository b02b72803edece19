package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pillion-dev/pillion/sidecar/config"
)

func TestACollectorThatIsAwayCostsNothingAndIsToldOnce(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var said []string
	to, err := newCollector(config.Tracing{Endpoint: gone.URL}, func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(to))
	for range 3 {
		_, span := tp.Tracer("t").Start(context.Background(), "x")
		span.End()
	}
	(&traces{tp}).close()
	if len(said) != 1 || !strings.Contains(said[0], gone.URL) || !strings.Contains(said[0], "tracing.enabled") {
		t.Errorf("%q", said)
	}
	if _, err := newCollector(config.Tracing{Endpoint: "localhost:4318"}, nil); err == nil {
		t.Error("an address without a scheme was taken")
	}
}
