package compare_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// addBacklog makes a run of which 80 operations end in each second, measured from 22.4 s to 62.4 s, each so long after
// it was due; its figures are those of its record.
func (w world) addBacklog(t *testing.T, id string, behind time.Duration) {
	t.Helper()
	const perSecond, seconds = 80, 40
	from, to := noon.Add(22400*time.Millisecond), noon.Add(62400*time.Millisecond)
	run := &rollup.Run{Run: engine.Run{RunID: id, StartTime: engine.At(noon)}, Seconds: rollup.New(noon)}
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"INSERT"}}, Statement: record.Texts{Values: []string{"put"}},
		Worker: record.Texts{Values: []string{"w"}}}
	f := &engine.KindFigures{QPS: new(float64(perSecond))}
	for end := noon.Add(10 * time.Second); !end.After(to); end = end.Add(time.Second / perSecond) {
		due := end.Add(-behind)
		warmup := due.Before(from)
		b.DueNs, b.ElapsedNs = append(b.DueNs, due.UnixNano()), append(b.ElapsedNs, int64(behind))
		b.Rows, b.Position = append(b.Rows, 1), append(b.Position, 0)
		b.Warmup, b.Success = append(b.Warmup, warmup), append(b.Success, true)
		b.Kind.Index, b.Statement.Index = append(b.Kind.Index, 0), append(b.Statement.Index, 0)
		b.Worker.Index = append(b.Worker.Index, 0)
		b.Class.Index, b.Code.Index = append(b.Class.Index, -1), append(b.Code.Index, -1)
		switch {
		case !warmup:
			f.Count++
		case end.After(from):
			f.CarriedOver++
		}
	}
	run.Seconds.Add(b)
	content, _, err := segment.Bytes(run)
	if err != nil {
		t.Fatal(err)
	}
	ms := behind.Seconds() * 1000
	sum := &engine.Summary{RunID: id}
	sum.MeasuredFrom, sum.MeasuredTo, sum.DurationSeconds = engine.At(from), engine.At(to), seconds
	sum.ByKind = map[engine.Kind]*engine.KindFigures{engine.KindInsert: f}
	f.LatencyMs = &engine.LatencyMs{Avg: ms, P50: ms, P95: ms, P99: ms}
	sum.ByStatement = []engine.StatementFigures{{StatementID: "put", Kind: engine.KindInsert, Count: f.Count, QPS: f.QPS,
		CarriedOver: f.CarriedOver, LatencyMs: &engine.StatementLatencyMs{Avg: ms, P50: ms, P95: ms, P99: ms}}}
	w.segments[id] = content
	w.details[id] = engine.RunDetail{Run: engine.Run{RunID: id, Status: engine.StatusCompleted,
		StartTime: engine.At(noon), WarmupStartTime: engine.At(noon)}, Summary: sum}
}

// TestKindsAndStatementsHaveTheirBacklogInTheRate: a run whose first 10 s only ended what was due in the warm-up has the
// rate of one without a backlog, and its kinds and statements have it too.
func TestKindsAndStatementsHaveTheirBacklogInTheRate(t *testing.T) {
	r, w := reader(t)
	w.addBacklog(t, "a", 2*time.Millisecond)
	w.addBacklog(t, "b", 10*time.Second)
	c, err := r.Compare(t.Context(), []string{"a"}, []string{"b"}, compare.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	// What one run on each side can show.
	w.addBacklog(t, "like-a", 2*time.Millisecond)
	like, err := r.Compare(t.Context(), []string{"a"}, []string{"like-a"}, compare.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	least := like.Kinds[0].Metrics[0]
	for _, p := range append(c.Kinds, c.Statements...) {
		if len(p.Metrics) == 0 || p.B >= p.A {
			t.Fatalf("%+v", p)
		}
		m := p.Metrics[0]
		if m.Name != "qps" || m.Verdict != compare.Same || *m.Low < *least.Low-2 || *m.High > *least.High+2 {
			t.Errorf("%s of %q is %s, %v to %v", m.Name, p.StatementID, m.Verdict, *m.Low, *m.High)
		}
	}
	if len(c.Kinds) != 1 || len(c.Statements) != 1 {
		t.Errorf("%d kinds, %d statements", len(c.Kinds), len(c.Statements))
	}
}
