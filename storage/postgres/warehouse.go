package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SaveWarehouse implements run.ControlStore.
func (s *Store) SaveWarehouse(ctx context.Context, runID string, epoch int64, p engine.WarehousePoint) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var raw []byte
	if len(p.Raw) > 0 {
		raw = []byte(store.CleanText(string(p.Raw)))
	}
	var fallback *string
	if p.FallbackWarehouse != nil {
		fallback = new(store.CleanText(*p.FallbackWarehouse))
	}
	batch := &pgx.Batch{}
	batch.Queue("SELECT fence_run($1, $2)", runID, epoch)
	batch.Queue(
		`INSERT INTO warehouse_poll_snapshots (snapshot_id, run_id, "timestamp", elapsed_seconds, warehouse_name, state, warehouse_type, warehouse_size,
			started_clusters, running, queued, min_cluster_count, max_cluster_count, scaling_policy, raw_result, generation, fallback_warehouse)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING`,
		fmt.Sprintf("%s-%d", runID, p.Timestamp.UnixMicro()),
		runID,
		p.Timestamp.UTC(),
		p.ElapsedSeconds,
		store.CleanText(p.Name),
		store.CleanText(p.State),
		store.CleanText(p.Type),
		store.CleanText(p.Size),
		p.StartedClusters,
		p.Running,
		p.Queued,
		p.MinClusterCount,
		p.MaxClusterCount,
		store.CleanText(p.ScalingPolicy),
		raw,
		store.CleanText(p.Generation),
		fallback,
	)
	err := s.inTx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return dberr.Failed("saving a poll of the warehouse", err)
}

// pollColumns are read by toPoll; running and queued say which columns those two are.
func pollColumns(running, queued string) string {
	return `SELECT "timestamp", coalesce(elapsed_seconds, 0), warehouse_name, state, warehouse_type, warehouse_size, started_clusters,
		coalesce(` + running + `, 0), coalesce(` + queued +
		`, 0), min_cluster_count, max_cluster_count, coalesce(scaling_policy, ''), generation, fallback_warehouse,
		CASE WHEN raw_result ->> 'auto_suspend' ~ '^[0-9]{1,9}$' THEN (raw_result ->> 'auto_suspend')::integer ELSE 0 END `
}

func toPoll(row pgx.CollectableRow) (p engine.WarehousePoint, err error) {
	var at time.Time
	err = row.Scan(&at, &p.ElapsedSeconds, &p.Name, &p.State, &p.Type, &p.Size, &p.StartedClusters, &p.Running, &p.Queued,
		&p.MinClusterCount, &p.MaxClusterCount, &p.ScalingPolicy, &p.Generation,
		&p.FallbackWarehouse, &p.AutoSuspendSeconds)
	p.Timestamp = engine.At(at)
	p.PolledAt = p.Timestamp
	return p, err
}

// Warehouse returns the polls of a run's warehouse, oldest first, without their raw rows.
func (s *Store) Warehouse(ctx context.Context, runID string) ([]engine.WarehousePoint, error) {
	points, _, err := s.WarehousePolls(ctx, runID, store.Window{})
	return points, err
}

// WarehouseChanges implements query.Store.
func (s *Store) WarehouseChanges(ctx context.Context, runID string) ([]engine.WarehousePoint, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	const of = "ROW(warehouse_name, state, warehouse_type, warehouse_size, started_clusters, min_cluster_count, " +
		"max_cluster_count, scaling_policy, generation, fallback_warehouse)"
	rows, err := s.pool.Query(ctx, pollColumns("running", "queued")+`
		FROM (SELECT *, lag(`+of+`) OVER w AS before, lead("timestamp") OVER w AS next FROM warehouse_poll_snapshots WHERE run_id = $1 WINDOW w AS (ORDER BY "timestamp")) p
		WHERE next IS NULL OR before IS DISTINCT FROM `+of+` ORDER BY "timestamp"`, runID)
	if err != nil {
		return nil, dberr.Failed("reading the warehouse", err)
	}
	points, err := pgx.CollectRows(rows, toPoll)
	return points, dberr.Failed("reading the warehouse", err)
}

// WarehousePolls implements api.SeriesStore.
func (s *Store) WarehousePolls(ctx context.Context, runID string, w store.Window) ([]engine.WarehousePoint, float64,
	error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	step, sql := float64(slotSeconds), pollColumns("running", "queued")+"FROM warehouse_poll_snapshots"+inWindow+
		` ORDER BY "timestamp"`
	args := []any{runID, w.From, w.Until}
	if w.MaxPoints > 0 {
		var first, last float64
		var polls int
		if err := s.pool.QueryRow(ctx,
			"SELECT count(*), coalesce(min(elapsed_seconds), 0), coalesce(max(elapsed_seconds), 0) FROM "+
				"warehouse_poll_snapshots"+inWindow, args...).Scan(&polls, &first, &last); err != nil {
			return nil, 0, dberr.Failed("reading the warehouse", err)
		}
		if polls > w.MaxPoints {
			step = slotSeconds * math.Ceil((last-first+1)/float64(w.MaxPoints)/slotSeconds)
			// The parts are aggregated first and their last polls looked up then: a window over whole rows sorts all of them
			// twice.
			sql = pollColumns("most_running", "most_queued") +
				`FROM (SELECT DISTINCT ON (p."timestamp") p.*, most_running, most_queued
				FROM (SELECT max("timestamp") AS last, max(running) AS most_running, max(queued) AS most_queued FROM warehouse_poll_snapshots` + inWindow + ` GROUP BY floor(elapsed_seconds / $4)) part
				JOIN warehouse_poll_snapshots p ON p.run_id = $1 AND p."timestamp" = part.last ORDER BY p."timestamp") q ORDER BY "timestamp"`
			args = append(args, step)
		}
	}
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, 0, dberr.Failed("reading the warehouse", err)
	}
	points, err := pgx.CollectRows(rows, toPoll)
	return points, step, dberr.Failed("reading the warehouse", err)
}

// slotSeconds is how often a warehouse is polled, and the length of a slot.
const slotSeconds = 5

// WarehouseSlots implements api.SeriesStore.
func (s *Store) WarehouseSlots(ctx context.Context, runID string, w store.Window) ([]engine.WarehouseSlot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	most := w.MaxPoints
	if most <= 0 {
		most = math.MaxInt32
	}
	rows, err := s.pool.Query(
		ctx,
		`WITH bounds AS (SELECT extract(epoch FROM coalesce(end_time, now()) - start_time)::double precision AS length FROM run_status WHERE run_id = $1),
		step AS (SELECT greatest(1, ceil((CASE WHEN $4::double precision > 0 THEN least($4, length) ELSE length END - $3) / 5 / $2))::bigint AS n FROM bounds)
		SELECT slot_start, elapsed_seconds, started_clusters, running,
			CASE WHEN step.n = 1 THEN queued ELSE greatest(queued, (SELECT max(w.queued) FROM warehouse_poll_snapshots w
				WHERE w.run_id = $1 AND w."timestamp" >= slot_start AND w."timestamp" < slot_start + step.n * interval '5 seconds')) END, qps
		FROM v_warehouse_timeseries, step WHERE run_id = $1 AND elapsed_seconds > $3 - 5 AND ($4 <= 0 OR elapsed_seconds <= $4) AND slot % step.n = 0 ORDER BY slot`,
		runID,
		most,
		w.From,
		w.Until,
	)
	if err != nil {
		return nil, dberr.Failed("reading the warehouse's slots", err)
	}
	slots, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p engine.WarehouseSlot, err error) {
		var at time.Time
		err = row.Scan(&at, &p.ElapsedSeconds, &p.StartedClusters, &p.Running, &p.Queued, &p.QPS)
		p.Start = engine.At(at)
		return p, err
	})
	return slots, dberr.Failed("reading the warehouse's slots", err)
}
