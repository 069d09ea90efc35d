package explore

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine/explore/leaf"
	"github.com/loadstone-db/loadstone/engine/explore/node"
	"github.com/loadstone-db/loadstone/engine/explore/plan"
	"github.com/loadstone-db/loadstone/engine/explore/series"
)

// Catalog says which segments there are.
type Catalog interface {
	// Segments are those that count now, of runs that have samples between the times (milliseconds, both included).
	Segments(ctx context.Context, from, to int64) ([]node.Segment, error)
}

// Local evaluates leaves in this process. It implements Leaves.
type Local struct {
	Catalog Catalog
	Node    *node.Node
}

// Piece is what one piece of work came to.
type Piece struct {
	// Leaf is its place among those of the plan.
	Leaf int `json:"leaf"`
	// Of is how many pieces the query has in all.
	Of int `json:"of"`
	// Segments is how many were read, Hits how many of them were in memory.
	Segments int   `json:"segments"`
	Hits     int   `json:"hits"`
	Samples  int64 `json:"samples"`
	Series   int   `json:"series"`
	// Bytes is the size of the file that the answer came in.
	Bytes  int     `json:"bytes"`
	TookMs float64 `json:"took_ms"`
}

// Evaluate implements Leaves. The segments of a leaf are divided, so that all processors have some.
func (l Local) Evaluate(ctx context.Context, q *plan.Query, tasks []leaf.Task,
	fn func(Piece, leaf.Answer) error) error {
	var works []work
	for i := range tasks {
		segments, err := l.Catalog.Segments(ctx, q.Leaves[i].From, q.Leaves[i].To)
		if err != nil {
			return err
		}
		for _, some := range divided(matching(segments, q.Leaves[i]), runtime.GOMAXPROCS(0)) {
			works = append(works, work{i, some})
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	for _, w := range works {
		g.Go(func() error {
			p, a, err := l.work(ctx, tasks[w.leaf], w)
			if err != nil {
				return err
			}
			p.Of = len(works)
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
	segments []node.Segment
}

func (l Local) work(ctx context.Context, t leaf.Task, w work) (p Piece, a leaf.Answer, err error) {
	if err := ctx.Err(); err != nil {
		return p, a, err
	}
	begin := time.Now()
	var file bytes.Buffer
	st, err := l.Node.Evaluate(ctx, t, w.segments, &file)
	if err != nil {
		return p, a, err
	}
	if a, err = leaf.Read(bytes.NewReader(file.Bytes()), int64(file.Len())); err != nil {
		return p, a, fmt.Errorf("a piece of work of the own node: %w", err)
	}
	return Piece{Leaf: w.leaf, Segments: st.Segments, Hits: st.Hits, Samples: st.Samples, Series: len(a.Series),
		Bytes: file.Len(), TookMs: float64(time.Since(begin).Microseconds()) / 1000}, a, nil
}

// matching are the segments whose runs can have series of a leaf.
func matching(segments []node.Segment, l plan.Leaf) []node.Segment {
	var some []node.Segment
	for _, s := range segments {
		if s.From <= l.To && s.To >= l.From && ofRun(s, l.Selector) {
			some = append(some, s)
		}
	}
	return some
}

// ofRun tells whether series of a segment can match, by the labels of its run.
func ofRun(s node.Segment, selector []*labels.Matcher) bool {
	return series.Matches(s.Labels, selector)
}

// divided are up to n groups of the segments.
func divided(segments []node.Segment, n int) [][]node.Segment {
	n = min(n, len(segments))
	groups := make([][]node.Segment, n)
	for i, s := range segments {
		groups[i%n] = append(groups[i%n], s)
	}
	return groups
}
