// Package trace makes the spans of runs, of refreshes and of queries: what took how long, in which process.
//
// All ids follow from names. The trace of a run is found by the run's id alone, so that a server that takes a run over
// goes on with its trace, a node is part of it before anything was sent, and a line of a log names it without state. A
// span is told when it is over; nothing is held while it goes on. A nil *Tracer makes none, and costs nothing.
package trace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Field is something that a span says of what it is about.
type Field = attribute.KeyValue

// String is a field.
func String(key, value string) Field { return attribute.String(key, value) }

// Number is a field.
func Number[N int | int64](key string, value N) Field { return attribute.Int64(key, int64(value)) }

// Bool is a field.
func Bool(key string, value bool) Field { return attribute.Bool(key, value) }

// Span is something that took time.
type Span struct {
	// Name says what it was, of a few that there are: which run it was is a field.
	Name string
	// Trace names the trace: the id of a run, or what else is traced.
	Trace string
	// Key names the span in its trace, so that others can be below it, also those of another process; without one
	// nothing is. Root is that of the first.
	Key string
	// ParentKey is the key of the span that it is part of; empty is Root.
	ParentKey string
	// Parent is the context that another process has sent, which says more than Of and Below; see Tracer.Context.
	Parent     string
	Begin, End time.Time
	// Failed says why it did not become what it should; empty when it did.
	Failed string
	Fields []Field
}

// Root is the key of the first span of a trace, which all others are part of.
const Root = "root"

// ID is the id of the trace of what has that name, in hexadecimal.
func ID(of string) string {
	id := traceID(of)
	return hex.EncodeToString(id[:])
}

func traceID(of string) (id trace.TraceID) {
	sum := sha256.Sum256([]byte(of))
	copy(id[:], sum[:])
	return id
}

// spanID is that of the span with that key in the trace of what has that name.
func spanID(of, key string) (id trace.SpanID) {
	sum := sha256.Sum256([]byte(of + "\x00" + key))
	copy(id[:], sum[:])
	return id
}

// Tracer makes spans. Its methods return at once, and are safe for concurrent use.
type Tracer struct {
	spans   trace.Tracer
	sampled func(trace.TraceID) bool
}

// New makes spans of a library's; sampled says which traces are to be kept. The ids that spans are to have are in the
// contexts that they are started with: Wanted.
func New(spans trace.Tracer, sampled func(trace.TraceID) bool) *Tracer {
	return &Tracer{spans, sampled}
}

// Enabled reports whether spans are made.
func (t *Tracer) Enabled() bool { return t != nil }

// Sampled reports whether the trace of what has that name is kept.
func (t *Tracer) Sampled(of string) bool { return t != nil && of != "" && t.sampled(traceID(of)) }

// Context is what another process needs to put its spans below the one with that key, as the W3C writes it; empty where
// no spans are made.
func (t *Tracer) Context(of, key string) string {
	if t == nil || of == "" {
		return ""
	}
	flags := 0
	if t.Sampled(of) {
		flags = 1
	}
	return fmt.Sprintf("00-%s-%s-%02x", ID(of), spanID(of, key), flags)
}

// ContextBelow is the context of the span with that key in a trace that another process has begun: parent is what it
// has sent. It is empty where parent is, and Of and Below of a span say where that belongs.
func (t *Tracer) ContextBelow(parent, of, key string) string {
	if c, ok := parse(parent); ok && t != nil {
		return fmt.Sprintf("00-%s-%s-%02x", c.TraceID(), spanID(of, key), byte(c.TraceFlags()))
	}
	return ""
}

// Record tells of a span that is over.
func (t *Tracer) Record(s Span) {
	if t == nil || s.Trace == "" {
		return
	}
	ctx := context.Background()
	parent, sent := parse(s.Parent)
	if !sent {
		c := trace.SpanContextConfig{
			TraceID: traceID(s.Trace),
			SpanID:  spanID(s.Trace, cmp.Or(s.ParentKey, Root)),
			Remote:  true,
		}
		if t.sampled(c.TraceID) {
			c.TraceFlags = trace.FlagsSampled
		}
		parent = trace.NewSpanContext(c)
	}
	if !parent.IsSampled() {
		return
	}
	ids := spanIDs{trace: parent.TraceID()}
	if s.Key != "" {
		ids.span = spanID(s.Trace, s.Key)
	}
	if s.Key != Root {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	ctx = context.WithValue(ctx, spanIDsKey{}, ids)
	_, span := t.spans.Start(ctx, s.Name, trace.WithTimestamp(s.Begin), trace.WithAttributes(s.Fields...))
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	span.End(trace.WithTimestamp(s.End))
}

// wanted are the ids that a span is to have.
type (
	spanIDs struct {
		trace trace.TraceID
		span  trace.SpanID // zero is any
	}
	spanIDsKey struct{}
)

// SpanIDs are the ids that a span that is started with the context is to have; those that are zero may be any.
func SpanIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	ids, _ := ctx.Value(spanIDsKey{}).(spanIDs)
	return ids.trace, ids.span
}

// parse reads what Context has written. What does not read as that is none.
func parse(parent string) (trace.SpanContext, bool) {
	parts := strings.Split(parent, "-")
	if len(parts) != 4 || len(parts[0]) != 2 || len(parts[3]) != 2 {
		return trace.SpanContext{}, false
	}
	id, err := trace.TraceIDFromHex(parts[1])
	if err != nil {
		return trace.SpanContext{}, false
	}
	span, err := trace.SpanIDFromHex(parts[2])
	if err != nil {
		return trace.SpanContext{}, false
	}
	flags, err := hex.DecodeString(parts[3])
	if err != nil {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span,
		TraceFlags: trace.TraceFlags(flags[0]), Remote: true}), true
}
