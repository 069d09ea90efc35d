package results

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

const findBegin = int64(1_790_000_000_000_000_000)

// foundExecution is an execution as the test knows it.
type foundExecution struct {
	engine.Execution
	worker string
}

// someRun has executions of two run workers in parts of several row groups, some of them failed, warm-up or inside
// transactions, and many with equal latencies.
func someRun(t testing.TB, f *Results) (all []foundExecution, parts []engine.Artifact) {
	t.Helper()
	if all, parts = aRun(t, f, 2, 100_000, 0); len(parts) != 4 {
		t.Fatalf("%d parts", len(parts))
	}
	return all, parts
}

// aRun has so many executions of each of some run workers, one every 20 µs; each begins that long after the one before.
func aRun(
	t testing.TB,
	f *Results,
	workers, each int,
	later time.Duration,
) (all []foundExecution, parts []engine.Artifact) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range workers {
		worker := fmt.Sprintf("worker-%d", n)
		dir := t.TempDir()
		w, err := record.NewWriter(record.WriterOptions{Dir: dir, RunID: "run", ResultID: worker, WorkerID: worker,
			PartRows: 50_000, Statements: statements, Errors: func(id uint32) engine.ExecutionError { return dictionary[id] }})
		if err != nil {
			t.Fatal(err)
		}
		at := findBegin + int64(n)*int64(later)
		chunk := make([]engine.Execution, each)
		for i := range chunk {
			kind := rng.IntN(4)
			e := engine.Execution{DueAt: at, StartedAt: at, Elapsed: int64(1+rng.IntN(2000)) * 50_000, Seq: uint32(i),
				ConnectionID: uint32(i % 8), Rows: 1, Success: true, Kind: engine.Kind(kind), Statement: uint16(kind),
				Warmup: i < 10_000}
			if i > 70_000 && rng.IntN(300) == 0 {
				e.Success, e.ErrorID = false, uint32(1+rng.IntN(4))
			}
			if rng.IntN(50) == 0 {
				e.Position = 2
			}
			chunk[i] = e
			all = append(all, foundExecution{e, worker})
			at += 20_000
		}
		if err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
		done, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range done {
			a.Kind = record.KindExecutions
			if err := f.Put(context.Background(), a, record.LocalFile(filepath.Join(dir, a.Name))); err != nil {
				t.Fatal(err)
			}
			parts = append(parts, a)
		}
	}
	return all, parts
}

func ms(e foundExecution) float64 { return float64(e.Elapsed) / 1e6 }

// TestFindExecutions compares the pages of queries with what is found by looking at every execution.
func TestFindExecutions(t *testing.T) {
	f := open(t)
	all, parts := someRun(t, f)
	from, until := time.Unix(0, findBegin+500_000_000), time.Unix(0, findBegin+1_600_000_000)
	for name, c := range map[string]struct {
		q    executions.Query
		want func(e foundExecution) bool
	}{
		"all":     {executions.Query{}, func(foundExecution) bool { return true }},
		"workers": {executions.Query{Workers: []string{"worker-1"}}, func(e foundExecution) bool { return e.worker == "worker-1" }},
		"kinds and statements": {executions.Query{Kinds: []engine.Kind{1, 2}, Statements: []string{"scan"}},
			func(e foundExecution) bool { return e.Statement == 1 }},
		"failed": {executions.Query{Outcome: executions.Failed}, func(e foundExecution) bool { return !e.Success }},
		"class and message": {executions.Query{Classes: []string{string(engine.ErrClassTimeout)},
			Messages: []string{"another"}}, func(e foundExecution) bool { return e.ErrorID == 3 }},
		"code": {executions.Query{Codes: []string{"57014"}},
			func(e foundExecution) bool { return e.ErrorID == 1 || e.ErrorID == 3 }},
		"warm-up": {executions.Query{Phase: engine.PhaseWarmup}, func(e foundExecution) bool { return e.Warmup }},
		"measured, good": {executions.Query{Phase: engine.PhaseMeasurement, Outcome: executions.Succeeded},
			func(e foundExecution) bool { return !e.Warmup && e.Success }},
		"a cell": {executions.Query{From: from, Until: until, OverMs: 10, UptoMs: 20}, func(e foundExecution) bool {
			ended := e.DueAt + e.Elapsed
			return ended >= from.UnixNano() && ended < until.UnixNano() && ms(e) > 10 && ms(e) <= 20
		}},
		"nothing": {executions.Query{OverMs: 1e6}, func(foundExecution) bool { return false }},
	} {
		for _, sort := range []executions.Sort{executions.ByTime, executions.ByLatency} {
			for _, ascending := range []bool{false, true} {
				for _, inside := range []bool{false, true} {
					if inside && name != "all" || raceEnabled && ascending {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%t/%t", name, sort, ascending, inside), func(t *testing.T) {
						q := c.q
						q.Sort, q.Ascending, q.InTransactions, q.Limit = sort, ascending, inside, 100
						var want []foundExecution
						for _, e := range all {
							if c.want(e) && (inside || e.Position == 0) {
								want = append(want, e)
							}
						}
						compareFound(t, f, parts, q, want)
					})
				}
			}
		}
	}
}

// compareFound reads some pages, and compares what they are sorted by and that no execution comes twice.
func compareFound(t *testing.T, f *Results, parts []engine.Artifact, q executions.Query, want []foundExecution) {
	t.Helper()
	value := func(e foundExecution) int64 {
		if q.Sort == executions.ByLatency {
			return e.Elapsed
		}
		return e.DueAt + e.Elapsed
	}
	slices.SortFunc(want, func(a, b foundExecution) int {
		if q.Ascending {
			return cmp.Compare(value(a), value(b))
		}
		return cmp.Compare(value(b), value(a))
	})
	seen := map[string]bool{}
	for n := 0; ; {
		page, err := f.FindExecutions(context.Background(), "run", parts, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Executions {
			id := fmt.Sprint(e.WorkerID, e.Seq)
			if seen[id] {
				t.Fatalf("%s comes twice", id)
			}
			seen[id] = true
			if n >= len(want) {
				t.Fatalf("more than the %d that there are", len(want))
			}
			got := int64(math.Round(e.AppElapsedMs * 1e6))
			if q.Sort == executions.ByTime {
				got = e.EndedAt.UnixNano()
			}
			if got != value(want[n]) {
				t.Fatalf("number %d has %d, not %d", n, got, value(want[n]))
			}
			if (e.Phase == engine.PhaseWarmup) != (e.Seq < 10_000) || e.Success != (e.ErrorClass == "") {
				t.Fatalf("%+v", e)
			}
			n++
		}
		if page.NextCursor == "" || n >= 500 {
			if n != min(len(want), 500) {
				t.Fatalf("%d found, not %d", n, len(want))
			}
			return
		}
		if err := q.Resume(page.NextCursor); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindPassesOver(t *testing.T) {
	f := open(t)
	// One run worker after the other, each with a row group.
	const each, workers = 10_000, 20
	_, follow := aRun(t, f, workers, each, each*20*time.Microsecond)
	if len(follow) != workers {
		t.Fatalf("%d parts", len(follow))
	}
	find := func(q executions.Query, parts []engine.Artifact) executions.ExecutionPage {
		t.Helper()
		q.Limit = 20
		page, err := f.FindExecutions(context.Background(), "run", parts, q)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	// Each of four readers has begun one of the row groups at most when the first of them knows 20 executions that ended
	// earlier than those of the fifth.
	if p := find(executions.Query{Sort: executions.ByTime, Ascending: true}, follow); p.Record.ReadCount > 4*each ||
		p.Record.ExecutionsCount != workers*each {
		t.Errorf("the first executions: %+v", p.Record)
	}
	if p := find(executions.Query{Sort: executions.ByTime}, follow); p.Record.ReadCount > 4*each {
		t.Errorf("the last executions: %+v", p.Record)
	}
	early := executions.Query{Sort: executions.ByTime, Until: time.Unix(0, findBegin+100_000_000)}
	if p := find(early, follow); p.Record.ReadCount != each || len(p.Executions) != 20 {
		t.Errorf("an early time: %+v", p.Record)
	}
	g := open(t)
	_, beside := someRun(t, g)
	f = g
	if p := find(executions.Query{Sort: executions.ByLatency, OverMs: 1000}, beside); p.Record.ReadCount != 0 {
		t.Errorf("a latency that none has: %+v", p.Record)
	}
	// Errors begin in the second row group of each worker.
	errs := executions.Query{Sort: executions.ByLatency, Codes: []string{"57014"}}
	if p := find(errs, beside); p.Record.ReadCount > 100_000 {
		t.Errorf("errors: %+v", p.Record)
	}
}

func TestFindRefuses(t *testing.T) {
	f := open(t)
	for name, q := range map[string]executions.Query{
		"limit":   {Sort: executions.ByTime, Limit: 501},
		"sort":    {Sort: "rows", Limit: 1},
		"until":   {Sort: executions.ByTime, Limit: 1, From: time.Unix(2, 0), Until: time.Unix(1, 0)},
		"upto_ms": {Sort: executions.ByTime, Limit: 1, OverMs: 2, UptoMs: 1},
		"over_ms": {Sort: executions.ByTime, Limit: 1, OverMs: math.NaN()},
	} {
		_, err := f.FindExecutions(context.Background(), "run", nil, q)
		if !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	q := executions.Query{Sort: executions.ByTime}
	other := executions.Query{Sort: executions.ByLatency}
	for _, text := range []string{"x", "!", other.Cursor(executions.Position{})} {
		if err := q.Resume(text); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("cursor %q: %v", text, err)
		}
	}
}

func TestFailures(t *testing.T) {
	f := open(t)
	all, parts := someRun(t, f)
	got, err := f.Failures(context.Background(), "run", parts)
	if err != nil {
		t.Fatal(err)
	}
	type key struct {
		code, statement string
		inside          bool
	}
	want := map[key]int64{}
	for _, e := range all {
		if !e.Success {
			want[key{dictionary[e.ErrorID].Code, statements[e.Statement].ID, e.Position != 0}]++
		}
	}
	if len(got.Failures) != len(want) || got.Total != len(want) {
		t.Errorf("%d groups, not %d", len(got.Failures), len(want))
	}
	for i, g := range got.Failures {
		if n := want[key{g.ErrorCode, g.StatementID, g.InTransaction}]; n != g.Count {
			t.Errorf("%s of %s: %d, not %d", g.ErrorCode, g.StatementID, g.Count, n)
		}
		if i > 0 && g.Count > got.Failures[i-1].Count {
			t.Error("not the most frequent first")
		}
		if g.FirstAt.After(g.LastAt.Time) || g.FirstAt.UnixNano() < findBegin || g.WarmupCount != 0 {
			t.Errorf("%+v", g)
		}
		if g.ErrorCode == "57014" && !g.InTransaction && (g.Messages != 2 || len(g.Examples) != 2) {
			t.Errorf("messages %+v", g.Examples)
		}
	}
	if got.Record.ReadCount >= 200_000*3/4 {
		t.Errorf("row groups without errors are read: %+v", got.Record)
	}
}

// BenchmarkFind finds the first page of each filter: go test -bench Find -executions 10000000.
func BenchmarkFind(b *testing.B) {
	f := recorded(b)
	names, err := f.objects.Names(context.Background(), "run")
	if err != nil {
		b.Fatal(err)
	}
	var parts []engine.Artifact
	for _, name := range names {
		p, err := part{f.objects, "run", name}.open(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		parts = append(parts, p.Artifact())
		_ = p.Close()
	}
	at := time.Unix(0, 1_790_000_000_000_000_000)
	for name, q := range map[string]executions.Query{
		"newest":         {Sort: executions.ByTime},
		"slowest":        {Sort: executions.ByLatency},
		"fastest":        {Sort: executions.ByLatency, Ascending: true},
		"kind":           {Sort: executions.ByLatency, Kinds: []engine.Kind{1}},
		"statement time": {Sort: executions.ByTime, Statements: []string{"insert"}},
		"failed":         {Sort: executions.ByLatency, Outcome: executions.Failed},
		"message":        {Sort: executions.ByTime, Messages: []string{"no such message"}},
		"nothing at all": {Sort: executions.ByTime, Kinds: []engine.Kind{0}, Statements: []string{"insert"}},
		"rolled back":    {Sort: executions.ByTime, Outcome: executions.RolledBack},
		"a second":       {Sort: executions.ByLatency, From: at.Add(20 * time.Second), Until: at.Add(21 * time.Second)},
		"a cell, failed": {Sort: executions.ByTime, OverMs: 1, UptoMs: 1.1, Outcome: executions.Failed},
		"slow range":     {Sort: executions.ByTime, OverMs: 3},
		"everything once": {Sort: executions.ByLatency, Kinds: []engine.Kind{1}, Statements: []string{"insert"},
			Workers: []string{"worker-1"}, Outcome: executions.Succeeded, Phase: engine.PhaseMeasurement},
	} {
		b.Run(name, func(b *testing.B) {
			q.Limit = 100
			var page executions.ExecutionPage
			for b.Loop() {
				var err error
				if page, err = f.FindExecutions(context.Background(), "run", parts, q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(page.Record.ReadCount), "rows-read")
			b.ReportMetric(float64(len(page.Executions)), "found")
		})
	}
	b.Run("failures", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Failures(context.Background(), "run", parts); err != nil {
				b.Fatal(err)
			}
		}
	})
}
