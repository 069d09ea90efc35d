package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

const (
	// maxBins is in how many pieces the runs of a comparison are looked at together.
	maxBins = 600
	// maxParts is how many kinds, and how many statements, are compared: the most frequent ones.
	maxParts = 40
	// manyParts are so many that a difference by chance is to be expected among their figures.
	manyParts = 4
)

// PartComparison compares the kinds and the statements of two sides.
type PartComparison struct {
	Kinds      []ComparedPart `json:"kinds" nullable:"false"`
	Statements []ComparedPart `json:"statements" nullable:"false"`
	// Notes are reasons for care, in sentences.
	Notes []string `json:"notes" nullable:"false"`
}

// ComparedPart is a part of both sides.
type ComparedPart struct {
	PartKey
	// A and B are how many operations each side had of it in its measurement.
	A int64 `json:"a_operations"`
	B int64 `json:"b_operations"`
	// Verdict is unclear, and Metrics are empty, where one side had none.
	Verdict Verdict  `json:"verdict"`
	Metrics []Metric `json:"metrics" nullable:"false"`
}

// runParts is a run with its parts.
type runParts struct {
	run              engine.RunDetail
	kinds, statement *statementSeconds
	bins             *bins
}

// Compare compares what the runs of side b have of each kind and of each statement with those of side a.
func (r *BreakdownReader) Compare(ctx context.Context, a, b []string, o Options) (PartComparison, error) {
	c := PartComparison{Kinds: []ComparedPart{}, Statements: []ComparedPart{}, Notes: []string{}}
	var sides [2][]runParts
	for side, ids := range [2][]string{a, b} {
		if len(ids) == 0 {
			return c, engine.InvalidField([]string{"a", "b"}[side], "names no run",
				"give one run id, or several with commas between")
		}
		for _, id := range ids {
			one, err := r.parts(ctx, id, maxBins/(len(a)+len(b)))
			if err != nil {
				return c, err
			}
			sides[side] = append(sides[side], one)
		}
	}
	var err error
	if c.Kinds, err = compareParts(ctx, sides, func(x runParts) *statementSeconds { return x.kinds }, o); err != nil {
		return c, err
	}
	if c.Statements, err = compareParts(
		ctx,
		sides,
		func(x runParts) *statementSeconds { return x.statement },
		o,
	); err != nil {
		return c, err
	}
	if n := len(c.Kinds) + len(c.Statements); n >= manyParts {
		c.Notes = append(c.Notes, fmt.Sprintf("%d kinds and statements are compared here in 6 figures each. At 99 %% "+
			"confidence, about one figure of a hundred differs by chance: believe what several figures say.", n))
	}
	return c, nil
}

func (r *BreakdownReader) parts(ctx context.Context, id string, most int) (one runParts, err error) {
	if one.run, err = r.ended(ctx, id); err != nil {
		return one, err
	}
	from := one.run.Summary.MeasuredFrom.Time
	if one.kinds, one.bins, err = r.read(ctx, one.run, segment.KindSeconds, from, most, false); err != nil {
		return one, err
	}
	one.statement, _, err = r.read(ctx, one.run, segment.StatementSeconds, from, most, false)
	return one, err
}

// compareParts compares the parts that either side has, the most frequent first.
func compareParts(
	ctx context.Context,
	sides [2][]runParts,
	of func(runParts) *statementSeconds,
	o Options,
) ([]ComparedPart, error) {
	all := &statementSeconds{parts: map[PartKey][]binTotals{}, total: map[PartKey]int64{}}
	counts := map[PartKey]*[2]int64{}
	for side, runs := range sides {
		for _, run := range runs {
			for p, n := range of(run).total {
				if counts[p] == nil {
					counts[p] = &[2]int64{}
				}
				counts[p][side] += n
				all.total[p] += n
				all.parts[p] = nil
			}
		}
	}
	order := all.order()
	out := make([]ComparedPart, 0, len(order))
	for _, p := range order[:min(len(order), maxParts)] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one := ComparedPart{PartKey: p, A: counts[p][0], B: counts[p][1], Verdict: Unclear, Metrics: []Metric{}}
		if one.A > 0 && one.B > 0 {
			c, err := Between(statementMeasured(sides[0], of, p), statementMeasured(sides[1], of, p), o)
			if err != nil {
				return nil, fmt.Errorf("comparing %s %s: %w", p.Kind, p.StatementID, err)
			}
			one.Verdict, one.Metrics = c.Verdict, c.Metrics
		}
		out = append(out, one)
	}
	return out, nil
}

// statementMeasured is a part of the runs of a side, those among them that had it.
func statementMeasured(side []runParts, of func(runParts) *statementSeconds, p PartKey) []MeasuredRun {
	var out []MeasuredRun
	for _, run := range side {
		s := of(run)
		if s.total[p] == 0 {
			continue
		}
		m := MeasuredRun{Seconds: s.measured(p, run.bins)}
		m.Summary.RunID = run.run.RunID
		m.Summary.RecordPartial, m.Summary.CoveredSeconds = run.run.Summary.RecordPartial, run.run.Summary.CoveredSeconds
		applyFigures(&m.Summary.Figures, run.run.Summary, p)
		out = append(out, m)
	}
	return out
}

// applyFigures puts the figures of a part into a summary, as the page of its run shows them.
func applyFigures(f *engine.Figures, s *engine.Summary, p PartKey) {
	put := func(count, errors int64, qps *float64, l *engine.LatencyMs) {
		if count == 0 {
			return
		}
		f.Operations, f.QPS, f.LatencyMs = count, qps, l
		f.Errors.Count, f.Errors.Rate = errors, new(float64(errors)/float64(count))
	}
	if p.StatementID == "" {
		if k := s.ByKind[p.Kind]; k != nil {
			put(k.Count, k.Errors, k.QPS, k.LatencyMs)
		}
		return
	}
	i := slices.IndexFunc(s.ByStatement, func(x engine.StatementFigures) bool {
		return x.StatementID == p.StatementID && x.Kind == p.Kind && x.InTransaction == p.InTransaction
	})
	if i >= 0 {
		x := s.ByStatement[i]
		var l *engine.LatencyMs
		if y := x.LatencyMs; y != nil {
			l = &engine.LatencyMs{Avg: y.Avg, P50: y.P50, P95: y.P95, P99: y.P99, Max: y.Max}
		}
		put(x.Count, x.Errors, x.QPS, l)
	}
}
