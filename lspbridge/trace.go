package lspbridge

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// span begins a tracing span if the caller has one. It records only names and numbers: parameters and results contain the project's text,
// which must not reach a tracing backend.
func span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, s := parent.TracerProvider().Tracer("pillion").Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) {
		switch {
		case err == nil:
		// A timed-out wait is normal here, so its span does not count as failed.
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			s.SetAttributes(attribute.String("error.type", "timeout"))
		default:
			s.SetAttributes(attribute.String("error.type", "error"))
			s.SetStatus(codes.Error, "error")
		}
		s.End()
	}
}

// waits begins the span of a wait for problems.
func waits(ctx context.Context, what string, files int) (context.Context, func(error)) {
	return span(ctx, "language server "+what, attribute.Int("pillion.files", files))
}
