package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/guard"
)

// traces sends spans to a collector in the background. Spans that the collector does not accept are dropped: tracing must not hold up the
// agent, nor fill the memory while a collector is down.
type traces struct {
	provider *sdktrace.TracerProvider
}

// Time limits for one delivery, and for the last one at the end of the program.
const (
	deliveryLimit = 5 * time.Second
	shutdownLimit = time.Second
)

// tracing returns nil unless the person's own settings turn it on; a project cannot. Nothing is connected before the first span has ended.
func (a *App) tracing() *agent.Tracing {
	c := a.Place.own().Tracing
	if !c.Enabled || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	to, err := newCollector(c, func(text string) {
		a.O.Log.Warn(text)
		if a.O.Notices != nil {
			fmt.Fprintln(a.O.Notices, "pillion: "+a.Place.secrets.Hide(text))
		}
	})
	if err != nil {
		a.O.Log.Warn("traces are not sent", slog.Any("err", err))
		if a.O.Notices != nil {
			fmt.Fprintln(a.O.Notices, "pillion: traces are not sent:", err)
		}
		return nil
	}
	// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win. Host name and user name are left out on purpose.
	about := sdkresource.NewSchemaless(attribute.String("service.name", "pillion"), attribute.String("service.version", a.Place.version))
	if env, err := sdkresource.New(context.Background(), sdkresource.WithFromEnv()); err == nil {
		if merged, err := sdkresource.Merge(about, env); err == nil {
			about = merged
		}
	}
	a.traces = &traces{sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(to, sdktrace.WithBatchTimeout(2*time.Second), sdktrace.WithExportTimeout(deliveryLimit)))}
	return &agent.Tracing{Tracer: a.traces.provider.Tracer("pillion"), Content: c.Content}
}

// close delivers what is queued, within shutdownLimit.
func (t *traces) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // ExportSpans has reported a failure
}

// collector reports the first failure of the exporter, and the next one only after a success: with a stopped collector every delivery
// fails, and spans are sent every two seconds.
type collector struct {
	sdktrace.SpanExporter
	where    string       // the address for notices, without a password
	notify   func(string) // shows the person a text
	mu       sync.Mutex
	reported bool // guarded by mu
}

// newCollector makes the exporter for the configured endpoint, else for the one in OpenTelemetry's variables. It connects to nothing.
func newCollector(c config.Tracing, say func(string)) (*collector, error) {
	// guard's client instead of the exporter's own, so that guard checks every request under the name of this setting.
	client := guard.Client(guard.Reason{Who: guard.Traces, Setting: "tracing"}, guard.Network{})
	where, endpoint := "the address of OTEL_EXPORTER_OTLP_ENDPOINT", ""
	switch {
	case c.Endpoint != "":
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("tracing.endpoint is not an http(s) address; write it as http://localhost:4318")
		}
		// where is shown in notices, so it must not contain a password.
		where = u.Redacted()
		// An address with a path is used as it is, like OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
		if strings.Trim(u.Path, "/") == "" { // the collector's base address, like OTEL_EXPORTER_OTLP_ENDPOINT
			u.Path = "/v1/traces"
		}
		endpoint = u.String()
	case otelVariable("ENDPOINT") == "":
		where = "http://localhost:4318"
	}
	to, err := newOTLP(client, endpoint, c.Headers, deliveryLimit)
	if err != nil {
		return nil, err
	}
	return &collector{SpanExporter: to, where: where, notify: say}, nil
}

// ExportSpans implements sdktrace.SpanExporter. It returns no error: the SDK would print each one to standard error.
func (c *collector) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.reported = false
	} else if !c.reported {
		c.reported = true
		c.notify(fmt.Sprintf("traces do not reach %s (%v); until they do, they are dropped. Set tracing.enabled to false to turn them off", c.where, err))
	}
	return nil
}
