package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
)

// SaveWarehouse implements store.Runs.
func (s *Store) SaveWarehouse(ctx context.Context, runID string, epoch int64, p engine.WarehousePoint) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var raw []byte
	if len(p.Raw) > 0 {
		raw = []byte(clean(string(p.Raw)))
	}
	batch := &pgx.Batch{}
	batch.Queue("SELECT fence_run($1, $2)", runID, epoch)
	batch.Queue(`INSERT INTO warehouse_poll_snapshots (snapshot_id, run_id, "timestamp", elapsed_seconds, warehouse_name, state, warehouse_type, warehouse_size,
			started_clusters, running, queued, min_cluster_count, max_cluster_count, scaling_policy, raw_result, generation, fallback_warehouse)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING`,
		fmt.Sprintf("%s-%d", runID, p.Timestamp.UnixMicro()), runID, p.Timestamp.UTC(), p.ElapsedSeconds, clean(p.Name), clean(p.State), clean(p.Type), clean(p.Size),
		p.StartedClusters, p.Running, p.Queued, p.MinClusterCount, p.MaxClusterCount, clean(p.ScalingPolicy), raw, clean(p.Generation), clean(p.FallbackWarehouse))
	err := s.inTx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return failed("saving a poll of the warehouse", err)
}

// Warehouse implements store.Runs.
func (s *Store) Warehouse(ctx context.Context, runID string) ([]engine.WarehousePoint, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT "timestamp", coalesce(elapsed_seconds, 0), warehouse_name, state, warehouse_type, warehouse_size, coalesce(started_clusters, 0),
			coalesce(running, 0), coalesce(queued, 0), coalesce(min_cluster_count, 0), coalesce(max_cluster_count, 0), coalesce(scaling_policy, ''), generation, fallback_warehouse
		FROM warehouse_poll_snapshots WHERE run_id = $1 ORDER BY "timestamp"`, runID)
	if err != nil {
		return nil, failed("reading the warehouse", err)
	}
	points, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p engine.WarehousePoint, err error) {
		var at time.Time
		err = row.Scan(&at, &p.ElapsedSeconds, &p.Name, &p.State, &p.Type, &p.Size, &p.StartedClusters, &p.Running, &p.Queued, &p.MinClusterCount, &p.MaxClusterCount, &p.ScalingPolicy, &p.Generation,
			&p.FallbackWarehouse)
		p.Timestamp = engine.At(at)
		p.PolledAt = p.Timestamp
		return p, err
	})
	return points, failed("reading the warehouse", err)
}

// WarehouseSlots implements store.Runs.
func (s *Store) WarehouseSlots(ctx context.Context, runID string, most int) ([]engine.WarehouseSlot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `WITH step AS (SELECT greatest(1, ceil(extract(epoch FROM coalesce(end_time, now()) - start_time) / 5 / $2))::bigint AS n FROM run_status WHERE run_id = $1)
		SELECT slot_start, elapsed_seconds, started_clusters, running, queued, qps FROM v_warehouse_timeseries, step WHERE run_id = $1 AND slot % step.n = 0 ORDER BY slot`, runID, most)
	if err != nil {
		return nil, failed("reading the warehouse's slots", err)
	}
	slots, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p engine.WarehouseSlot, err error) {
		var at time.Time
		err = row.Scan(&at, &p.ElapsedSeconds, &p.StartedClusters, &p.Running, &p.Queued, &p.QPS)
		p.Start = engine.At(at)
		return p, err
	})
	return slots, failed("reading the warehouse's slots", err)
}
