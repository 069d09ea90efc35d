package run

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
)

// SpanTracker makes the spans of one run from its events and the decisions on them. A nil *SpanTracker does nothing.
type SpanTracker struct {
	t         *trace.Tracer
	run       string
	fields    []trace.Field
	startedAt time.Time // of the run

	phase engine.Phase
	// open are the spans that have begun and not ended, by name.
	open map[string]openSpan
	// stop is why the run was told to end.
	stop     engine.StopReason
	status   engine.Status
	canceled string
	resumed  bool
}

// openSpan is when a span began, and in which phase.
type openSpan struct {
	at    time.Time
	phase engine.Phase
}

// Names of spans.
const (
	spanRun       = "run"
	spanPrepare   = "prepare"
	spanPlacement = "placement"
	spanDrain     = "drain"
	spanFigures   = "figures"
	spanEnrich    = "enrichment"
)

// NewSpanTracker begins to follow a run. It is nil where no spans are made.
func NewSpanTracker(t *trace.Tracer, run engine.Run) *SpanTracker {
	if t == nil {
		return nil
	}
	return &SpanTracker{
		t:         t,
		run:       run.RunID,
		startedAt: run.StartTime.Time,
		status:    run.Status,
		fields: []trace.Field{
			trace.String("run_id", run.RunID),
			trace.String("load_mode", string(run.Scenario.Workload.LoadMode)),
			trace.String("template_name", run.Scenario.Name),
		},
		phase: run.Phase,
		open:  map[string]openSpan{},
	}
}

// Handle takes what has happened to the run, and what was decided.
func (l *SpanTracker) Handle(now time.Time, h lifecycle.Event, decided []lifecycle.Action) {
	if l == nil {
		return
	}
	switch h := h.(type) {
	case lifecycle.RunStarted:
		l.phase = engine.PhaseNone
	case lifecycle.RunResumed:
		p := l.phase
		l.phase, l.resumed = engine.PhaseNone, true
		l.setPhase(now, p)
	case lifecycle.Prepared:
		l.end(spanPrepare, now, "")
	case lifecycle.PrepareFailed:
		l.end(spanPrepare, now, h.Message)
	case lifecycle.FiguresReady:
		l.end(spanFigures, now, "")
	case lifecycle.EnrichmentDone:
		l.end(spanEnrich, now, "")
	}
	for _, a := range decided {
		switch a := a.(type) {
		case lifecycle.Prepare:
			l.setPhase(now, engine.PhasePreparing)
			l.begin(spanPrepare, now)
		case lifecycle.AssignWorkers:
			l.begin(spanPlacement, now)
		case lifecycle.Change:
			l.transition(now, a)
		case lifecycle.ComputeFigures:
			l.begin(spanFigures, now)
		case lifecycle.StartEnrichment:
			l.begin(spanEnrich, now)
		case lifecycle.End:
			l.endRun(now)
		}
	}
}

// transition takes a transition of the run.
func (l *SpanTracker) transition(now time.Time, c lifecycle.Change) {
	for _, e := range c.Events {
		switch e.Type {
		case engine.EventStart:
			l.end(spanPlacement, now, "")
		case engine.EventStop:
			if _, open := l.open[spanDrain]; !open {
				l.begin(spanDrain, now)
			}
		}
	}
	if c.StopReason != "" {
		l.stop = c.StopReason
	}
	if c.CancellationReason != "" {
		l.canceled = c.CancellationReason
	}
	if c.To != "" {
		l.status = c.To
		if c.To.Terminal() {
			l.end(spanPlacement, now, l.canceled)
			l.end(spanDrain, now, "")
		}
	}
	if c.Phase != nil {
		l.setPhase(now, *c.Phase)
	}
}

// setPhase ends the phase of the run and begins another.
func (l *SpanTracker) setPhase(now time.Time, p engine.Phase) {
	if p == l.phase {
		return
	}
	l.end(string(l.phase), now, "")
	if l.phase = p; p != engine.PhaseNone {
		l.begin(string(p), now)
	}
}

func (l *SpanTracker) begin(name string, now time.Time) { l.open[name] = openSpan{now, l.phase} }

// end tells of a span that has begun.
func (l *SpanTracker) end(name string, now time.Time, failed string) {
	b, open := l.open[name]
	if !open {
		return
	}
	delete(l.open, name)
	s := trace.Span{
		Name:   name,
		Trace:  l.run,
		Begin:  b.at,
		End:    now,
		Failed: failed,
		Fields: []trace.Field{trace.String("run_id", l.run)},
	}
	switch {
	case name == string(b.phase):
		s.Name, s.Key = phaseKey(b.phase), phaseKey(b.phase)
	case b.phase != engine.PhaseNone:
		s.ParentKey = phaseKey(b.phase)
	}
	l.t.Record(s)
}

func phaseKey(p engine.Phase) string { return "phase " + string(p) }

// endRun tells of the run itself.
func (l *SpanTracker) endRun(now time.Time) {
	failed := ""
	if l.status == engine.StatusFailed {
		failed = l.canceled
		if failed == "" {
			failed = string(l.status)
		}
	}
	l.t.Record(trace.Span{Name: spanRun, Trace: l.run, Key: trace.Root, Begin: l.startedAt, End: now, Failed: failed,
		Fields: append(l.fields, trace.String("status", string(l.status)), trace.String("stop_reason", string(l.stop)),
			trace.Bool("resumed", l.resumed))})
}

// Sent takes an event that was given to a node, or why it could not be.
func (l *SpanTracker) Sent(now time.Time, node string, e engine.Event, err error) {
	if l == nil || e.Type != engine.EventStart && e.Type != engine.EventStop {
		return
	}
	s := trace.Span{
		Name:  "send " + string(e.Type),
		Trace: l.run,
		Begin: e.CreatedAt.Time,
		End:   now,
		Fields: []trace.Field{
			trace.String("run_id", l.run),
			trace.String("node_id", node),
			trace.Number("sequence_id", e.SequenceID),
		},
	}
	if e.Data.WorkerID != "" {
		s.Fields = append(s.Fields, trace.String("worker_id", e.Data.WorkerID))
	}
	if err != nil {
		s.Failed = fmt.Sprint(err)
	}
	l.t.Record(s)
}
