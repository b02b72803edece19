package app

import (
	"compress/gzip"
	"context"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// everySpan has every field that OTLP has.
func everySpan() tracetest.SpanStubs {
	state, _ := trace.ParseTraceState("a=1,b=2")
	self := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: 1, TraceState: state})
	far := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{4}, Remote: true})
	about := sdkresource.NewWithAttributes("schema/r", attribute.String("service.name", "p"))
	library := instrumentation.Scope{Name: "lib", Version: "1", SchemaURL: "schema/s", Attributes: attribute.NewSet(attribute.Bool("x", true))}
	return tracetest.SpanStubs{
		{
			Name: "one", SpanContext: self, Parent: far, SpanKind: trace.SpanKindClient, StartTime: time.Unix(1, 2), EndTime: time.Unix(3, 4), Resource: about, InstrumentationScope: library,
			Attributes: []attribute.KeyValue{
				attribute.String("s", "ä"), attribute.String("empty", ""), attribute.String("broken", "a\xff"), attribute.Bool("t", true), attribute.Bool("f", false),
				attribute.Int64("i", -5), attribute.Int64("zero", 0), attribute.Int64("big", math.MaxInt64), attribute.Float64("d", -1.5), attribute.Float64("d0", 0),
				attribute.BoolSlice("bs", []bool{true, false}), attribute.Int64Slice("is", []int64{1, -1}), attribute.Float64Slice("ds", []float64{0.5}), attribute.StringSlice("ss", []string{"", "x"}), attribute.StringSlice("none", nil),
			},
			DroppedAttributes: 7, DroppedEvents: 8, DroppedLinks: 9,
			Events: []sdktrace.Event{{Name: "e", Time: time.Unix(5, 6), Attributes: []attribute.KeyValue{attribute.Int("n", 300)}, DroppedAttributeCount: 2}},
			Links:  []sdktrace.Link{{SpanContext: far, Attributes: []attribute.KeyValue{attribute.Int("l", 1)}, DroppedAttributeCount: 3}},
			Status: sdktrace.Status{Code: codes.Error, Description: "bad"},
		},
		{Name: "other library", SpanContext: self, Resource: about, InstrumentationScope: instrumentation.Scope{Name: "lib2"}, Status: sdktrace.Status{Code: codes.Ok}},
		{Name: "same library", SpanContext: self, Resource: about, InstrumentationScope: library},
		{Name: "elsewhere", Resource: sdkresource.NewSchemaless(attribute.String("service.name", "q"))},
	}
}

// OpenTelemetry's own exporter made an equal message of such spans when they were compared.
func TestSpansAreEncodedAsTheFormatSays(t *testing.T) {
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	flag := func(b bool) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: b}}
	}
	number := func(n int64) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}
	}
	float := func(f float64) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: f}}
	}
	list := func(v ...*commonpb.AnyValue) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: v}}}
	}
	pair := func(k string, v *commonpb.AnyValue) *commonpb.KeyValue { return &commonpb.KeyValue{Key: k, Value: v} }
	id, self, far := append([]byte{1, 2}, make([]byte, 14)...), append([]byte{3}, make([]byte, 7)...), append([]byte{4}, make([]byte, 7)...)
	never := uint64(0)
	want := &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{
		{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{pair("service.name", text("p"))}}, SchemaUrl: "schema/r",
			ScopeSpans: []*tracepb.ScopeSpans{
				{
					Scope: &commonpb.InstrumentationScope{Name: "lib", Version: "1", Attributes: []*commonpb.KeyValue{pair("x", flag(true))}}, SchemaUrl: "schema/s",
					Spans: []*tracepb.Span{
						{
							TraceId: id, SpanId: self, TraceState: "a=1,b=2", ParentSpanId: far, Name: "one", Kind: tracepb.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: 1e9 + 2, EndTimeUnixNano: 3e9 + 4, Flags: 0x301,
							Attributes: []*commonpb.KeyValue{
								pair("s", text("ä")), pair("empty", text("")), pair("broken", text("a\ufffd")), pair("t", flag(true)), pair("f", flag(false)),
								pair("i", number(-5)), pair("zero", number(0)), pair("big", number(math.MaxInt64)), pair("d", float(-1.5)), pair("d0", float(0)),
								pair("bs", list(flag(true), flag(false))), pair("is", list(number(1), number(-1))), pair("ds", list(float(0.5))), pair("ss", list(text(""), text("x"))), pair("none", list()),
							},
							DroppedAttributesCount: 7, DroppedEventsCount: 8, DroppedLinksCount: 9,
							Events: []*tracepb.Span_Event{{Name: "e", TimeUnixNano: 5e9 + 6, Attributes: []*commonpb.KeyValue{pair("n", number(300))}, DroppedAttributesCount: 2}},
							Links:  []*tracepb.Span_Link{{TraceId: id, SpanId: far, Attributes: []*commonpb.KeyValue{pair("l", number(1))}, DroppedAttributesCount: 3, Flags: 0x300}},
							Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "bad"},
						},
						{TraceId: id, SpanId: self, TraceState: "a=1,b=2", Name: "same library", StartTimeUnixNano: never, Status: &tracepb.Status{}, Flags: 0x101},
					},
				},
				{
					Scope: &commonpb.InstrumentationScope{Name: "lib2"},
					Spans: []*tracepb.Span{{TraceId: id, SpanId: self, TraceState: "a=1,b=2", Name: "other library", Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK}, Flags: 0x101}},
				},
			},
		},
		{
			Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{pair("service.name", text("q"))}},
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{}, Spans: []*tracepb.Span{{TraceId: make([]byte, 16), SpanId: make([]byte, 8), Name: "elsewhere", Status: &tracepb.Status{}, Flags: 0x100}}}},
		},
	}}
	var got collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(encodeSpans(everySpan().Snapshots()), &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&got, want) {
		t.Errorf("%v\nwant\n%v", &got, want)
	}
}

func TestTheCollectorsAddressAndHeaders(t *testing.T) {
	tests := map[string]struct {
		env           map[string]string
		endpoint      string // configured
		headers       map[string]string
		path, a, b, z string // as they arrive
	}{
		"configured":        {endpoint: "URL/own", headers: map[string]string{"A": "1"}, path: "/own", a: "1"},
		"base":              {env: map[string]string{"ENDPOINT": "URL/base/"}, path: "/base/v1/traces"},
		"traces' own":       {env: map[string]string{"ENDPOINT": "http://127.0.0.1:1", "TRACES_ENDPOINT": "URL"}, path: "/"},
		"headers":           {env: map[string]string{"ENDPOINT": "URL", "HEADERS": "a=x%20y, b = 2 ,broken,c=%zz"}, headers: map[string]string{"B": "3"}, path: "/v1/traces", a: "x y", b: "3"},
		"traces' headers":   {env: map[string]string{"ENDPOINT": "URL", "HEADERS": "a=1", "TRACES_HEADERS": "b=2"}, path: "/v1/traces", b: "2"},
		"packed":            {env: map[string]string{"ENDPOINT": "URL", "COMPRESSION": "gzip"}, path: "/v1/traces", z: "gzip"},
		"configured, other": {env: map[string]string{"ENDPOINT": "http://127.0.0.1:1"}, endpoint: "URL/own", path: "/own"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			asked := ""
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = strings.Join([]string{r.URL.Path, r.Header.Get("A"), r.Header.Get("B"), r.Header.Get("Content-Encoding")}, "|")
				in := io.Reader(r.Body)
				if r.Header.Get("Content-Encoding") == "gzip" {
					in, _ = gzip.NewReader(r.Body)
				}
				body, _ := io.ReadAll(in)
				var q collectorpb.ExportTraceServiceRequest
				if proto.Unmarshal(body, &q) != nil || len(q.ResourceSpans) != 2 || r.Header.Get("Content-Type") != "application/x-protobuf" {
					t.Errorf("%v with %v", &q, r.Header)
				}
				if tt.path == "/own" {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, "not\n this ")
				}
			}))
			defer srv.Close()
			for _, name := range []string{"ENDPOINT", "HEADERS", "COMPRESSION", "TIMEOUT"} {
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, "")
				t.Setenv("OTEL_EXPORTER_OTLP_TRACES_"+name, "")
			}
			for k, v := range tt.env {
				t.Setenv("OTEL_EXPORTER_OTLP_"+k, strings.ReplaceAll(v, "URL", srv.URL))
			}
			e, err := newOTLP(srv.Client(), strings.ReplaceAll(tt.endpoint, "URL", srv.URL), tt.headers, deliveryLimit)
			if err != nil {
				t.Fatal(err)
			}
			err = e.ExportSpans(context.Background(), everySpan().Snapshots())
			if failed := err != nil; failed != (tt.path == "/own") || failed && !strings.Contains(err.Error(), "400 Bad Request: not this") {
				t.Error(err)
			}
			if want := strings.Join([]string{tt.path, tt.a, tt.b, tt.z}, "|"); asked != want {
				t.Errorf("%s, want %s", asked, want)
			}
		})
	}
	if _, err := newOTLP(nil, "", nil, 0); err != nil {
		t.Error(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")
	if _, err := newOTLP(nil, "", nil, 0); err == nil {
		t.Error("an address without a scheme was taken")
	}
}
