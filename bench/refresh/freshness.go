package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/bench/measure"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/storage/derived"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// freshness is what is asked of the mode with many tables.
type freshness struct {
	tables  int
	workers int
	length  time.Duration
	every   time.Duration
}

// definitions are of the sorts that people write: a row for each run, a few for each, some for all of them.
var definitions = []string{
	"SELECT run_id, template, qps, p95_ms FROM runs",
	"SELECT run_id, kind, sum(operations) AS operations FROM rollup.kind_seconds GROUP BY run_id, kind",
	"SELECT template, count(*) AS runs, max(qps) AS best FROM runs GROUP BY template",
	"SELECT run_id, second, operations FROM rollup.run_seconds WHERE NOT warmup",
}

// lags are the target lags of the tables, in turn.
var lags = []float64{30, 60, 120, 300}

// fresh keeps many tables fresh by refreshers of one worker each, as so many servers have them, while runs come in, and
// says how old what they brought was.
func fresh(ctx context.Context, parent string, f freshness) (err error) {
	dir, err := os.MkdirTemp(parent, "loadstone-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "postgres"), Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Stop(context.WithoutCancel(ctx))) }()
	control := pg.DSN(embedded.ControlDatabase)
	if err := schema.Apply(ctx, control); err != nil {
		return err
	}
	owner, reader, err := pg.Results(ctx)
	if err != nil {
		return err
	}
	first, err := pgxpool.New(ctx, control)
	if err != nil {
		return err
	}
	defer first.Close()
	if err := makeTables(ctx, postgres.RefreshQueue{Pool: first}, f.tables); err != nil {
		return err
	}
	var refreshed atomic.Int64
	began := time.Now()
	for range f.workers {
		server, err := newServer(ctx, control, owner, reader, &refreshed)
		if err != nil {
			return err
		}
		defer server.close()
	}
	// First all of them are made, which is measured by itself.
	for refreshed.Load() < int64(f.tables) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	fmt.Printf("%d tables are made by %d workers in %.1f s, load %.1f\n", f.tables, f.workers, time.Since(began).Seconds(),
		measure.LoadAverage())
	if err := runsComeIn(ctx, postgres.RefreshQueue{Pool: first}, f); err != nil {
		return err
	}
	return report(ctx, control, f)
}

func makeTables(ctx context.Context, q postgres.RefreshQueue, tables int) error {
	_, err := q.CreateDynamicTable(ctx, refresh.Table{Name: ingest.Table, Kind: refresh.Ingest, TargetLagSeconds: 60,
		Mode: refresh.Incremental, Priority: 10})
	for i := range tables {
		if err != nil {
			break
		}
		_, err = q.CreateDynamicTable(ctx, refresh.Table{Name: fmt.Sprintf("table_%04d", i), Kind: refresh.SQL,
			Definition: definitions[i%len(definitions)], TargetLagSeconds: lags[i/len(definitions)%len(lags)],
			Mode: refresh.Auto, Sources: []string{ingest.Table}})
	}
	return err
}

// server is a refresher with connections of its own.
type server struct {
	keeper *refresh.Refresher
	pool   *pgxpool.Pool
	db     *derived.Database
}

func newServer(ctx context.Context, control, owner, reader string, refreshed *atomic.Int64) (*server, error) {
	pool, err := pgxpool.New(ctx, control)
	if err != nil {
		return nil, err
	}
	s := &server{pool: pool}
	if s.db, err = derived.Open(ctx, owner, reader); err != nil {
		pool.Close()
		return nil, err
	}
	q := postgres.RefreshQueue{Pool: pool}
	work := func(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error) {
		if c.Table == ingest.Table {
			return takeIn(ctx, s.db, c, prove)
		}
		table, err := q.DynamicTable(ctx, c.Table)
		if err != nil {
			return refresh.Result{}, err
		}
		result, err := s.db.Materialize(ctx, table, c, prove)
		refreshed.Add(1)
		return result, err
	}
	s.keeper = refresh.Start(refresh.Options{Store: q, Work: work, Workers: 1, Name: fmt.Sprintf("server-%p", s),
		Log: zerolog.New(os.Stderr).Level(zerolog.WarnLevel)})
	return s, nil
}

func (s *server) close() {
	s.keeper.Close()
	s.db.Close()
	s.pool.Close()
}

// takeIn writes a run of a minute, as an ingest does.
func takeIn(ctx context.Context, db *derived.Database, c refresh.Claim, prove func(context.Context) error) (
	refresh.Result, error) {
	if err := db.Begin(ctx, c); err != nil {
		return refresh.Result{}, err
	}
	start := time.Now().UTC()
	batch := &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP", "INSERT"}},
		Statement: record.Texts{Values: []string{"get"}}, Worker: record.Texts{Values: []string{"worker-0"}}}
	for i := range int32(60_000) {
		batch.DueNs = append(batch.DueNs, start.Add(time.Duration(i)*time.Millisecond).UnixNano())
		batch.ElapsedNs, batch.Rows = append(batch.ElapsedNs, int64(i%100+1)*1e5), append(batch.Rows, 1)
		batch.Position, batch.Warmup = append(batch.Position, 0), append(batch.Warmup, false)
		batch.Success = append(batch.Success, true)
		batch.Kind.Index, batch.Statement.Index = append(batch.Kind.Index, i%2), append(batch.Statement.Index, 0)
		batch.Worker.Index = append(batch.Worker.Index, 0)
		batch.Class.Index, batch.Code.Index = append(batch.Class.Index, -1), append(batch.Code.Index, -1)
	}
	seconds := rollup.New(start)
	seconds.Add(batch)
	r := rollup.Run{Run: engine.Run{RunID: c.Subtask, RunName: c.Subtask, Status: engine.StatusCompleted,
		StartTime: engine.At(start), Scenario: engine.Scenario{TemplateName: "nightly"}}, Adapter: "postgres", Parts: 1,
		Fingerprint: c.Subtask, Seconds: seconds, Summary: &engine.Summary{Verdict: "VALID",
			Figures: engine.Figures{Operations: 60_000, QPS: new(1000.0)}}}
	rows, bytes, err := db.PutRun(ctx, c, r, prove)
	// The control store has no such run, and would have what is known of it removed.
	return refresh.Result{Mode: refresh.Incremental, Rows: rows, Bytes: bytes, Gone: true}, err
}

// runsComeIn puts a run into the queue, again and again.
func runsComeIn(ctx context.Context, q postgres.RefreshQueue, f freshness) error {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	end := time.After(f.length)
	for i := 0; ; i++ {
		plan := refresh.Schedule{Enqueue: []refresh.Pending{{Priority: 10, Due: engine.At(time.Now()),
			Task: refresh.Task{Table: ingest.Table, Subtask: fmt.Sprintf("run-%d", i)}}}}
		if err := q.ScheduleRefreshes(ctx, plan); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case <-tick.C:
		}
	}
}

// report says by how much refreshes came later than they were to. Tables that are behind for longer than that at the
// end count as refreshes that came too late, so that what was never refreshed is not left out.
func report(ctx context.Context, control string, f freshness) error {
	conn, err := pgx.Connect(ctx, control)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `SELECT h.lag_seconds - t.target_lag_seconds, t.target_lag_seconds,
			extract(epoch FROM h.ended_at - h.started_at)::float8, h.error <> ''
		FROM refresh_history h JOIN dynamic_tables t ON t.name = h.dynamic_table
		WHERE t.kind = 'SQL' AND (h.lag_seconds IS NOT NULL OR h.error <> '')
		UNION ALL
		SELECT extract(epoch FROM clock_timestamp() - behind_since)::float8 - target_lag_seconds, target_lag_seconds, 0, false
		FROM dynamic_tables WHERE kind = 'SQL' AND behind_since < clock_timestamp() - make_interval(secs => target_lag_seconds)`)
	if err != nil {
		return err
	}
	late, took := map[float64][]float64{}, []float64(nil)
	var failures int
	var over, target, seconds float64
	var failed bool
	if _, err := pgx.ForEachRow(rows, []any{&over, &target, &seconds, &failed}, func() error {
		if failed {
			failures++
			return nil
		}
		late[0], late[target] = append(late[0], over), append(late[target], over)
		took = append(took, seconds)
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(took)
	for _, target := range append([]float64{0}, lags...) {
		all := late[target]
		slices.Sort(all)
		if len(all) == 0 {
			continue
		}
		within, _ := slices.BinarySearch(all, 1)
		name := fmt.Sprintf("target lag %.0f s", target)
		if target == 0 {
			name = "all"
		}
		fmt.Printf("%-16s %6d refreshes, %5.1f %% within target lag + 1 s (goal 95 %%); later than the target by P50 "+
			"%.2f, P95 %.2f, "+
			"at most %.2f s\n", name, len(all), 100*float64(within)/float64(len(all)), all[len(all)/2], all[len(all)*95/100],
			all[len(all)-1])
	}
	if len(took) > 0 {
		fmt.Printf("a refresh takes P50 %.0f, P95 %.0f ms; %d failed; load %.1f\n", took[len(took)/2]*1000,
			took[len(took)*95/100]*1000, failures, measure.LoadAverage())
	}
	return nil
}
