package promqltest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
)

// Local evaluates leaves without nodes, in as many pieces as there are processors. It implements promql.LeafEvaluator.
type Local struct {
	Catalog   promql.Catalog
	Evaluator *promql.Evaluator
}

// Evaluate implements promql.LeafEvaluator.
func (l Local) Evaluate(
	ctx context.Context,
	r *promql.Request,
	fn func(promql.WorkStats, promql.LeafResult) error,
) error {
	var works []work
	for i := range r.Tasks {
		segments, err := l.Catalog.Segments(ctx, r.Plan.Leaves[i].From, r.Plan.Leaves[i].To)
		if err != nil {
			return err
		}
		r.Segmented = time.Now()
		for _, some := range split(promql.Matching(segments, r.Plan.Leaves[i]), runtime.GOMAXPROCS(0)) {
			works = append(works, work{i, some})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	for _, w := range works {
		g.Go(func() error {
			p, a, err := l.work(ctx, r, w)
			if err != nil {
				return err
			}
			p.Total = len(works)
			mu.Lock()
			defer mu.Unlock()
			return fn(p, a)
		})
	}
	return g.Wait()
}

// work is some segments of a leaf.
type work struct {
	leaf     int
	segments []promql.Segment
}

func (l Local) work(
	ctx context.Context,
	r *promql.Request,
	w work,
) (p promql.WorkStats, a promql.LeafResult, err error) {
	if err := ctx.Err(); err != nil {
		return p, a, err
	}
	begin := time.Now()
	var file bytes.Buffer
	if _, _, err = l.Evaluator.Evaluate(ctx, r.Tasks[w.leaf], w.segments, &file); err != nil {
		return p, a, err
	}
	if a, err = promql.Read(bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil {
		return p, a, fmt.Errorf("a piece of work: %w", err)
	}
	return promql.WorkStats{Leaf: w.leaf, NodeID: "local", Attempt: 1, Preferred: true,
		Segments: a.Cost.Segments, Hits: a.Cost.Hits, Samples: a.Samples, Series: len(a.Series),
		Bytes: file.Len(), BeginMs: promql.Milliseconds(begin.Sub(r.Begin)), WaitMs: promql.Milliseconds(a.Cost.WaitNs),
		ReadMs:     promql.Milliseconds(a.Cost.ReadNs),
		EvaluateMs: promql.Milliseconds(a.Cost.EvaluateNs), TookMs: promql.Milliseconds(time.Since(begin))}, a, nil
}

// split are up to n groups of the segments.
func split(segments []promql.Segment, n int) [][]promql.Segment {
	n = min(n, len(segments))
	groups := make([][]promql.Segment, n)
	for i, s := range segments {
		groups[i%n] = append(groups[i%n], s)
	}
	return groups
}
