package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/library"
	rootserver "github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
	"github.com/loadstone-db/loadstone/storage/results"
)

// rollUps rolls up the points of largestRun.
const rollUps = `INSERT INTO metrics_rollups
    SELECT run_id, floor(elapsed_seconds / 10)::bigint, coalesce(phase, ''), max("timestamp"), count(*), sum(qps), sum(reads_per_sec), sum(writes_per_sec), sum(errors_per_sec),
        count(p50_latency_ms), coalesce(sum(p50_latency_ms), 0), coalesce(sum(avg_latency_ms), 0), max(p95_latency_ms), max(p99_latency_ms), max(max_latency_ms)
    FROM metrics_snapshots GROUP BY 1, 2, 3`

// largestRun fills a control store with a run of a week on 1000 run workers, as the
// roll-ups of one would: 604 800 seconds, 100 000 lines of log, 10⁹ executions in
// its summary, 5000 control events and 2000 parts.
const largestRun = `
SET session_replication_role = replica; -- The triggers would have it live through its statuses.
INSERT INTO run_status (run_id, test_id, test_name, scenario_config, status, phase, start_time, warmup_end_time, measurement_end_time, end_time,
    total_workers_expected, workers_registered, workers_completed, total_ops, error_count, next_sequence_id)
  SELECT 'r', 'r', 'the largest run', jsonb_build_object('name', 'the largest run', 'target', '{"connection": "c", "adapter": "postgres", "table_name": "orders"}'::jsonb,
    'workload', jsonb_build_object('plugin', 'replay', 'load_mode', 'CONCURRENCY', 'concurrent_connections', 16000, 'duration_seconds', 604800,
      'feed', jsonb_build_object('csv', repeat('12,POINT_LOOKUP,abcdefgh' || chr(10), 40000)))),
    'COMPLETED', NULL, t, t, t + interval '7 days', t + interval '7 days', 1000, 1000, 1000, 1000000000, 12345, 5001 FROM (SELECT timestamptz '2026-01-01' AS t) x;
INSERT INTO test_results (test_id, run_id, worker_id, worker_group_id, test_name, status, start_time, end_time, figures, validity, passed)
  SELECT CASE WHEN w = 0 THEN 'r' ELSE 'r-' || w END, 'r', CASE WHEN w > 0 THEN 'worker-' || w END, CASE WHEN w > 0 THEN w END, 'the largest run', 'COMPLETED', timestamptz '2026-01-01', timestamptz '2026-01-08', f, '{"verdict": "VALID"}', true
  FROM generate_series(0, 1000) w, (SELECT jsonb_build_object('operations', 1000000000, 'qps', 1653.4, 'duration_seconds', 604800,
    'latency_ms', '{"p50": 1.5, "p95": 3.5, "p99": 9.5, "avg": 1.9, "min": 0.2, "max": 900}'::jsonb,
    'by_kind', (SELECT jsonb_object_agg(k, '{"count": 100, "qps": 2.5, "latency_ms": {"p50": 1, "p95": 2, "p99": 3}}'::jsonb) FROM unnest(ARRAY['POINT_LOOKUP', 'RANGE_SCAN', 'INSERT', 'UPDATE']) k),
    'histogram', (SELECT jsonb_agg(jsonb_build_object('from_ms', i, 'to_ms', i + 1, 'count', i)) FROM generate_series(1, 900) i),
    'slowest', (SELECT jsonb_agg(jsonb_build_object('seq', i, 'kind', 'INSERT', 'app_elapsed_ms', i)) FROM generate_series(1, 50) i)) AS f) x;
INSERT INTO test_logs (run_id, seq, level, message) SELECT 'r', s, CASE WHEN s % 10 = 0 THEN 'WARNING' ELSE 'INFO' END, 'Worker ' || s || ' says something that takes a line of the log.' FROM generate_series(1, 100000) s;
INSERT INTO run_control_events (event_id, run_id, event_type, sequence_id, event_data)
  SELECT 'e' || s, 'r', 'SET_WORKER_TARGET', s, jsonb_build_object('scope', 'WORKER', 'worker_id', 'worker-' || s, 'target_connections', s, 'reason', 'step_advance') FROM generate_series(1, 5000) s;
INSERT INTO query_execution_artifacts (artifact_id, run_id, test_id, worker_id, kind, name, artifact_size_bytes, artifact_checksum, row_count)
  SELECT 'a' || s, 'r', 'r-1', 'worker-' || s, 'executions', 'executions-worker-' || s || '.parquet', 100000000, repeat('a', 64), 500000 FROM generate_series(1, 2000) s;
INSERT INTO metrics_snapshots (run_id, "timestamp", elapsed_seconds, phase, qps, reads_per_sec, writes_per_sec, p50_latency_ms, p95_latency_ms, p99_latency_ms,
    avg_latency_ms, max_latency_ms, total_queries, error_count, active_connections, target_connections, qps_by_kind, errors_by_class, histogram, load_detail)
  SELECT 'r', timestamptz '2026-01-01' + s * interval '1 second', s, CASE WHEN s < 600 THEN 'WARMUP' ELSE 'MEASUREMENT' END, 1653 + s % 50, 1200, 453 + s % 50,
    1.5, 3.5 + (s % 1000 = 7)::int * 50, 9.5, 1.9, 30, s * 1653::bigint, s / 50, 16000, 16000,
    '{"POINT_LOOKUP": 1200.5, "INSERT": 300.25, "UPDATE": 152.5}', '{"timeout": 12}', h, '{"schedule_lag_ms": {"p50": 0.1, "p99": 0.9}, "split_ms": {"pool": 0.1, "first_byte": 1.4, "decode": 0.2}}'
  FROM generate_series(1, 604800) s, (SELECT jsonb_build_object('schema', 6, 'offset', 1200, 'counts', (SELECT jsonb_agg(i % 97) FROM generate_series(1, 120) i), 'sum', 1000000, 'min', 10, 'max', 1000000) AS h) x;
INSERT INTO worker_heartbeats (run_id, worker_id, worker_group_id, node_id, test_id, status, last_heartbeat)
  SELECT 'r', 'worker-' || w, w, 'node', 'r-' || w, 'COMPLETED', timestamptz '2026-01-08' FROM generate_series(1, 1000) w;
INSERT INTO worker_metrics_snapshots (run_id, worker_id, tick, worker_group_id, "timestamp", elapsed_seconds, phase, qps, p50_latency_ms, p95_latency_ms, p99_latency_ms, total_queries)
  SELECT 'r', 'worker-' || w, s, w, timestamptz '2026-01-01' + s * interval '1 hour', s * 3600, 'MEASUREMENT', 1.6, 1.5, 3.5, 9.5, s
  FROM generate_series(1, 1000) w, generate_series(1, 168) s;
INSERT INTO warehouse_poll_snapshots (snapshot_id, run_id, "timestamp", elapsed_seconds, warehouse_name, state, warehouse_type, warehouse_size, started_clusters, running, queued, min_cluster_count, max_cluster_count)
  SELECT 'w' || s, 'r', timestamptz '2026-01-01' + s * interval '5 seconds', s * 5, 'BENCH', 'STARTED', 'STANDARD', 'X-Small', 1 + s / 120 % 3, s % 8, s % 5, 1, 3 FROM generate_series(1, 120960) s; -- with clusters that change every ten minutes
INSERT INTO test_templates (template_id, template_name, config)
  SELECT 't' || s, 'template ' || s, (SELECT scenario_config FROM run_status WHERE run_id = 'r') FROM generate_series(1, 30) s;
INSERT INTO run_status (run_id, test_id, test_name, scenario_config, status, start_time, end_time, total_workers_expected, total_ops)
  SELECT 'n' || s, 'n' || s, 'one of many', (SELECT scenario_config FROM run_status WHERE run_id = 'r'), 'COMPLETED', timestamptz '2025-12-01' + s * interval '1 minute', timestamptz '2025-12-01' + s * interval '2 minutes', 1, 1000 FROM generate_series(1, 300) s;`

// BenchmarkLargestRun asks for what the page of a run asks for, over HTTP, of the
// largest run that is promised. The first requests after the fill come from a cold cache.
func BenchmarkLargestRun(b *testing.B) {
	ctx := b.Context()
	dsn := pgtest.Start(b).NewDatabase(b)
	if err := schema.Apply(ctx, dsn); err != nil {
		b.Fatal(err)
	}
	b.Setenv(keyring.KeyEnv, "")
	keys, err := keyring.Open(filepath.Join(b.TempDir(), "key"))
	if err != nil {
		b.Fatal(err)
	}
	db, err := postgres.Open(ctx, dsn, keys)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, sql := range []string{largestRun, rollUps, "VACUUM ANALYZE"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			b.Fatal(err)
		}
	}
	folder, err := results.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	h, err := host.New(ctx, host.Options{Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Close(context.Background()) }()
	lib, err := library.Open(ctx, library.Options{Host: h, Store: db, Dir: b.TempDir(), Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	runs := enginerun.New(enginerun.Options{Store: db, Results: folder, Plugins: h, Log: zerolog.Nop()})
	srv, err := rootserver.New(rootserver.Options{Addr: "127.0.0.1:0", Runs: runs, Store: db, Files: folder, Plugins: lib,
		Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	addr, err := srv.Listen()
	if err != nil {
		b.Fatal(err)
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(serving) }()
	defer func() { stop(); <-served }()
	admin, err := db.EnsureAdmin(ctx, "admin")
	if err != nil {
		b.Fatal(err)
	}
	token, _, err := auth.New(db, zerolog.Nop()).CreateAPIToken(ctx, admin.UserID, "bench", auth.ScopeAdmin, time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{
		"/api/runs/r", "/api/runs/r/timeseries", "/api/runs/r/timeseries?worker_id=*",
		"/api/runs/r/timeseries?from_seconds=300000&until_seconds=303000",
		"/api/runs/r/logs?limit=1000", "/api/runs/r/logs?after=99000&limit=1000", "/api/runs/r/events?after=4000",
		"/api/runs/r/artifacts", "/api/runs/r/summary", "/api/runs",
		"/api/runs?limit=200", "/api/runs/r/warehouse", "/api/runs/r/enrichment", "/api/tests/r", "/api/templates",
		"/api/runs/r/timeseries?worker_id=worker-7",
		"/api/runs/r/timeseries?worker_id=*&max_points=10000", "/api/runs/r/timeseries?max_points=10000",
		"/api/runs/r/logs?limit=5000", "/api/runs/r/logs?level=ERROR",
	} {
		b.Run(path, func(b *testing.B) {
			var size int64
			for b.Loop() {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+token)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				text, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || res.StatusCode != http.StatusOK || !json.Valid(text) {
					b.Fatal(fmt.Errorf("%s: %w: %.300s", res.Status, err, text))
				}
				size = int64(len(text))
			}
			b.ReportMetric(float64(size), "body-B")
		})
	}
	http.DefaultClient.CloseIdleConnections()
}
