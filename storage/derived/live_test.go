package derived_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// running is a run that is going on, and executions of it as a batch of live seconds.
func running(id string, epoch, number int64, executions int) (engine.Run, rollup.Live) {
	r, _ := oneRun(id, executions)
	r.Run.Status = engine.StatusRunning
	return r.Run, rollup.Live{RunID: id, Epoch: epoch, Batch: number, Seconds: r.Seconds, Warehouse: r.Warehouse,
		PerHour: r.PerHour, Ticks: map[string]int64{"worker-0": number}, Operations: int64(executions) * number}
}

// goOn writes a batch of a run that is going on.
func goOn(t testing.TB, d *derived.Database, id string, epoch, number int64, executions int) {
	t.Helper()
	run, l := running(id, epoch, number, executions)
	if _, err := d.BeginLive(t.Context(), run, epoch); err != nil {
		t.Fatal(err)
	}
	if err := d.PutLive(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

const liveOperations = "SELECT coalesce(sum(operations), 0)::bigint FROM rollup.run_seconds WHERE run_id = 'a'"

// TestLiveSecondsAreReplacedByTheRun: they are there while the run goes on, marked; batches add up, each counts once;
// and when the run is taken in its seconds are there alone, whoever writes late.
func TestLiveSecondsAreReplacedByTheRun(t *testing.T) {
	d, owner, reader := open(t)
	goOn(t, d, "a", 3, 1, 300)
	run, second := running("a", 3, 2, 300)
	for range 2 { // the second time its answer was lost
		if err := d.PutLive(t.Context(), second); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, reader, liveOperations+" AND provisional"); n != 600 {
		t.Errorf("%d live operations of 600", n)
	}
	for relation, rows := range map[string]int64{"kind_seconds": 3, "statement_seconds": 3, "worker_seconds": 6,
		"error_seconds": 3, "warehouse_seconds": 1} {
		if n := count(t, reader, "SELECT count(*) FROM rollup."+relation+" WHERE provisional"); n != rows {
			t.Errorf("%s has %d live rows of %d", relation, n, rows)
		}
	}
	if n := count(t, reader, `SELECT rollup.histogram_count(rollup.histogram_merge(latency)) FROM rollup.kind_seconds
		WHERE provisional`); n != 600 {
		t.Errorf("the histograms hold %d of 600", n)
	}
	if n := count(t, reader, "SELECT operations FROM rollup.runs WHERE provisional AND run_id = 'a'"); n != 600 {
		t.Errorf("the run has %d operations of 600", n)
	}
	// A run that is taken over goes on behind what is there, and who had it writes no more.
	ticks, err := d.BeginLive(t.Context(), run, 4)
	if err != nil || ticks["worker-0"] != 2 {
		t.Errorf("snapshots %v, %v", ticks, err)
	}
	_, late := running("a", 3, 3, 300)
	if err := d.PutLive(t.Context(), late); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the owner before: %v", err)
	}
	if _, err := d.BeginLive(t.Context(), run, 3); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the owner before begins again: %v", err)
	}
	if print, _, err := d.Known(t.Context(), "a"); err != nil || print != "" {
		t.Errorf("a run that is going on is taken for one that was taken in: %q, %v", print, err)
	}
	taken, _ := oneRun("a", 900)
	put(t, d, taken, 9)
	_, late = running("a", 4, 5, 300)
	if err := d.PutLive(t.Context(), late); !errors.Is(err, store.ErrFenced) {
		t.Errorf("behind the end: %v", err)
	}
	if _, err := d.BeginLive(t.Context(), run, 5); !errors.Is(err, store.ErrFenced) {
		t.Errorf("beginning behind the end: %v", err)
	}
	if all, live := count(t, owner, liveOperations), count(t, owner, liveOperations+" AND provisional"); all != 900 ||
		live != 0 {
		t.Errorf("%d operations of 900, %d live", all, live)
	}
	if n := count(t, owner, "SELECT count(*) FROM rollup.runs WHERE provisional"); n != 0 {
		t.Errorf("%d live runs are left", n)
	}
	// One that is deleted takes its live seconds with it, and none come behind.
	goOn(t, d, "b", 1, 1, 30)
	c := claim("runs", "b", 10)
	if err := d.Begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := d.DropRun(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, l := running("b", 1, 2, 30); !errors.Is(d.PutLive(t.Context(), l), store.ErrFenced) {
		t.Error("a run that was deleted is written")
	}
	if n := count(t, owner, "SELECT count(*) FROM rollup.run_seconds WHERE run_id = 'b'"); n != 0 {
		t.Errorf("%d seconds of a deleted run", n)
	}
}

// TestLiveSecondsAreNeverThereTwice: however batches, the end and a second owner meet, no reader ever sees seconds of
// both, nor more than there were.
func TestLiveSecondsAreNeverThereTwice(t *testing.T) {
	d, _, reader := open(t)
	run, _ := running("a", 1, 1, 300)
	for epoch := range int64(2) {
		if _, err := d.BeginLive(t.Context(), run, epoch+1); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for epoch := int64(1); epoch <= 2; epoch++ {
		all.Go(func() {
			for number := int64(1); number <= 20; number++ {
				_, l := running("a", epoch, number, 300)
				err := d.PutLive(t.Context(), l)
				if epoch == 1 && !errors.Is(err, store.ErrFenced) || err != nil && !errors.Is(err, store.ErrFenced) {
					t.Errorf("batch %d of epoch %d: %v", number, epoch, err)
				}
			}
		})
	}
	over := make(chan struct{})
	all.Go(func() {
		defer close(over)
		taken, _ := oneRun("a", 600)
		c := claim("runs", "a", 1)
		if err := d.Begin(t.Context(), c); err != nil {
			t.Error(err)
		} else if _, _, err := d.PutRun(t.Context(), c, taken, held); err != nil {
			t.Error(err)
		}
	})
	for ended := false; !ended; {
		select {
		case <-over:
			ended = true
		default:
		}
		var live, final bool
		var n int64
		if err := reader.QueryRow(t.Context(), `SELECT coalesce(bool_or(provisional), false),
			coalesce(bool_or(NOT provisional), false), coalesce(sum(operations), 0)::bigint FROM rollup.run_seconds`).
			Scan(&live, &final, &n); err != nil {
			t.Fatal(err)
		}
		if live && final || final && n != 600 || n%300 != 0 {
			t.Fatalf("a reader sees live %v, final %v, %d operations", live, final, n)
		}
	}
	all.Wait()
	if n := count(t, reader, liveOperations); n != 600 {
		t.Errorf("%d operations of 600 in the end", n)
	}
}

// TestDefinitionsDoNotSeeLiveSeconds: a table is made of what has ended, whether it is made whole or by run, and
// queries see what is going on.
func TestDefinitionsDoNotSeeLiveSeconds(t *testing.T) {
	d, _, reader := open(t)
	taken, _ := oneRun("b", 300)
	put(t, d, taken, 1)
	goOn(t, d, "a", 1, 1, 300)
	for i, by := range []string{"", refresh.ByRun} {
		table := refresh.Table{Name: fmt.Sprint("mine", i), Definition: `SELECT s.run_id, sum(s.operations)::bigint AS n
			FROM rollup.run_seconds s JOIN rollup.runs r USING (run_id) GROUP BY 1`, PartitionBy: by, Version: 1}
		for epoch := int64(1); epoch < 3; epoch++ {
			if _, err := d.Materialize(t.Context(), table, claim(table.Name, "", epoch), held); err != nil {
				t.Fatal(err)
			}
			if n := count(t, reader, "SELECT sum(n)::bigint FROM tables."+table.Name); n != 300 {
				t.Errorf("partition %q: %d operations of 300", by, n)
			}
		}
	}
	p, err := d.Preview(t.Context(), "SELECT run_id FROM rollup.runs", "runs")
	if err != nil || len(p.Rows) != 1 {
		t.Errorf("the preview has %v, %v", p.Rows, err)
	}
	a, err := d.Query(t.Context(), "SELECT run_id, provisional FROM rollup.runs ORDER BY 1", 10)
	if err != nil || len(a.Rows) != 2 || a.Rows[0][1] != true {
		t.Errorf("the query has %v, %v", a.Rows, err)
	}
}

// TestALiveRunDoesNotWaitForItsEnd: what is being taken in is left alone after a moment.
func TestALiveRunDoesNotWaitForItsEnd(t *testing.T) {
	d, owner, _ := open(t)
	goOn(t, d, "a", 1, 1, 300)
	err := pgx.BeginFunc(t.Context(), owner, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT FROM staging.live_runs FOR UPDATE"); err != nil {
			return err
		}
		began := time.Now()
		_, l := running("a", 1, 2, 300)
		if err := d.PutLive(t.Context(), l); err == nil || errors.Is(err, store.ErrFenced) {
			t.Errorf("a batch that has to wait: %v", err)
		}
		if waited := time.Since(began); waited > 20*time.Second {
			t.Errorf("it waited for %v", waited)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLiveSecondsAreSeriesOfPromQL: a run that is going on is among the segments, renamed when more came; its
// counters are what was written, and when it was taken in its file takes their place.
func TestLiveSecondsAreSeriesOfPromQL(t *testing.T) {
	d, _, _ := open(t)
	from, to := time.Unix(0, 0), time.Now().Add(time.Hour)
	known := map[string]bool{}
	for batch := int64(1); batch <= 2; batch++ {
		goOn(t, d, "a", 3, batch, 300)
		found, err := d.Segments(t.Context(), from, to)
		if err != nil || len(found) != 1 || !found[0].Live || known[found[0].Name] {
			t.Fatalf("%+v, %v", found, err)
		}
		known[found[0].Name] = true
		set, err := series.Live(labels.FromStrings("run", "a"), func(add func(*segment.Row, []int64) error) error {
			return d.Seconds(t.Context(), "a", add)
		})
		if err != nil {
			t.Fatal(err)
		}
		_, l := running("a", 3, 1, 300)
		last := l.Seconds.At(0).Add(10 * time.Second) // nothing has come for a while, but not for long
		for query, want := range map[string]float64{
			"sum(loadstone_operations_total)":                                      float64(300 * batch),
			"sum(histogram_count(loadstone_latency_seconds))":                      float64(300 * batch),
			"sum(loadstone_worker_operations_total)":                               float64(300 * batch),
			"sum(loadstone_errors_total) / sum(loadstone_failed_operations_total)": 1,
			"count(loadstone_warehouse_running_queries)":                           1,
			`sum(loadstone_worker_operations_total{node="node-a"})`:                float64(150 * batch),
			`loadstone_dropped_operations_total{worker="worker-0"}`:                float64(6 * batch),
			`loadstone_connections{worker="worker-0",node="node-a"}`:               300,
			`loadstone_waiting_operations{worker="worker-0"}`:                      1,
			`loadstone_node_memory_bytes{node="node-a"}`:                           1 << 40,
			`count(loadstone_warehouse_credits_total) * 7`:                         7,
		} {
			q, err := promql.DefaultOptions().Engine(5*time.Minute).NewInstantQuery(t.Context(), series.Sets{set}, nil, query,
				last)
			if err != nil {
				t.Fatal(err)
			}
			r := q.Exec(t.Context())
			if v, err := r.Vector(); err != nil || len(v) != 1 || v[0].F != want {
				t.Errorf("%s is %v, %v, not %v", query, v, err, want)
			}
			q.Close()
		}
	}
	r, _ := oneRun("a", 900)
	put(t, d, r, 9)
	found, err := d.Segments(t.Context(), from, to)
	if err != nil || len(found) != 1 || known[found[0].Name] {
		t.Errorf("%+v, %v", found, err)
	}
}

// BenchmarkAnHourOfALiveRun reads what PromQL reads of a run that has gone on for an hour, of 3 kinds with 6 statements
// by 4 workers: all of it, and what the last second has brought.
func BenchmarkAnHourOfALiveRun(b *testing.B) {
	d, owner, _ := open(b)
	goOn(b, d, "a", 3, 1, 3000)
	for _, relation := range []struct{ name, copied, others string }{
		{"kind_seconds", "'kind-' || n", "operations, errors, row_count, latency"},
		{"statement_seconds", "'statement-' || n, 'kind-' || n % 3, false", "operations, errors, row_count, latency"},
		{"worker_seconds", "'worker-' || n", "operations, errors, row_count, latency"},
	} {
		columns := map[string]string{"kind_seconds": "kind", "statement_seconds": "statement_id, kind, in_transaction",
			"worker_seconds": "worker_id"}[relation.name]
		n := map[string]int{"kind_seconds": 3, "statement_seconds": 6, "worker_seconds": 4}[relation.name]
		if _, err := owner.Exec(
			b.Context(),
			fmt.Sprintf(`INSERT INTO rollup.%[1]s (run_id, second, warmup, at, provisional, %[2]s, %[4]s)
			SELECT run_id, s, false, at + s * interval '1 s', true, %[3]s, %[4]s
			FROM (SELECT * FROM rollup.%[1]s WHERE second = 0 LIMIT 1) one, generate_series(10, 3609) s, generate_series(1, %[5]d) n`,
				relation.name, columns, relation.copied, relation.others, n),
		); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := owner.Exec(b.Context(), "ANALYZE"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		set, err := series.Live(labels.FromStrings("run", "a"), func(add func(*segment.Row, []int64) error) error {
			return d.Seconds(b.Context(), "a", add)
		})
		if err != nil || set == nil {
			b.Fatal(err)
		}
	}
}
