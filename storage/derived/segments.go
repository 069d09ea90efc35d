package derived

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// RunSegment names the file that holds the series of a run, and what the run was.
type RunSegment struct {
	RunID, RunName, Template, Adapter, Connection, Table string
	Name, SHA256                                         string
	SizeBytes                                            int64
	StartedAt, EndedAt                                   time.Time
	// Live: the run is going on, or has no file; its seconds are read with Seconds. Name changes with them.
	Live bool
}

// Segments are those of the runs that were going on between two times, the newest run first.
func (d *Database) Segments(ctx context.Context, from, to time.Time) ([]RunSegment, error) {
	rows, err := d.owner.Query(ctx, `SELECT r.run_id, r.run_name, r.template, r.adapter, r.connection, r.table_name,
			coalesce(s.name, 'live-' || r.version || '-' || coalesce(l.epoch, 0) || '-' || coalesce(l.batch, 0)),
			coalesce(s.sha256, ''), coalesce(s.size_bytes, 0), r.started_at, coalesce(r.ended_at, clock_timestamp()),
			s.name IS NULL
		FROM rollup.runs r LEFT JOIN rollup.segments s USING (run_id) LEFT JOIN staging.live_runs l USING (run_id)
		WHERE r.started_at IS NOT NULL AND r.started_at <= $2 AND coalesce(r.ended_at, clock_timestamp()) >= $1
		ORDER BY r.started_at DESC, r.run_id`, from.UTC(), to.UTC())
	if err != nil {
		return nil, wrapError("reading which segments there are", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s RunSegment, err error) {
		err = row.Scan(&s.RunID, &s.RunName, &s.Template, &s.Adapter, &s.Connection, &s.Table, &s.Name, &s.SHA256,
			&s.SizeBytes, &s.StartedAt, &s.EndedAt, &s.Live)
		return s, err
	})
	return all, wrapError("reading which segments there are", err)
}

// secondsOf are the rows of the relations of a run that a segment has, in one statement: all are as of one moment.
const secondsOf = `SELECT relation, second, warmup, at, kind, statement_id, in_transaction, worker_id, error_class, error_code,
		operations, errors, row_count, latency, warehouse, warehouse_type, warehouse_size, state, started_clusters, running, queued,
		credits
	FROM (
		SELECT 'kind_seconds' AS relation, second, warmup, at, kind, '' AS statement_id, false AS in_transaction,
			'' AS worker_id, '' AS error_class, '' AS error_code, operations, errors, row_count, latency, '' AS warehouse,
			'' AS warehouse_type, '' AS warehouse_size, '' AS state, 0 AS started_clusters, 0 AS running, 0 AS queued,
			-1::float8 AS credits
		FROM rollup.kind_seconds WHERE run_id = $1
		UNION ALL SELECT 'statement_seconds', second, warmup, at, kind, statement_id, in_transaction, '', '', '', operations,
			errors, row_count, latency, '', '', '', '', 0, 0, 0, -1 FROM rollup.statement_seconds WHERE run_id = $1
		UNION ALL SELECT 'worker_seconds', second, warmup, at, '', '', false, worker_id, '', '', operations,
			errors, row_count, latency, '', '', '', '', 0, 0, 0, -1 FROM rollup.worker_seconds WHERE run_id = $1
		UNION ALL SELECT 'error_seconds', second, warmup, at, kind, '', false, '', error_class, error_code, 0,
			errors, 0, '{}', '', '', '', '', 0, 0, 0, -1 FROM rollup.error_seconds WHERE run_id = $1
		UNION ALL SELECT 'warehouse_seconds', second, false, at, '', '', false, '', '', '', 0,
			0, 0, '{}', warehouse, warehouse_type, warehouse_size, state,
			coalesce(started_clusters, CASE WHEN state ILIKE 'SUSPEND%' THEN 0 ELSE 1 END), running, queued,
			coalesce(credits_per_hour, -1)
		FROM rollup.warehouse_seconds WHERE run_id = $1
	) s ORDER BY second`

// loadsOf are what run workers reported in a run.
const loadsOf = `SELECT second, warmup, at, worker_id, node_id, scheduled, dropped, retries, connections, target_connections,
		coalesce(waiting, -1), coalesce(target_operations_per_second, -1), cpu_ratio, memory_ratio, memory_bytes,
		host_cpu_ratio, host_memory_ratio
	FROM rollup.load_seconds WHERE run_id = $1 ORDER BY second`

// Seconds hands over the roll-ups of a run as rows of a segment, those of each series in the order of their seconds,
// with the counts of their latencies. Row and counts are valid until add returns.
func (d *Database) Seconds(ctx context.Context, runID string, add func(*segment.Row, []int64) error) error {
	err := pgx.BeginTxFunc(ctx, d.owner, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if err := loadSeconds(ctx, tx, runID, add); err != nil {
				return err
			}
			return seconds(ctx, tx, runID, add)
		})
	return wrapError("reading the seconds of a run", err)
}

func seconds(ctx context.Context, tx pgx.Tx, runID string, add func(*segment.Row, []int64) error) error {
	rows, err := tx.Query(ctx, secondsOf, runID)
	if err != nil {
		return err
	}
	var r segment.Row
	var at time.Time
	var latency []int64
	_, err = pgx.ForEachRow(rows, []any{&r.Relation, &r.Second, &r.Warmup, &at, &r.Kind, &r.StatementID, &r.InTransaction,
		&r.WorkerID, &r.ErrorClass, &r.ErrorCode, &r.Operations, &r.Errors, &r.RowCount, &latency, &r.Warehouse,
		&r.WarehouseType, &r.WarehouseSize, &r.State, &r.StartedClusters, &r.Running, &r.Queued, &r.CreditsPerHour},
		func() error {
			r.At = at.UnixMicro()
			counts := []int64(nil)
			if len(latency) >= 5 {
				r.LatencySchema, r.LatencyOffset, r.LatencySumNs = int32(latency[0]), int32(latency[1]),
					latency[2]
				counts = latency[5:]
			}
			return add(&r, counts)
		})
	return err
}

func loadSeconds(ctx context.Context, tx pgx.Tx, runID string, add func(*segment.Row, []int64) error) error {
	rows, err := tx.Query(ctx, loadsOf, runID)
	if err != nil {
		return err
	}
	r := segment.Row{Labels: segment.Labels{Relation: segment.LoadSeconds}}
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&r.Second, &r.Warmup, &at, &r.WorkerID, &r.NodeID, &r.Scheduled, &r.Dropped,
		&r.Retries, &r.Connections, &r.TargetConnections, &r.Waiting, &r.TargetRate, &r.CPU, &r.Memory, &r.MemoryBytes,
		&r.HostCPU, &r.HostMemory}, func() error {
		r.At = at.UnixMicro()
		return add(&r, nil)
	})
	return err
}

// Outdated are runs whose segment is of an earlier version than this program writes, the newest first.
func (d *Database) Outdated(ctx context.Context) ([]string, error) {
	rows, err := d.owner.Query(ctx, `SELECT run_id FROM rollup.segments s JOIN rollup.runs r USING (run_id)
		WHERE s.version < $1 ORDER BY r.started_at DESC`, segment.Version)
	if err != nil {
		return nil, wrapError("reading which segments are of an earlier version", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return all, wrapError("reading which segments are of an earlier version", err)
}
