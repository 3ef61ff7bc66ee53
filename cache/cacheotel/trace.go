package cacheotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/getorprime/getorprime/cache"
	"github.com/getorprime/getorprime/loader"
)

const canceledKey = attribute.Key("canceled")

// starterKey is the key under which a load's context has the span context of the
// caller that started it.
type starterKey struct{}

// StartLoad starts the span of a load. The cache calls it.
func (o *Observer) StartLoad(ctx context.Context, prefix, _ string) (load context.Context, end func(err error)) {
	starter := trace.SpanContextFromContext(ctx)
	ctx, span := o.tracer.Start(ctx, "getorprime load", trace.WithAttributes(prefixKey.String(prefix)))
	load = context.WithValue(ctx, starterKey{}, starter)
	return load, func(err error) {
		finish(span, err, context.Cause(load))
		span.End()
	}
}

// finish says how a load ended whose context has ended because of cause, if it has.
func finish(span trace.Span, err, cause error) {
	switch {
	case err == nil:
	case cause != nil && errors.Is(err, cause) && !errors.Is(err, cache.ErrLoadTimeout):
		span.SetAttributes(canceledKey.Bool(true))
	default:
		span.RecordError(err, stackOf(err)...)
		span.SetStatus(codes.Error, err.Error())
	}
}

// stackOf returns the stack of the loader's panic, named as OpenTelemetry's
// conventions for exceptions have it.
func stackOf(err error) []trace.EventOption {
	var p *loader.PanicError
	if !errors.As(err, &p) || len(p.Stack) == 0 {
		return nil
	}
	return []trace.EventOption{trace.WithAttributes(attribute.String("exception.stacktrace", string(p.Stack)))}
}

// Shared links the span in ctx to that of the load whose answer the caller gets,
// unless the caller started the load: then it is the parent already. The cache
// calls it.
func (o *Observer) Shared(ctx, load context.Context) {
	span := trace.SpanFromContext(ctx)
	starter, _ := load.Value(starterKey{}).(trace.SpanContext)
	if !span.SpanContext().Equal(starter) {
		span.AddLink(trace.LinkFromContext(load))
	}
}
