package agent

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pillion-dev/pillion/agent/provider"
)

// Tracing configures spans for turns, steps, model requests and tool calls, with the names and attributes of OpenTelemetry's semantic
// conventions for generative AI. Work inside them, such as a request to a language server, finds its parent span in the context.
type Tracing struct {
	Tracer trace.Tracer
	// Content adds prompts, answers, arguments and results to the spans, with the person's keys masked. Without it spans have names and
	// numbers only.
	Content bool
}

// maxSpanText limits each text in a span, in bytes.
const maxSpanText = 8 << 10

// quiet is a span that records nothing, for sessions without tracing.
var quiet = trace.SpanFromContext(context.Background())

// tracer makes the spans of one session; with a nil o it makes none.
type tracer struct {
	o       *Tracing // nil: no spans
	session string   // its id
	masker  *masker
}

// span begins a span that carries the session's id.
func (tr tracer) span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	if tr.o == nil {
		return ctx, quiet
	}
	return tr.o.Tracer.Start(ctx, name, trace.WithAttributes(append(attrs, attribute.String("gen_ai.conversation.id", tr.session))...))
}

// content adds a text to a span if Tracing.Content is set.
func (tr tracer) content(span trace.Span, key, text string) {
	if tr.o == nil || !tr.o.Content || text == "" || !span.IsRecording() {
		return
	}
	// Mask before the cut: half of a key would not be recognised.
	text = strings.ToValidUTF8(tr.masker.mask(text), "\uFFFD")
	if len(text) > maxSpanText {
		cut := maxSpanText
		// do not cut inside a character
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	span.SetAttributes(attribute.String(key, text))
}

// failed marks a span as failed, with a kind from a closed set: an error's text may quote the conversation.
func failed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, kind)
}

// turnSpan begins a turn's span, "invoke_agent" in the conventions. With Content it carries the first text of the prompt.
func (tr tracer) turnSpan(ctx context.Context, info SessionInfo, p Prompt) (context.Context, trace.Span) {
	if tr.o == nil {
		return ctx, quiet
	}
	ctx, span := tr.span(ctx, "invoke_agent "+info.Agent, attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", info.Agent),
		attribute.String("gen_ai.request.model", info.Model))
	for _, part := range p.Parts {
		if part.Type == provider.PartText && !part.Synthetic {
			tr.content(span, "pillion.prompt", part.Text)
			break
		}
	}
	return ctx, span
}

// endTurn ends a turn's span with the outcome of the turn.
func endTurn(span trace.Span, end TurnData) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String("pillion.stop_reason", string(end.Stop)), attribute.Int("pillion.steps", end.Steps), attribute.Float64("pillion.cost_usd", end.Cost))
	span.SetAttributes(usageAttributes(end.Usage)...)
	if d := end.Diff; d != nil {
		span.SetAttributes(attribute.Int("pillion.files_changed", d.Files), attribute.Int("pillion.lines_added", d.Additions), attribute.Int("pillion.lines_deleted", d.Deletions))
	}
	if end.Stop == TurnError {
		failed(span, "turn_failed")
	}
	span.End()
}

// usageAttributes returns the tokens of a request. The conventions include cached input and reasoning in the totals; Usage does not.
func usageAttributes(u provider.Usage) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Int("gen_ai.usage.input_tokens", u.Input+u.CacheRead+u.CacheWrite), attribute.Int("gen_ai.usage.output_tokens", u.Output+u.Reasoning),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", u.CacheRead), attribute.Int("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite),
	}
}

// traced wraps a provider so that each request has a span.
func (tr tracer) traced(via provider.Provider) provider.Provider {
	if tr.o == nil {
		return via
	}
	return tracedProvider{tr, via}
}

// tracedProvider makes a span for each request to via.
type tracedProvider struct {
	tracer
	via provider.Provider
}

// Stream passes everything on unchanged, including the error.
func (p tracedProvider) Stream(ctx context.Context, req *provider.Request, emit func(provider.Event) error) error {
	ctx, span := p.span(ctx, "chat "+req.Model.ID, attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", req.Model.Provider),
		attribute.String("gen_ai.request.model", req.Model.ID), attribute.Int("pillion.messages", len(req.Messages)), attribute.Int("pillion.tools", len(req.Tools)))
	defer span.End()
	began, first := time.Now(), true
	var said strings.Builder
	err := p.via.Stream(ctx, req, func(e provider.Event) error {
		switch e.Type {
		case provider.EventUsage:
			span.SetAttributes(usageAttributes(e.Usage)...)
		case provider.EventStop:
			span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(e.Stop)}))
		// Limit the text while it is collected, because content cuts only at the end.
		case provider.EventText:
			if p.o.Content && said.Len() < maxSpanText {
				said.WriteString(e.Text)
			}
			fallthrough
		case provider.EventThinking, provider.EventToolStart:
			if first {
				first = false
				span.SetAttributes(attribute.Float64("gen_ai.response.time_to_first_chunk", time.Since(began).Seconds()))
			}
		}
		return emit(e)
	})
	p.content(span, "pillion.answer", said.String())
	var known *provider.Error
	switch {
	// errLeft comes from an abandoned answer and is no failure.
	case err == nil || errors.Is(err, errLeft):
	case errors.As(err, &known):
		if known.Status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", known.Status))
		}
		failed(span, string(known.Kind))
	default:
		failed(span, "error")
	}
	return err
}

// toolSpan begins a tool call's span, "execute_tool" in the conventions.
func (c *call) toolSpan(ctx context.Context) (context.Context, trace.Span) {
	if c.s.spans.o == nil {
		return ctx, quiet
	}
	ctx, span := c.s.spans.span(ctx, "execute_tool "+safeName(c.name), attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", safeName(c.name)),
		attribute.String("gen_ai.tool.call.id", c.id))
	c.s.spans.content(span, "gen_ai.tool.call.arguments", c.raw.String())
	return ctx, span
}

// endSpan ends a tool call's span. Call it after the call has its final state, so that the span has the masked result.
func (c *call) endSpan(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	d := c.snapshot()
	c.s.spans.content(span, "gen_ai.tool.call.result", d.Output)
	if d.Status == ToolError {
		failed(span, d.ErrorKind)
	}
	span.End()
}
