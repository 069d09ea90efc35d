package promql_test

import (
	"context"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
)

// TestWhatIsKeptInMemory: a segment is read once while it is kept; the next content of a run takes the place of the one
// before, and what was used longest ago goes first.
func TestWhatIsKeptInMemory(t *testing.T) {
	runs, err := promqltest.Runs(3)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	var size int64
	read := func(_ context.Context, s promql.Segment) (*series.Set, int64, error) {
		reads++
		f, err := runs[s.RunID[2]-'0'].Open()
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = f.Close() }()
		set, err := series.Read(f, s.Labels)
		if err == nil {
			size = max(size, set.Bytes())
		}
		return set, 0, err
	}
	use := func(n *promql.Evaluator, run int, name string) (hit bool) {
		s := runs[run].Segment
		s.Name = name
		at := promqltest.Noon.Add(30 * time.Second).UnixMilli()
		a, _, err := n.Evaluate(t.Context(), promql.Task{Expr: "loadstone_operations_total", LookbackMs: 5000,
			Grid: promql.Grid{Start: at, End: at, Step: 1}}, []promql.Segment{s}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return a.Cost.Hits == 1
	}
	n := promql.NewEvaluator(read, promql.DefaultOptions(), 1<<30)
	for i, want := range []bool{false, true, true} {
		if use(n, 0, "a") != want {
			t.Errorf("use %d: in memory is not %v", i, want)
		}
	}
	if use(n, 0, "b") || !use(n, 0, "b") || use(n, 0, "a") {
		t.Error("the second content of a run is not kept in the place of the first")
	}
	n = promql.NewEvaluator(read, promql.DefaultOptions(), 2*size+size/2)
	use(n, 0, "a")
	use(n, 1, "a")
	use(n, 0, "a")
	use(n, 2, "a") // 1 was used longest ago
	if !use(n, 0, "a") || !use(n, 2, "a") || use(n, 1, "a") {
		t.Error("another segment was forgotten than the one used longest ago")
	}
	if reads != 7 {
		t.Errorf("%d segments were read", reads)
	}
}

// TestAReadThatNobodyWaitsFor is cancelled; one for which somebody waits goes on.
func TestAReadThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled []error
		n := promql.NewEvaluator(func(ctx context.Context, _ promql.Segment) (*series.Set, int64, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			cancelled = append(cancelled, ctx.Err())
			return nil, 0, os.ErrNotExist
		}, promql.DefaultOptions(), 1<<20)
		read := func(ctx context.Context) { _, _ = n.Series(ctx, []promql.Segment{{RunID: "r"}}) }
		one, cancelOne := context.WithCancel(t.Context())
		two, cancelTwo := context.WithCancel(t.Context())
		go read(one)
		go read(two)
		synctest.Wait()
		cancelOne()
		synctest.Wait()
		if len(cancelled) != 0 {
			t.Fatal("a read was cancelled for which somebody waits")
		}
		cancelTwo()
		synctest.Wait()
		if len(cancelled) != 1 || cancelled[0] == nil {
			t.Fatalf("%v", cancelled)
		}
		read(t.Context())
		if len(cancelled) != 2 || cancelled[1] != nil {
			t.Errorf("%v", cancelled)
		}
	})
}
