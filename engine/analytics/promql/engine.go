// This part answers PromQL over the telemetry of runs. An expression is taken apart (package plan); its leaves
// are evaluated where the series are, and the rest here, by Prometheus' own engine.
//
// # What always holds
//
//  1. Every expression is taken apart into leaves, and these are evaluated on nodes: TestNodesAnswerAsOneEngineWould
//     and TestWindowsAreNeverDivided (package ask), TestLeavesAreSelectorsWithTheirRangeFunctions (package plan).
//  2. What is above the leaves is evaluated by the server: TestNodesAnswerAsOneEngineWould, whose nodes are handed
//     leaves alone.
//  3. A range is not divided into batches of time: TestWindowsAreNeverDivided.
//  4. Executor of nodes are merged in the order of time: TestAnswersAreMergedInTheOrderOfTime and
//     TestGridsAreMergedInTheOrderOfTime; one that is not in it is refused: TestAnAnswerOutOfOrderIsRefused (leaf).
//  5. Both sides of A / B are evaluated at the same instants: TestGridsAreThoseOfTheEngine (package plan) and
//     TestAsOneEngineWould.
//  6. The rest is evaluated by the unchanged engine of Prometheus: TestAsOneEngineWould, and promqltest in
//     deploy/promsuite.
//
// And no query writes to a database: TestQueriesWriteNothing (cli).

package promql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Engine answers queries. It is safe for concurrent use.
type Engine struct {
	options  EngineOptions
	lookback time.Duration
	outer    *promql.Engine
}

// NewEngine returns an engine; lookback is how old a sample may be that a selector alone takes.
func NewEngine(o EngineOptions, lookback time.Duration) *Engine {
	return &Engine{options: o, lookback: lookback, outer: o.Engine(time.Millisecond)}
}

// Instant is a query at one instant.
func (e *Engine) Instant(ctx context.Context, l LeafEvaluator, text string, at time.Time) (*Query, error) {
	return e.query(ctx, l, text, at, at, 0)
}

// Range is a query at the instants from start to end.
func (e *Engine) Range(
	ctx context.Context,
	l LeafEvaluator,
	text string,
	start, end time.Time,
	step time.Duration,
) (*Query,
	error) {
	return e.query(ctx, l, text, start, end, step)
}

func (e *Engine) query(
	_ context.Context,
	l LeafEvaluator,
	text string,
	start, end time.Time,
	step time.Duration,
) (*Query,
	error) {
	begin := time.Now()
	p, err := NewPlan(text, start, end, step, PlanOptions{Parser: e.options.Parser, Lookback: e.lookback,
		SubqueryStep: e.options.SubqueryStep})
	if err != nil {
		return nil, err
	}
	if step > 0 && p.Type != parser.ValueTypeVector && p.Type != parser.ValueTypeScalar {
		return nil, fmt.Errorf("invalid expression type %q for range query, must be Scalar or instant Vector",
			parser.DocumentedType(p.Type))
	}
	q := &Query{engine: e, leaves: l, plan: p, id: uuid.NewString()}
	q.stages.PlanMs = Milliseconds(time.Since(begin))
	return q, nil
}

// Query is one query; it is executed once.
type Query struct {
	// OnResult, where it is not nil, is called with each piece once its answer is there, one at a time; it may ask for
	// what the query comes to so far.
	OnResult func(WorkStats)

	engine  *Engine
	id      string
	stages  Stages
	leaves  LeafEvaluator
	plan    *QueryPlan
	close   func()
	cancel  context.CancelFunc
	stats   []WorkStats
	results [][]LeafResult
	points  int
	notes   annotations.Annotations
}

// Exec evaluates the query. The result is valid until Close.
func (q *Query) Exec(ctx context.Context) *promql.Result {
	ctx, q.cancel = context.WithCancel(ctx)
	if err := q.fetch(ctx); err != nil {
		return &promql.Result{Err: err, Warnings: q.notes}
	}
	begin := time.Now()
	var r *promql.Result
	r, q.close = q.PartialResult(ctx)
	q.stages.MergeMs = Milliseconds(time.Since(begin))
	return r
}

// PartialResult evaluates the query over the answers that are there. The result is valid until it is closed.
func (q *Query) PartialResult(ctx context.Context) (r *promql.Result, closed func()) {
	nothing := func() {}
	all := leafMatrices{}
	for i, l := range q.plan.Leaves {
		m, err := Merge(q.results[i])
		if err != nil {
			return &promql.Result{Err: err}, nothing
		}
		all[l.Key] = append(all[l.Key], m)
	}
	if q.plan.SingleLeaf {
		return &promql.Result{Value: all[q.plan.Leaves[0].Key][0], Warnings: q.notes}, nothing
	}
	var rest promql.Query
	var err error
	opts := promql.NewPrometheusQueryOpts(false, time.Millisecond, nil)
	if q.plan.Step == 0 {
		rest, err = q.engine.outer.NewInstantQuery(ctx, all, opts, q.plan.Text, q.plan.Start)
	} else {
		rest, err = q.engine.outer.NewRangeQuery(ctx, all, opts, q.plan.Text, q.plan.Start, q.plan.End, q.plan.Step)
	}
	if err != nil {
		return &promql.Result{Err: err}, nothing
	}
	r = rest.Exec(ctx)
	r.Warnings.Merge(q.notes)
	return r, rest.Close
}

// fetch has the leaves evaluated.
func (q *Query) fetch(ctx context.Context) error {
	r := &Request{QueryID: q.id, Plan: q.plan, Tasks: make([]Task, len(q.plan.Leaves)), Begin: time.Now()}
	q.results = make([][]LeafResult, len(r.Tasks))
	for i, l := range q.plan.Leaves {
		r.Tasks[i] = NewTask(l, q.engine.lookback)
	}
	defer func() {
		if r.Segmented.IsZero() {
			r.Segmented = time.Now()
		}
		q.stages.SegmentsMs = Milliseconds(r.Segmented.Sub(r.Begin))
		q.stages.LeavesMs = Milliseconds(time.Since(r.Segmented))
	}()
	return q.leaves.Evaluate(ctx, r, func(p WorkStats, a LeafResult) error {
		if len(q.stats) == 0 {
			q.stages.FirstMs = Milliseconds(time.Since(r.Begin))
		}
		q.results[p.Leaf] = append(q.results[p.Leaf], a)
		q.stats = append(q.stats, p)
		for _, text := range a.Warnings {
			q.notes.Add(note{text, annotations.PromQLWarning})
		}
		for _, text := range a.Infos {
			q.notes.Add(note{text, annotations.PromQLInfo})
		}
		if q.points += a.Series.TotalSamples(); q.points > q.engine.options.MaxSamples {
			return promql.ErrTooManySamples("what the leaves came to")
		}
		if q.OnResult != nil {
			q.OnResult(p)
		}
		return nil
	})
}

// note is an annotation that a node made: its place is in its text already.
type note struct {
	text string
	kind error
}

func (n note) Error() string { return n.text }
func (n note) Unwrap() error { return n.kind }

// Close gives back what the result is in.
func (q *Query) Close() {
	if q.cancel != nil {
		q.cancel()
	}
	if q.close != nil {
		q.close()
	}
}

// ID names the query, in logs and spans too.
func (q *Query) ID() string { return q.id }

// Stages is where its time went, once it was executed.
func (q *Query) Stages() Stages { return q.stages }

// Stats is what was evaluated where, once the query was executed.
func (q *Query) Stats() []WorkStats { return q.stats }

// Leaves are what the query was taken apart into.
func (q *Query) Leaves() []Leaf { return q.plan.Leaves }

// leafMatrices is what the leaves came to, by key: one matrix for each of its grids.
type leafMatrices map[string][]promql.Matrix

// Querier implements storage.Queryable.
func (f leafMatrices) Querier(_, _ int64) (storage.Querier, error) { return querier{f}, nil }

type querier struct{ found leafMatrices }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, m ...*labels.Matcher) storage.SeriesSet {
	matrices, ok := q.found[Key(m)]
	if !ok {
		return storage.ErrSeriesSet(fmt.Errorf("no leaf for the selector %v", m))
	}
	return &set{series: mergeGrids(matrices), at: -1}
}

var errLabels = errors.New("labels are not asked for while a query is evaluated")

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error) {
	return nil, nil, errLabels
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations,
	error) {
	return nil, nil, errLabels
}

func (querier) Close() error { return nil }

type set struct {
	series promql.Matrix
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return promql.NewStorageSeries(s.series[s.at]) }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// mergeGrids has the points of all grids of one selector: where two have one instant, the sample is the same.
func mergeGrids(m []promql.Matrix) promql.Matrix {
	if len(m) == 1 {
		return m[0]
	}
	var all promql.Matrix
	index := map[string]int{}
	var key []byte
	for _, matrix := range m {
		for _, s := range matrix {
			key = s.Metric.Bytes(key[:0])
			i, ok := index[string(key)]
			if !ok {
				index[string(key)] = len(all)
				all = append(all, s)
				continue
			}
			all[i].Floats = mergePoints(all[i].Floats, s.Floats, func(p promql.FPoint) int64 { return p.T })
			all[i].Histograms = mergePoints(all[i].Histograms, s.Histograms, func(p promql.HPoint) int64 { return p.T })
		}
	}
	return all
}

func mergePoints[P any](a, b []P, at func(P) int64) []P {
	out := make([]P, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch ta, tb := at(a[0]), at(b[0]); {
		case ta < tb:
			out, a = append(out, a[0]), a[1:]
		case tb < ta:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}
