package postgres_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestReportsAreWhatRunWorkersReported: what snapshots say of connections, schedule and machine is read as it was, in
// the order of each one's ticks; what an earlier version has not stored is unknown.
func TestReportsAreWhatRunWorkersReported(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	if err := s.CreateRun(ctx, engine.Run{RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	noon, rate := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), 250.5
	var want []engine.WorkerSnapshot
	for tick := int64(1); tick <= 3; tick++ {
		var both []engine.WorkerSnapshot
		for _, worker := range []string{"w1", "w2"} {
			w := engine.WorkerSnapshot{RunID: "r", WorkerID: worker, NodeID: "n-" + worker, Tick: tick,
				Phase: engine.PhaseMeasurement, Timestamp: engine.At(noon.Add(time.Duration(tick) * time.Second)),
				TickSeconds: 0.5, Scheduled: 100 * tick, Dropped: 7 * tick, Retries: tick, ActiveConnections: 3,
				TargetConnections: 4, Waiting: int(tick), Resources: engine.Resources{CPUPercent: 25, MemoryPercent: 50,
					MemoryBytes: 1 << 40, HostCPUPercent: 75, HostMemoryPercent: 12.5}}
			if worker == "w2" {
				w.TargetQPS = &rate
			}
			both = append(both, w)
		}
		if err := s.SaveTick(ctx, store.Tick{RunID: "r", Snapshots: both}); err != nil {
			t.Fatal(err)
		}
		for _, w := range both {
			w.RunID, w.Tick = "", 0 // nobody needs them
			want = append(want, w)
		}
	}
	slices.SortStableFunc(want, func(a, b engine.WorkerSnapshot) int { return int(a.WorkerID[1]) - int(b.WorkerID[1]) })
	read := func() (all []engine.WorkerSnapshot) {
		t.Helper()
		if err := s.Reports(ctx, "r", func(w *engine.WorkerSnapshot) {
			one := *w
			one.Timestamp = engine.At(one.Timestamp.UTC())
			all = append(all, one)
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	exec(t, conn, `UPDATE worker_metrics_snapshots
		SET custom_metrics = custom_metrics - 'waiting' - 'tick_seconds' - 'target_qps'`)
	if old := read()[5]; old.Waiting != rollup.Unknown || old.TickSeconds != 1 || old.TargetQPS != nil ||
		old.Dropped != 21 {
		t.Errorf("of an earlier version: %+v", old)
	}
}

// TestRunsAreTakenInAgain: though nothing of them has changed, once, and no others.
func TestRunsAreTakenInAgain(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "runs", Kind: refresh.Ingest, TargetLagSeconds: 60,
		Mode: refresh.Incremental})
	must(err)
	for _, id := range []string{"old", "new"} {
		must(s.CreateRun(ctx, engine.Run{RunID: id}))
		must(s.SaveResult(ctx, engine.RunResult{ResultID: id, RunID: id}))
		exec(t, conn, "UPDATE run_status SET status = 'RUNNING', start_time = now() WHERE run_id = $1", id)
		for _, to := range []string{"STOPPING", "COMPLETED"} {
			exec(t, conn, "UPDATE run_status SET status = $1, phase = NULL WHERE run_id = $2", to, id)
		}
	}
	takeIn := func(want ...string) {
		t.Helper()
		for _, run := range []string{"old", "new"} {
			if pending, err := s.IngestPending(ctx, "runs", run); err != nil || pending != slices.Contains(want, run) {
				t.Errorf("%s is pending: %v, %v, and to be taken in are %v", run, pending, err, want)
			}
		}
		state, err := s.RefreshState(ctx, 9)
		must(err)
		if got := slices.Sorted(slices.Values(state.Runs["runs"])); !slices.Equal(got, want) {
			t.Fatalf("to be taken in are %v, not %v", got, want)
		}
		must(s.ScheduleRefreshes(ctx, refresh.Plan(state)))
		claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
		must(err)
		for _, c := range claims {
			must(s.ReleaseRefresh(ctx, c, refresh.Result{Mode: refresh.Incremental}))
		}
	}
	takeIn("new", "old")
	takeIn()
	asked := ask[time.Time](t, dsn, "SELECT clock_timestamp()")
	if n, err := s.TakeInAgain(ctx, "runs", []string{"old", "unknown"}); err != nil || n != 1 {
		t.Errorf("%d runs, %v", n, err)
	}
	// The run has been over for long, and the table waits for it since it was asked.
	state, err := s.RefreshState(ctx, 9)
	must(err)
	if since := state.Tables[0].BehindSince; since.Before(asked) {
		t.Errorf("waits since %v, asked at %v", since, asked)
	}
	takeIn("old")
	takeIn()
	late, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "late", Kind: refresh.Ingest, TargetLagSeconds: 60,
		Mode: refresh.Incremental})
	must(err)
	state, err = s.RefreshState(ctx, 9)
	must(err)
	for _, table := range state.Tables {
		if table.Name == "late" && table.BehindSince.Before(late.CreatedAt.Time) {
			t.Errorf("a table waits since %v that was made at %v", table.BehindSince, late.CreatedAt)
		}
	}
}

// TestARunThatIsGivenUp: a run that fails too often is not tried again by itself, and the table is behind since it
// ended and says why, until the run changes, somebody resumes the table, or the run is deleted.
func TestARunThatIsGivenUp(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: "runs", Kind: refresh.Ingest, TargetLagSeconds: 60,
		Mode: refresh.Incremental})
	must(err)
	must(s.CreateRun(ctx, engine.Run{RunID: "poor"}))
	must(s.SaveResult(ctx, engine.RunResult{ResultID: "poor", RunID: "poor"}))
	exec(t, conn, "UPDATE run_status SET status = 'RUNNING', start_time = now()")
	for _, to := range []string{"STOPPING", "COMPLETED"} {
		exec(t, conn, "UPDATE run_status SET status = $1, phase = NULL", to)
	}
	look := func(due bool, failures int, last string) (since time.Time) {
		t.Helper()
		state, err := s.RefreshState(ctx, 9)
		must(err)
		must(s.ScheduleRefreshes(ctx, refresh.Plan(state)))
		one, err := s.DynamicTable(ctx, "runs")
		must(err)
		table, read := state.Tables[0], slices.Contains(state.Runs["runs"], "poor")
		load, err := s.RefreshLoad(ctx)
		must(err)
		pending, err := s.IngestPending(ctx, "runs", "poor")
		must(err)
		if read != due || pending != due || table.BehindSince.IsZero() || table.Failures != failures || table.Error != last ||
			one.Error != last || load.IngestLagSeconds <= 0 {
			t.Fatalf("to be taken in: %v, %+v, %+v; want %v", read, table, load, due)
		}
		if f := one.Failing; failures == 1 && (len(f) != 1 || !f[0].GivenUp || f[0].Failures < refresh.MaxFailures) {
			t.Fatalf("a run that is given up is among those that fail: %+v", f)
		}
		return table.BehindSince.Time
	}
	fail := func(times int) {
		t.Helper()
		for n := range times {
			exec(t, conn, "UPDATE pending_refreshes SET next_refresh_due = clock_timestamp()")
			claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
			must(err)
			if len(claims) != 1 {
				t.Fatalf("attempt %d: %+v", n, claims)
			}
			must(s.ReleaseRefresh(ctx, claims[0], refresh.Result{Error: "no"}))
			if n < refresh.MaxFailures-1 && times > 1 {
				look(true, 0, "")
			}
		}
	}
	began := look(true, 0, "")
	fail(refresh.MaxFailures)
	if since := look(false, 1, "Run poor: no"); !since.Equal(began) {
		t.Errorf("behind since %v, at first since %v", since, began)
	}
	exec(t, conn, "UPDATE test_results SET updated_at = clock_timestamp()")
	if since := look(true, 1, "Run poor: no"); !since.After(began) {
		t.Errorf("behind since %v, before the run changed %v", since, began)
	}
	fail(1)
	look(false, 1, "Run poor: no")
	must(s.SetDynamicTableStatus(ctx, "runs", refresh.Active))
	look(true, 0, "")
	fail(refresh.MaxFailures)
	must(s.DeleteRun(ctx, "poor"))
	look(true, 0, "")
	fail(refresh.MaxFailures)
	look(false, 1, "Run poor: no")
}
