package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

const presentWorkers = `SELECT worker_id, role, host, kinds, slots, waits_for, seen_at FROM refresh_workers
	WHERE seen_at >= clock_timestamp() - make_interval(secs => $1) ORDER BY role DESC, host, worker_id`

func worker(row pgx.CollectableRow) (w refresh.Worker, err error) {
	err = row.Scan(&w.Name, &w.Role, &w.Host, &w.Kinds, &w.Slots, &w.Waits, &w.SeenAt.Time)
	w.SeenAt = engine.At(w.SeenAt.Time)
	return w, err
}

// NoteRefreshWorker implements refresh.Refreshes.
func (q RefreshQueue) NoteRefreshWorker(ctx context.Context, w refresh.Worker) error {
	_, err := q.Pool.Exec(ctx, `INSERT INTO refresh_workers (worker_id, role, host, kinds, slots, waits_for, seen_at)
		VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp())
		ON CONFLICT (worker_id) DO UPDATE SET role = excluded.role, host = excluded.host, kinds = excluded.kinds,
			slots = excluded.slots, waits_for = excluded.waits_for, seen_at = excluded.seen_at`,
		w.Name, string(w.Role), store.CleanText(w.Host), append([]refresh.Kind{}, w.Kinds...), w.Slots,
		store.CleanText(w.Waits))
	return dberr.Failed("saying that a worker is there", err)
}

// ForgetRefreshWorker implements refresh.Refreshes.
func (q RefreshQueue) ForgetRefreshWorker(ctx context.Context, name string) error {
	_, err := q.Pool.Exec(ctx, "DELETE FROM refresh_workers WHERE worker_id = $1", name)
	return dberr.Failed("saying that a worker has ended", err)
}

// RefreshLoad implements refresh.Refreshes. The newest lines of the history are read from its end.
func (q RefreshQueue) RefreshLoad(ctx context.Context) (l refresh.Load, err error) {
	err = q.Pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE c.epoch IS NOT NULL OR p.next_refresh_due <= n.now),
			coalesce(greatest(max(extract(epoch FROM n.now - p.next_refresh_due)) FILTER (WHERE c.epoch IS NULL), 0), 0),
			coalesce(greatest(max(extract(epoch FROM n.now - least(p.enqueued_at, p.next_refresh_due))), 0), 0),
			coalesce((SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY h.seconds) FROM (
				SELECT extract(epoch FROM ended_at - started_at) AS seconds FROM refresh_history WHERE error = ''
				ORDER BY seq DESC LIMIT $1) h), 0),
			(SELECT count(*) FROM dynamic_tables WHERE status = 'FAILED'),
			coalesce((SELECT max(extract(epoch FROM clock_timestamp() - x.since)) FROM dynamic_tables t
				CROSS JOIN LATERAL (`+staleSQL+`) x WHERE t.kind = 'INGEST' AND t.status <> 'SUSPENDED'), 0)
		FROM (SELECT clock_timestamp() AS now) n LEFT JOIN pending_refreshes p ON true
			LEFT JOIN refresh_claims c USING (dynamic_table, subtask)`, refresh.DurationSamples).Scan(&l.Due, &l.OldestSeconds,
		&l.OverdueSeconds, &l.P95Seconds, &l.Failed, &l.IngestLagSeconds)
	return l, dberr.Failed("reading how much there is to refresh", err)
}
