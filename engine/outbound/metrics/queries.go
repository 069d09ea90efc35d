package metrics

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// queries makes the metrics of queries over results.
func (m *Server) queries() {
	m.query = m.histogram(
		"loadstone_query_seconds",
		"Duration of SQL queries over results.",
		humanBuckets...)
	m.queryErrors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_query_errors_total",
		Help: "Failed SQL queries over results, by error code."}, []string{"reason"})
	// What nobody has seen yet is 0, and not missing.
	for _, code := range []engine.Code{engine.CodeInvalid, engine.CodeConflict, engine.CodeUnavailable,
		engine.CodeInternal} {
		m.queryErrors.WithLabelValues(string(code))
	}
	m.set = append(m.set, m.queryErrors)
}

// Queried takes a query over results; id is its caller's name for it, or empty.
func (m *Server) Queried(id string, took time.Duration, err error) {
	m.query.Observe(took.Seconds())
	if err != nil {
		m.queryErrors.WithLabelValues(string(codeOf(err))).Inc()
	}
	if !m.traces.Enabled() {
		return
	}
	// Callers may name two queries alike, whose traces are not the same.
	own := uuid.NewString()
	if id == "" {
		id = own
	}
	s := endedSpan("query", "query "+own, took, err)
	s.Fields = []trace.Field{trace.String("query_id", id)}
	m.traces.Record(s)
}

// Refreshed makes a span of what a claim was about, refreshed or not; run is the one that it took into the results
// database, or empty.
func Refreshed(traces *trace.Tracer, c refresh.Claim, run string, took time.Duration, err error) {
	if !traces.Enabled() {
		return
	}
	s := endedSpan("refresh", "refresh "+uuid.NewString(), took, err)
	s.Fields = []trace.Field{trace.String("dynamic_table", c.Table), trace.String("subtask", c.Subtask),
		trace.Number("epoch", c.Epoch)}
	if run != "" {
		s.Trace, s.Key = run, "" // it belongs to the trace of the run
		s.Fields = append(s.Fields, trace.String("run_id", run))
	}
	traces.Record(s)
}

// endedSpan is the first and only span of a trace that has just ended, after so long.
func endedSpan(name, of string, took time.Duration, err error) trace.Span {
	now := time.Now()
	s := trace.Span{Name: name, Trace: of, Key: trace.Root, Begin: now.Add(-took), End: now}
	if err != nil {
		s.Failed = engine.ErrorText(err)
	}
	return s
}

func codeOf(err error) engine.Code {
	var known *engine.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return engine.CodeInternal
}
