// This part tells the kinds and statements of runs apart: how each went over time, and how it compares with the
// same of another run.
//
// It reads segments, which hold every second of a run with its distributions, and no execution. A run has a segment
// some seconds after its end, when it was taken in.

package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// RunDetails know everything that belongs to a run.
type RunDetails interface {
	Detail(ctx context.Context, runID string) (engine.RunDetail, error)
}

// Segments opens the newest segment of a run; without one it is store.ErrNotFound.
type Segments interface {
	LatestSegment(ctx context.Context, runID string) (*segment.File, error)
}

// BreakdownReader reads what there is of kinds and statements. It is safe for concurrent use. Errors that users may see
// are
// *engine.Error.
type BreakdownReader struct {
	Runs     RunDetails
	Segments Segments
}

// PartKey is what is told apart: a kind of operations, or a statement of it.
type PartKey struct {
	Kind engine.Kind `json:"kind"`
	// StatementID is empty for the kind as a whole.
	StatementID string `json:"statement_id"`
	// InTransaction: the statement as a part of transactions, which are what counts as operations.
	InTransaction bool `json:"in_transaction"`
}

// KindCurves are the kinds of a run over time. All lists are as long as ElapsedSeconds.
type KindCurves struct {
	RunID string `json:"run_id"`
	// ResolutionSeconds is what a point stands for, but for the first and the last, which may be shorter.
	ResolutionSeconds float64 `json:"resolution_seconds"`
	// ElapsedSeconds is when each point ends, from the start of the run.
	ElapsedSeconds []float64   `json:"elapsed_seconds" nullable:"false"`
	Kinds          []KindCurve `json:"kinds" nullable:"false"`
}

// KindCurve is a kind over time. A point without an operation has a rate of 0 and no latencies; one of which a part of
// the record is lost has nothing.
type KindCurve struct {
	Kind         engine.Kind `json:"kind"`
	QPS          []*float64  `json:"qps" nullable:"false"`
	ErrorsPerSec []*float64  `json:"errors_per_sec" nullable:"false"`
	P50          []*float64  `json:"p50_ms" nullable:"false"`
	P95          []*float64  `json:"p95_ms" nullable:"false"`
	P99          []*float64  `json:"p99_ms" nullable:"false"`
}

// Curves reads the kinds of a run that is over in at most so many points, warm-up included.
func (r *BreakdownReader) Curves(ctx context.Context, runID string, most int) (KindCurves, error) {
	d, err := r.ended(ctx, runID)
	if err != nil {
		return KindCurves{}, err
	}
	from := d.Summary.MeasuredFrom.Time
	if w := d.WarmupStartTime.Time; !w.IsZero() && w.Before(from) {
		from = w
	}
	of, bins, err := r.read(ctx, d, segment.KindSeconds, from, most, true)
	if err != nil {
		return KindCurves{}, err
	}
	c := KindCurves{RunID: runID, ResolutionSeconds: float64(bins.step), ElapsedSeconds: bins.ends(), Kinds: []KindCurve{}}
	h := histogram.New()
	for _, part := range of.order() {
		curve := KindCurve{Kind: part.Kind}
		for i, s := range of.parts[part][bins.low : bins.high+1] {
			seconds := bins.length[bins.low+i]
			var rate, failing *float64
			lost := bins.lost[bins.low+i]
			if !lost {
				rate, failing = new(float64(s.operations)/seconds), new(float64(s.errors)/seconds)
			}
			curve.QPS, curve.ErrorsPerSec = append(curve.QPS, rate), append(curve.ErrorsPerSec, failing)
			var at [3]*float64
			if data := s.latency.Data(); s.operations > 0 && !lost {
				h.Reset()
				if err := h.MergeData(&data); err != nil {
					return c, fmt.Errorf("reading the latencies of %s: %w", part.Kind, err)
				}
				for k, q := range []float64{0.5, 0.95, 0.99} {
					ms := h.Quantile(q) / 1e6
					at[k] = &ms
				}
			}
			curve.P50, curve.P95, curve.P99 = append(curve.P50, at[0]), append(curve.P95, at[1]), append(curve.P99, at[2])
		}
		c.Kinds = append(c.Kinds, curve)
	}
	return c, nil
}

// ended is a run that is over and has figures.
func (r *BreakdownReader) ended(ctx context.Context, runID string) (engine.RunDetail, error) {
	d, err := r.Runs.Detail(ctx, runID)
	if err != nil {
		return d, err
	}
	if !d.Status.Terminal() || d.Summary == nil {
		return d, &engine.Error{Code: engine.CodeConflict, Message: "The run is not over, or has no figures yet.",
			Hint: "Its kinds and statements can be told apart some seconds after its end."}
	}
	return d, nil
}

// read reads a relation of a run's segment within its measurement, in the order of time; with warm-up where it is asked
// for.
func (r *BreakdownReader) read(ctx context.Context, d engine.RunDetail, relation string, from time.Time, most int,
	warmup bool) (*statementSeconds, *bins, error) {
	b := newBins(d.StartTime.Time, from, d.Summary.MeasuredTo.Time, most)
	if b == nil {
		return nil, nil, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("Nothing was measured in run %s.", d.RunID),
			Hint:    "it may have failed before its load, been stopped in its warm-up, or lost its record"}
	}
	b.markLost(d.StartTime.Time, d.Summary)
	file, err := r.Segments.LatestSegment(ctx, d.RunID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict,
			Message: fmt.Sprintf("The seconds of the kinds of run %s are not there yet.", d.RunID),
			Hint:    "A run is taken in some seconds after its end, by a server that keeps results; look again then."}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("opening the series of run %s: %w", d.RunID, err)
	}
	defer func() { _ = file.Close() }() // only read
	of := &statementSeconds{parts: map[PartKey][]binTotals{}, total: map[PartKey]int64{},
		carried: map[PartKey]*carriedOver{}}
	edges := edgesOf(&d, b)
	var counts []int64
	var buckets []segment.Bucket
	err = file.Read(segment.Query{Relations: []string{relation}}, func(row *segment.Row) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, ok := b.index(int(row.Second))
		if !ok {
			return nil
		}
		kind, err := engine.ParseKind(row.Kind)
		if err != nil {
			return err
		}
		part := PartKey{kind, row.StatementID, row.InTransaction}
		if row.Warmup && !warmup {
			of.carry(part, int(row.Second), at, b, edges, row.Operations)
			return nil
		}
		if buckets, err = row.Buckets(buckets); err != nil {
			return err
		}
		counts = dense(counts, buckets)
		of.add(part, at, len(b.length), row, counts)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the series of run %s: %w", d.RunID, err)
	}
	of.cutLast(b, d.Summary)
	of.settleCarried(d.Summary, b, edges)
	return of, b, nil
}

// dense are the counts of all buckets from the first on, in the memory of into.
func dense(into []int64, buckets []segment.Bucket) []int64 {
	into = into[:0]
	for _, b := range buckets {
		for int(b.At) > len(into) {
			into = append(into, 0)
		}
		into = append(into, b.Count)
	}
	return into
}
