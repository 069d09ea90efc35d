// This part evaluates a leaf of a PromQL expression over the series that are at hand, and gives what it came to as a
// Parquet file, which whoever asked reads and merges with those of others.

package promql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

// Task is a leaf as it is handed out.
type Task struct {
	Expr string `json:"expr"`
	Raw  bool   `json:"raw,omitempty"`
	Grid Grid   `json:"grid"`
	// LookbackMs is how old a sample may be that a selector alone takes.
	LookbackMs int64 `json:"lookback_ms"`
	// Stats: of histograms only their counts and sums are looked at, and fetched.
	Stats bool `json:"stats,omitempty"`
}

// NewTask is a leaf of a plan as a task.
func NewTask(l Leaf, lookback time.Duration) Task {
	return Task{Expr: l.Expr, Raw: l.Raw, Grid: l.Grid, Stats: l.Stats, LookbackMs: lookback.Milliseconds()}
}

// Edges are where the windows of a task begin and end; ok is false where more of a window is looked at than its first
// and its last sample, or where windows do not follow the grid.
func (t Task) Edges(p parser.Parser) (e series.Edges, ok bool) {
	expr, err := p.ParseExpr(t.Expr)
	if err != nil || t.Raw {
		return e, false
	}
	call, ok := expr.(*parser.Call)
	if !ok || call.Func.Name != "rate" && call.Func.Name != "increase" && call.Func.Name != "delta" {
		return e, false
	}
	window, ok := call.Args[0].(*parser.MatrixSelector)
	if !ok {
		return e, false
	}
	of, ok := window.VectorSelector.(*parser.VectorSelector)
	if !ok || of.Timestamp != nil || of.StartOrEnd != 0 || of.Anchored || of.Smoothed {
		return e, false
	}
	return series.Edges{End: t.Grid.Start - of.OriginalOffset.Milliseconds(), Step: max(t.Grid.Step, 1),
		Range: window.Range.Milliseconds()}, true
}

// EngineOptions are those of the engines of the server and of the nodes, which have to agree.
type EngineOptions struct {
	Parser parser.Parser
	// SubqueryStep is in milliseconds that of a subquery which names none.
	SubqueryStep func(rangeMs int64) int64
	// MaxSamples is how many an evaluation may have in memory.
	MaxSamples int
	Timeout    time.Duration
}

// DefaultOptions are those of Prometheus, without its experimental functions, and with fewer samples in memory: the
// process carries runs, too.
func DefaultOptions() EngineOptions {
	return EngineOptions{Parser: parser.NewParser(parser.Options{}), MaxSamples: 10_000_000, Timeout: 2 * time.Minute,
		SubqueryStep: func(int64) int64 { return time.Second.Milliseconds() }}
}

// Engine returns an engine with the options; lookback is for queries that do not say theirs.
func (o EngineOptions) Engine(lookback time.Duration) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: o.MaxSamples, Timeout: o.Timeout, LookbackDelta: lookback,
		NoStepSubqueryIntervalFn: o.SubqueryStep, EnableAtModifier: true, EnableNegativeOffset: true, Parser: o.Parser})
}

// LeafResult is what a leaf came to over some of its series.
type LeafResult struct {
	// Series are in the order of their labels. They share no memory with an engine.
	Series promql.Matrix
	// Warnings and Infos are what the engine had to say.
	Warnings, Infos []string
	// Samples is how many were read.
	Samples int64
	// Cost is what it took.
	Cost nodes.WorkCost
}

// Evaluate evaluates a task with an engine over the series of q, and hands the answer to fn, which does not keep it:
// its memory is the engine's.
func Evaluate(ctx context.Context, e *promql.Engine, q storage.Queryable, t Task, fn func(LeafResult) error) error {
	opts := promql.NewPrometheusQueryOpts(false, time.Duration(t.LookbackMs)*time.Millisecond, nil)
	if t.Stats {
		q = statsOnly{q}
	}
	var query promql.Query
	var err error
	if t.Raw {
		query, err = e.NewInstantQuery(ctx, q, opts, t.Expr, time.UnixMilli(t.Grid.End))
	} else {
		query, err = e.NewRangeQuery(ctx, q, opts, t.Expr, time.UnixMilli(t.Grid.Start), time.UnixMilli(t.Grid.End),
			time.Duration(t.Grid.Step)*time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("evaluating a leaf: %w", err)
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		return result.Err
	}
	matrix, ok := result.Value.(promql.Matrix)
	if !ok {
		return fmt.Errorf("evaluating the leaf %q: a %s", t.Expr, result.Value.Type())
	}
	a := LeafResult{Series: matrix}
	a.Warnings, a.Infos = result.Warnings.AsStrings(t.Expr, 0, 0)
	if s := query.Stats(); s != nil && s.Samples != nil {
		a.Samples = s.Samples.TotalSamples
	}
	return fn(a)
}

// ErrSameLabels is the engine's own word for series that cannot be told apart any more.
var ErrSameLabels = errors.New("vector cannot contain metrics with the same labelset")

// Merge puts together what a leaf came to over several sets of series, in the order of their labels.
// Series of one set are on no other: after a range function, which takes the name away, two may be equal.
func Merge(answers []LeafResult) (promql.Matrix, error) {
	n := 0
	for i := range answers {
		n += len(answers[i].Series)
	}
	all := make(promql.Matrix, 0, n)
	heads := make([]promql.Matrix, 0, len(answers))
	for i := range answers {
		if len(answers[i].Series) > 0 {
			heads = append(heads, answers[i].Series)
		}
	}
	for len(heads) > 0 {
		least := 0
		for i := 1; i < len(heads); i++ {
			if labels.Compare(heads[i][0].Metric, heads[least][0].Metric) < 0 {
				least = i
			}
		}
		if len(all) > 0 && labels.Equal(all[len(all)-1].Metric, heads[least][0].Metric) {
			return nil, ErrSameLabels
		}
		all = append(all, heads[least][0])
		if heads[least] = heads[least][1:]; len(heads[least]) == 0 {
			heads = append(heads[:least], heads[least+1:]...)
		}
	}
	return all, nil
}

// statsOnly are series whose histograms have no buckets, as the engine itself reads them where it needs none.
type statsOnly struct{ storage.Queryable }

func (q statsOnly) Querier(from, to int64) (storage.Querier, error) {
	querier, err := q.Queryable.Querier(from, to)
	return statsQuerier{querier}, err
}

type statsQuerier struct{ storage.Querier }

func (q statsQuerier) Select(ctx context.Context, sorted bool, h *storage.SelectHints,
	m ...*labels.Matcher) storage.SeriesSet {
	return statsSet{q.Querier.Select(ctx, sorted, h, m...)}
}

type statsSet struct{ storage.SeriesSet }

func (s statsSet) At() storage.Series { return statsSeries{s.SeriesSet.At()} }

type statsSeries struct{ storage.Series }

func (s statsSeries) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	// The iterator that is used again is that of the wrapped series, if it is one of these.
	if stats, ok := it.(*promql.HistogramStatsIterator); ok {
		stats.Reset(s.Series.Iterator(stats.Iterator))
		return stats
	}
	return promql.NewHistogramStatsIterator(s.Series.Iterator(nil))
}
