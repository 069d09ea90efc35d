package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// inWindow selects the rows of a window; $2 and $3 are its bounds.
const inWindow = ` WHERE run_id = $1 AND elapsed_seconds >= $2 AND ($3 <= 0 OR elapsed_seconds <= $3)`

// span is a part of a run's time: points have timestamps and elapsed seconds, and the
// index knows the former.
type span struct {
	from, until time.Time
	first, last float64 // elapsed seconds
}

// span finds the part of a run that a window asks for; ok is false when there is none.
func (s *Store) span(ctx context.Context, runID string, w store.Window) (found span, ok bool, err error) {
	err = s.pool.QueryRow(
		ctx,
		`(SELECT "timestamp", elapsed_seconds, (SELECT max("timestamp") FROM metrics_snapshots WHERE run_id = $1)
		FROM metrics_snapshots WHERE run_id = $1 ORDER BY "timestamp" LIMIT 1)`,
		runID,
	).Scan(
		&found.from,
		&found.first,
		&found.until,
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, false, nil
	}
	if err != nil {
		return found, false, err
	}
	origin := found.from.Add(-seconds(found.first))
	found.last = found.until.Sub(origin).Seconds()
	found.first = math.Max(found.first, w.From)
	if w.Until > 0 {
		found.last = math.Min(found.last, w.Until)
	}
	// A second and a half, should the clock have been set.
	const slack = 1500 * time.Millisecond
	found.from, found.until = origin.Add(seconds(found.first)-slack), origin.Add(seconds(found.last)+slack)
	return found, found.first <= found.last, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

const pointColumns = `"timestamp", elapsed_seconds, coalesce(phase, ''), qps, reads_per_sec, writes_per_sec,
	p50_latency_ms, p95_latency_ms, p99_latency_ms, avg_latency_ms, max_latency_ms, errors_per_sec, total_queries, error_count,
	active_connections, target_connections, qps_by_kind, errors_by_class, histogram, cpu_pct, memory_pct, host_cpu_pct, host_memory_pct, load_detail`

// Series implements query.Store.
func (s *Store) Series(ctx context.Context, runID string, w store.Window) ([]engine.Point, float64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	part, ok, err := s.span(ctx, runID, w)
	if err != nil || !ok {
		return nil, 1, dberr.Failed("reading points", err)
	}
	step := w.Resolution(part.first, part.last)
	var rows pgx.Rows
	switch {
	case step == 1:
		rows, err = s.pool.Query(ctx, "SELECT "+pointColumns+" FROM metrics_snapshots"+inWindow+
			` AND "timestamp" BETWEEN $4 AND $5 ORDER BY "timestamp"`,
			runID, w.From, w.Until, part.from, part.until)
	case step < store.RollupSeconds:
		rows, err = s.pool.Query(ctx,
			merged(`SELECT max("timestamp") AS at, avg(qps) AS qps, avg(reads_per_sec) AS reads, avg(writes_per_sec) AS writes,
				avg(errors_per_sec) AS errors, avg(p50_latency_ms) AS p50, avg(avg_latency_ms) AS mean,
				max(p95_latency_ms) AS p95, max(p99_latency_ms) AS p99, max(max_latency_ms) AS most
			FROM metrics_snapshots`+inWindow+` AND "timestamp" BETWEEN $4 AND $5
			GROUP BY floor((elapsed_seconds - $6) / $7), phase`), runID, w.From, w.Until, part.from, part.until, part.first,
			step)
	default:
		first, last := int64(part.first/store.RollupSeconds), int64(part.last/store.RollupSeconds)
		rows, err = s.pool.Query(
			ctx,
			merged(
				`SELECT max(last_at) AS at, sum(qps_sum) / sum(points) AS qps, sum(reads_sum) / sum(points) AS reads, sum(writes_sum) / sum(points) AS writes,
				sum(errors_sum) / sum(points) AS errors, sum(p50_sum) / nullif(sum(latencies), 0) AS p50, sum(avg_sum) / nullif(sum(latencies), 0) AS mean,
				max(p95_max) AS p95, max(p99_max) AS p99, max(max_max) AS most
			FROM metrics_rollups WHERE run_id = $1 AND stretch BETWEEN $2 AND $3
			GROUP BY (stretch - $2) / $4, phase`,
			),
			runID,
			first,
			last,
			int64(step/store.RollupSeconds),
		)
	}
	if err != nil {
		return nil, 0, dberr.Failed("reading points", err)
	}
	points, err := pgx.CollectRows(rows, toPoint)
	return points, step, dberr.Failed("reading points", err)
}

// merged completes merged points with what is not merged, of the last second of each.
func merged(sql string) string {
	return `SELECT m."timestamp", m.elapsed_seconds, coalesce(m.phase, ''), a.qps, a.reads, a.writes, a.p50, a.p95, a.p99, a.mean, a.most, a.errors,
			m.total_queries, m.error_count, m.active_connections, m.target_connections, m.qps_by_kind, m.errors_by_class, NULL::jsonb,
			m.cpu_pct, m.memory_pct, m.host_cpu_pct, m.host_memory_pct, m.load_detail
		FROM (` + sql + `) a JOIN metrics_snapshots m ON m.run_id = $1 AND m."timestamp" = a.at ORDER BY m."timestamp"`
}

// WorkerSeries implements api.SeriesStore.
func (s *Store) WorkerSeries(ctx context.Context, runID, workerID string, w store.Window) ([]store.WorkerPoint, float64,
	error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	const those = inWindow + " AND ($4 = '' OR worker_id = $4)"
	part, ok, err := s.span(ctx, runID, w)
	if err != nil || !ok {
		return nil, 1, dberr.Failed("reading worker points", err)
	}
	if w.MaxPoints > 0 && workerID == "" {
		var workers int
		if err := s.pool.QueryRow(ctx, "SELECT count(*) FROM worker_heartbeats WHERE run_id = $1", runID).
			Scan(&workers); err != nil {
			return nil, 0, dberr.Failed("reading worker points", err)
		}
		w = w.PerWorker(workers)
	}
	step := w.Resolution(part.first, part.last)
	columns, group := `"timestamp", elapsed_seconds, worker_id, coalesce(phase, ''), qps, p50_latency_ms, p95_latency_ms, p99_latency_ms, total_queries, error_count, active_connections, target_connections`, ""
	order := ` ORDER BY "timestamp", worker_group_id, worker_id, tick`
	if step > 1 {
		columns = `max("timestamp"), max(elapsed_seconds), worker_id, coalesce(phase, ''), avg(qps), avg(p50_latency_ms), max(p95_latency_ms), max(p99_latency_ms),
			max(total_queries), max(error_count), max(active_connections), max(target_connections)`
		group = " GROUP BY worker_group_id, worker_id, floor((elapsed_seconds - $5) / $6), phase"
		order = " ORDER BY 1, worker_group_id, worker_id"
	}
	args := []any{runID, w.From, w.Until, workerID}
	if step > 1 {
		args = append(args, part.first, step)
	}
	rows, err := s.pool.Query(ctx, "SELECT "+columns+" FROM worker_metrics_snapshots"+those+group+order, args...)
	if err != nil {
		return nil, 0, dberr.Failed("reading worker points", err)
	}
	points, err := pgx.CollectRows(rows, toWorkerPoint)
	return points, step, dberr.Failed("reading worker points", err)
}

// EventPage implements query.Store.
func (s *Store) EventPage(ctx context.Context, runID string, after int64, limit int) ([]engine.Event, int64, error) {
	return page(ctx, s, "reading events", "SELECT count(*) FROM run_control_events WHERE run_id = $1",
		`SELECT event_id, run_id, event_type, sequence_id, event_data, created_at
		FROM run_control_events WHERE run_id = $1 AND sequence_id > $2 ORDER BY sequence_id LIMIT $3`, toEvent, runID, after,
		limit)
}

// ArtifactPage implements query.Store.
func (s *Store) ArtifactPage(ctx context.Context, runID, after string, limit int) ([]engine.Artifact, int64, error) {
	return page(ctx, s, "reading artifacts", "SELECT count(*) FROM query_execution_artifacts WHERE run_id = $1",
		"SELECT "+artifactColumns+" FROM query_execution_artifacts WHERE run_id = $1 AND name > $2 ORDER BY name LIMIT $3",
		toArtifact, runID, after, limit)
}

// page reads what comes after a position, and counts all of the run.
func page[T any](ctx context.Context, s *Store, what, count, list string, to pgx.RowToFunc[T], runID string, after any,
	limit int) (items []T, total int64, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if limit <= 0 {
		limit = defaultPage
	}
	batch := &pgx.Batch{}
	batch.Queue(count, runID).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	batch.Queue(list, runID, after, limit).Query(func(rows pgx.Rows) (err error) {
		items, err = pgx.CollectRows(rows, to)
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, 0, dberr.Failed(what, err)
	}
	return items, total, nil
}
