package app

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// otlpExporter sends spans as OTLP over HTTP, in protobuf's encoding, which every collector takes. OpenTelemetry's own exporter brings grpc
// and the protobuf library along, which are larger than all else that tracing needs.
type otlpExporter struct {
	client   *http.Client
	endpoint string
	headers  http.Header
	gzip     bool
	timeout  time.Duration // for one batch
}

// newOTLP makes an exporter for an address; an empty one is that of OpenTelemetry's variables, else the collector's usual one on this
// machine. headers are added to those of the variables.
func newOTLP(client *http.Client, endpoint string, headers map[string]string, timeout time.Duration) (*otlpExporter, error) {
	e := &otlpExporter{client: client, endpoint: endpoint, headers: http.Header{}, timeout: timeout}
	if all, own := otelVariable("ENDPOINT"), strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")); e.endpoint == "" && all != "" {
		u, err := url.Parse(all)
		if err != nil || u.Host == "" {
			return nil, errors.New("the address of OTEL_EXPORTER_OTLP_ENDPOINT is not an http(s) address; write it as http://localhost:4318")
		}
		// The address for all signals is a base, the one for traces is used as it is.
		if own == "" {
			u.Path = path.Join("/", u.Path, "/v1/traces")
		} else if u.Path == "" {
			u.Path = "/"
		}
		e.endpoint = u.String()
	}
	if e.endpoint == "" {
		e.endpoint = "http://localhost:4318/v1/traces"
	}
	for _, pair := range strings.Split(otelVariable("HEADERS"), ",") {
		name, value, ok := strings.Cut(pair, "=")
		if decoded, err := url.PathUnescape(value); ok && err == nil && strings.TrimSpace(name) != "" {
			e.headers.Set(strings.TrimSpace(name), strings.TrimSpace(decoded))
		}
	}
	for k, v := range headers {
		e.headers.Set(k, v)
	}
	e.gzip = otelVariable("COMPRESSION") == "gzip"
	if ms, err := strconv.Atoi(otelVariable("TIMEOUT")); err == nil && ms > 0 {
		e.timeout = min(timeout, time.Duration(ms)*time.Millisecond)
	}
	return e, nil
}

// otelVariable is a variable of the exporter: that for traces, else that for all signals.
func otelVariable(name string) string {
	if v := strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name)); v != "" {
		return v
	}
	return strings.TrimSpace(os.Getenv("OTEL_EXPORTER_OTLP_" + name))
}

// ExportSpans implements sdktrace.SpanExporter. It does not repeat a request: a batch that is not accepted is dropped.
func (e *otlpExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	body := encodeSpans(spans)
	if e.gzip {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(body)
		if err := errors.Join(err, z.Close()); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("User-Agent", "Pillion")
	maps.Copy(q.Header, e.headers)
	q.Header.Set("Content-Type", "application/x-protobuf")
	if e.gzip {
		q.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const limit = 4 << 10 // bytes of the answer; a person sees the first words of it
	said, _ := io.ReadAll(io.LimitReader(resp.Body, limit))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s: %s", resp.Status, strings.Join(strings.Fields(string(said)), " "))
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter; nothing is kept.
func (e *otlpExporter) Shutdown(context.Context) error { return nil }

// message appends a protobuf message, whose fields are written in the order of their numbers. Fields that have their type's zero value are
// left out, as in proto3. The numbers are those of opentelemetry/proto/trace/v1/trace.proto and its neighbours.
type message []byte

const (
	wireVarint, wire64, wireBytes, wire32 = 0, 1, 2, 5 // https://protobuf.dev/programming-guides/encoding/
)

func (m *message) tag(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(wire)) }

// embed writes bytes also when there are none: an empty message is not a missing one.
func (m *message) embed(field int, v []byte) {
	m.tag(field, wireBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(v))), v...)
}

func (m *message) bytes(field int, v []byte) {
	if len(v) > 0 {
		m.embed(field, v)
	}
}

// text leaves out what is not UTF-8, since a collector refuses the whole batch for it.
func (m *message) text(field int, v string) { m.bytes(field, []byte(strings.ToValidUTF8(v, "\ufffd"))) }

func (m *message) count(field, v int) {
	if v > 0 {
		m.tag(field, wireVarint)
		*m = binary.AppendUvarint(*m, uint64(min(v, math.MaxUint32)))
	}
}

func (m *message) time(field int, t time.Time) {
	if ns := t.UnixNano(); ns > 0 {
		m.tag(field, wire64)
		*m = binary.LittleEndian.AppendUint64(*m, uint64(ns))
	}
}

// flags are the W3C flags, with the bit that says that it is known whether the parent is remote, and the bit that says so.
func (m *message) flags(field int, flags trace.TraceFlags, parent trace.SpanContext) {
	v := uint32(flags) | 1<<8
	if parent.IsRemote() {
		v |= 1 << 9
	}
	m.tag(field, wire32)
	*m = binary.LittleEndian.AppendUint32(*m, v)
}

func (m *message) attributes(field int, list []attribute.KeyValue) {
	for _, kv := range list {
		var pair message
		pair.text(1, string(kv.Key))
		pair.embed(2, encodeValue(kv.Value))
		m.embed(field, pair)
	}
}

// encodeSpans makes an ExportTraceServiceRequest, with the spans grouped by resource and by the library that made them.
func encodeSpans(spans []sdktrace.ReadOnlySpan) []byte {
	type group struct {
		scope instrumentation.Scope
		spans message
	}
	type about struct {
		first  sdktrace.ReadOnlySpan
		groups []*group
	}
	var all []*about // few, in the order in which they come
	find := map[attribute.Distinct]*about{}
	for _, s := range spans {
		a := find[s.Resource().Equivalent()]
		if a == nil {
			a = &about{first: s}
			find[s.Resource().Equivalent()] = a
			all = append(all, a)
		}
		var g *group
		for _, other := range a.groups {
			if other.scope == s.InstrumentationScope() {
				g = other
			}
		}
		if g == nil {
			g = &group{scope: s.InstrumentationScope()}
			a.groups = append(a.groups, g)
		}
		g.spans.embed(2, encodeSpan(s))
	}
	var out message
	for _, a := range all {
		var one, resource message
		resource.attributes(1, a.first.Resource().Attributes())
		one.embed(1, resource)
		for _, g := range a.groups {
			var library, scope message
			library.text(1, g.scope.Name)
			library.text(2, g.scope.Version)
			library.attributes(3, g.scope.Attributes.ToSlice())
			scope.embed(1, library)
			scope = append(scope, g.spans...)
			scope.text(3, g.scope.SchemaURL)
			one.embed(2, scope)
		}
		one.text(3, a.first.Resource().SchemaURL())
		out.embed(1, one)
	}
	return out
}

func encodeSpan(s sdktrace.ReadOnlySpan) message {
	var m message
	self, parent := s.SpanContext(), s.Parent()
	id, span := self.TraceID(), self.SpanID()
	m.bytes(1, id[:])
	m.bytes(2, span[:])
	m.text(3, self.TraceState().String())
	if above := parent.SpanID(); above.IsValid() {
		m.bytes(4, above[:])
	}
	m.text(5, s.Name())
	m.count(6, int(s.SpanKind())) // the SDK's numbers are the format's
	m.time(7, s.StartTime())
	m.time(8, s.EndTime())
	m.attributes(9, s.Attributes())
	m.count(10, s.DroppedAttributes())
	for _, e := range s.Events() {
		var event message
		event.time(1, e.Time)
		event.text(2, e.Name)
		event.attributes(3, e.Attributes)
		event.count(4, e.DroppedAttributeCount)
		m.embed(11, event)
	}
	m.count(12, s.DroppedEvents())
	for _, l := range s.Links() {
		var link message
		id, span := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		link.bytes(1, id[:])
		link.bytes(2, span[:])
		link.attributes(4, l.Attributes)
		link.count(5, l.DroppedAttributeCount)
		link.flags(6, l.SpanContext.TraceFlags(), l.SpanContext)
		m.embed(13, link)
	}
	m.count(14, s.DroppedLinks())
	var status message
	status.text(2, s.Status().Description)
	status.count(3, map[codes.Code]int{codes.Ok: 1, codes.Error: 2}[s.Status().Code])
	m.embed(15, status)
	m.flags(16, self.TraceFlags(), parent)
	return m
}

// encodeValue makes an AnyValue. Its fields are written also when they are zero, because the field says which type the value has.
func encodeValue(v attribute.Value) message {
	var m, list message
	switch v.Type() {
	case attribute.STRING:
		m.embed(1, []byte(strings.ToValidUTF8(v.AsString(), "\ufffd")))
	case attribute.BOOL:
		m.tag(2, wireVarint)
		m = append(m, map[bool]byte{true: 1}[v.AsBool()])
	case attribute.INT64:
		m.tag(3, wireVarint)
		m = binary.AppendUvarint(m, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.tag(4, wire64)
		m = binary.LittleEndian.AppendUint64(m, math.Float64bits(v.AsFloat64()))
	case attribute.BYTESLICE:
		m.embed(7, v.AsByteSlice())
	case attribute.MAP:
		list.attributes(1, v.AsMap())
		m.embed(6, list)
	case attribute.EMPTY:
	default:
		for _, one := range elements(v) {
			list.embed(1, encodeValue(one))
		}
		m.embed(5, list)
	}
	return m
}

// elements are the values of a list.
func elements(v attribute.Value) []attribute.Value {
	var out []attribute.Value
	switch v.Type() {
	case attribute.BOOLSLICE:
		for _, b := range v.AsBoolSlice() {
			out = append(out, attribute.BoolValue(b))
		}
	case attribute.INT64SLICE:
		for _, n := range v.AsInt64Slice() {
			out = append(out, attribute.Int64Value(n))
		}
	case attribute.FLOAT64SLICE:
		for _, f := range v.AsFloat64Slice() {
			out = append(out, attribute.Float64Value(f))
		}
	case attribute.STRINGSLICE:
		for _, s := range v.AsStringSlice() {
			out = append(out, attribute.StringValue(s))
		}
	case attribute.SLICE:
		return v.AsSlice()
	}
	return out
}
