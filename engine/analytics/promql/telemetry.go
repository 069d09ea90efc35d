package promql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Telemetry answers queries, and says which series there are.
type Telemetry struct {
	engine    *Engine
	catalog   Catalog
	leaves    LeafEvaluator
	evaluator *Evaluator
	options   EngineOptions
}

// lookback is how old a sample may be that a selector alone takes, as in Prometheus.
const lookback = 5 * time.Minute

// NewTelemetry returns what answers over the segments of a catalog. leaves evaluates over them; which labels there are
// is read by a node of this process.
func NewTelemetry(c Catalog, leaves LeafEvaluator, labels *Evaluator, o EngineOptions) *Telemetry {
	return &Telemetry{engine: NewEngine(o, lookback), catalog: c, leaves: leaves, evaluator: labels, options: o}
}

// Instant prepares a query at one instant.
func (t *Telemetry) Instant(ctx context.Context, text string, at time.Time) (*Query, error) {
	return t.engine.Instant(ctx, t.leaves, text, at)
}

// Range prepares a query at the instants from start to end.
func (t *Telemetry) Range(ctx context.Context, text string, start, end time.Time, step time.Duration) (*Query, error) {
	return t.engine.Range(ctx, t.leaves, text, start, end, step)
}

// Parser reads expressions as the queries do.
func (t *Telemetry) Parser() parser.Parser { return t.options.Parser }

// ErrTooManySeries says that more match than were wanted.
var ErrTooManySeries = errors.New("too many series match")

// Series are the labels of up to most series that any of the selectors selects between two times, or of all where there
// is no selector.
func (t *Telemetry) Series(ctx context.Context, selectors [][]*labels.Matcher, from, to time.Time, most int) (
	[]labels.Labels, error) {
	segments, err := t.catalog.Segments(ctx, from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return nil, err
	}
	if len(selectors) == 0 {
		selectors = [][]*labels.Matcher{nil}
	}
	known := map[string]bool{}
	var all []labels.Labels
	var key []byte
	// One segment after the other: all of them may be more than fit in memory.
	for _, s := range segments {
		if !slices.ContainsFunc(selectors, func(m []*labels.Matcher) bool { return ofRun(s, m) }) {
			continue
		}
		sets, err := t.evaluator.Series(ctx, []Segment{s})
		if err != nil {
			return nil, fmt.Errorf("reading labels: %w", err)
		}
		querier, err := sets.Querier(from.UnixMilli(), to.UnixMilli())
		if err != nil {
			return nil, err
		}
		for _, m := range selectors {
			for found := querier.Select(ctx, false, nil, m...); found.Next(); {
				l := found.At().Labels()
				if key = l.Bytes(key[:0]); known[string(key)] {
					continue
				}
				if len(all) >= most {
					return nil, ErrTooManySeries
				}
				known[string(key)], all = true, append(all, l)
			}
		}
	}
	slices.SortFunc(all, labels.Compare)
	return all, nil
}
