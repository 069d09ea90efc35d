package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SaveTick implements writer.Store: one transaction and one round trip for its
// body, whatever the number of run workers. Rows travel as arrays.
func (s *Store) SaveTick(ctx context.Context, t store.Tick) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	batch := &pgx.Batch{}
	// The first statement locks the run and fails the rest when the caller is fenced.
	batch.Queue("SELECT fence_run($1, $2)", t.RunID, t.Epoch)
	batch.Queue(`UPDATE run_status SET total_ops = $2, error_count = $3, current_qps = $4,
			workers_registered = $5, workers_active = $6, workers_completed = $7, updated_at = now(),
			lease_until = clock_timestamp() + make_interval(secs => $8)
		WHERE run_id = $1`, t.RunID, t.TotalOps, t.ErrorCount, t.CurrentQPS,
		t.WorkersRegistered, t.WorkersActive, t.WorkersCompleted, s.Lease().Seconds())
	if len(t.Workers) > 0 {
		queueHeartbeats(batch, t)
	}
	if len(t.Snapshots) > 0 {
		if err := queueSnapshots(batch, t); err != nil {
			return err
		}
	}
	if t.Point != nil {
		if err := queuePoint(batch, t.RunID, t.Point); err != nil {
			return err
		}
	}
	if len(t.Logs) > 0 {
		queueLogs(batch, t.RunID, t.Logs)
	}
	if t.FindMax != nil {
		text, err := document("state of the search", store.KeepSearch(*t.FindMax))
		if err != nil {
			return err
		}
		batch.Queue("UPDATE run_status SET find_max_state = $2 WHERE run_id = $1", t.RunID, text)
	}
	if t.Rules != nil {
		text, err := document("rules", t.Rules)
		if err != nil {
			return err
		}
		batch.Queue("UPDATE run_status SET rules_state = $2 WHERE run_id = $1", t.RunID, text)
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return dberr.Failed("saving a second of the run", err)
}

func queueHeartbeats(batch *pgx.Batch, t store.Tick) {
	n := len(t.Workers)
	ids, nodes, results := make([]string, n), make([]string, n), make([]string, n)
	statuses, phases, faults := make([]string, n), make([]string, n), make([]string, n)
	groups, beats := make([]int32, n), make([]*time.Time, n)
	for i, w := range t.Workers {
		ids[i], nodes[i], results[i], groups[i] = w.WorkerID, w.NodeID, w.ResultID, int32(w.WorkerGroupID)
		statuses[i], phases[i], faults[i], beats[i] = string(w.Status), string(w.Phase), store.CleanText(w.Error),
			stamp(w.LastHeartbeat)
	}
	batch.Queue(
		`INSERT INTO worker_heartbeats AS old (run_id, worker_id, worker_group_id, node_id, test_id, status, phase, last_heartbeat, error)
		SELECT $1, w.id, w.grp, w.node, w.test, w.status, nullif(w.phase, ''), coalesce(w.beat, now()), w.error
		FROM unnest($2::text[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::text[])
			AS w(id, grp, node, test, status, phase, beat, error)
		ON CONFLICT (run_id, worker_id) DO UPDATE SET worker_group_id = excluded.worker_group_id, node_id = excluded.node_id,
			test_id = excluded.test_id, status = excluded.status, phase = excluded.phase,
			last_heartbeat = excluded.last_heartbeat, error = excluded.error
		WHERE excluded.last_heartbeat >= old.last_heartbeat`,
		t.RunID,
		ids,
		groups,
		nodes,
		results,
		statuses,
		phases,
		beats,
		faults,
	)
}

func queueSnapshots(batch *pgx.Batch, t store.Tick) error {
	n := len(t.Snapshots)
	ids, results, nodes := make([]string, n), make([]string, n), make([]string, n)
	phases, statuses, custom := make([]string, n), make([]string, n), make([]string, n)
	ticks, total, reads, writes, faults := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n),
		make([]int64, n)
	groups, active, target := make([]int32, n), make([]int32, n), make([]int32, n)
	at, phaseSeconds := make([]time.Time, n), make([]float64, n)
	qps, cpu, memory := make([]float64, n), make([]float64, n), make([]float64, n)
	var latency [5][]*float64
	for i := range latency {
		latency[i] = make([]*float64, n)
	}
	h, unpacker := histogram.New(), histogram.Unpacker{}
	for i := range t.Snapshots {
		w := &t.Snapshots[i]
		ids[i], results[i], nodes[i], groups[i] = w.WorkerID, w.ResultID, w.NodeID, int32(w.WorkerGroupID)
		phases[i], statuses[i], ticks[i], at[i] = string(w.Phase), string(w.Status), w.Tick, w.Timestamp.UTC()
		phaseSeconds[i] = w.PhaseSeconds
		if w.TickSeconds > 0 {
			qps[i] = float64(w.TickStarted) / w.TickSeconds
		}
		total[i], faults[i] = w.Started, w.Failed
		for kind, c := range w.ByKind {
			switch {
			case kind.Read():
				reads[i] += c.Count
			case kind.Write():
				writes[i] += c.Count
			}
		}
		active[i], target[i] = int32(w.ActiveConnections), int32(w.TargetConnections)
		cpu[i], memory[i] = w.Resources.CPUPercent, w.Resources.MemoryPercent
		body, err := document("snapshot", extras(w))
		if err != nil {
			return err
		}
		custom[i] = string(body)
		if w.TickLatency == nil {
			continue
		}
		h.Reset()
		// A histogram that does not add up leaves the percentiles out.
		if err := h.MergeData(unpacker.Unpack(w.TickLatency)); err != nil || h.Count() == 0 {
			continue
		}
		for k, ns := range []float64{h.Quantile(0.5), h.Quantile(0.95), h.Quantile(0.99), h.Mean(), float64(h.Max())} {
			ms := ns / 1e6
			latency[k][i] = &ms
		}
	}
	batch.Queue(
		`INSERT INTO worker_metrics_snapshots (run_id, worker_id, tick, test_id, worker_group_id, node_id, "timestamp",
			elapsed_seconds, phase, status, qps, p50_latency_ms, p95_latency_ms, p99_latency_ms, avg_latency_ms, max_latency_ms,
			total_queries, read_count, write_count, error_count, active_connections, target_connections, cpu_pct, memory_pct, custom_metrics)
		SELECT $1, w.id, w.tick, w.test, w.grp, w.node, w.at,
			coalesce(greatest(extract(epoch FROM w.at - r.start_time)::float8, 0), w.phase_seconds), nullif(w.phase, ''), w.status,
			w.qps, w.p50, w.p95, w.p99, w.avg, w.max, w.total, w.reads, w.writes, w.errors, w.active, w.target, w.cpu, w.memory, w.custom::jsonb
		FROM run_status r, unnest($2::text[], $3::int8[], $4::text[], $5::int[], $6::text[], $7::timestamptz[], $8::float8[], $9::text[], $10::text[],
			$11::float8[], $12::float8[], $13::float8[], $14::float8[], $15::float8[], $16::float8[],
			$17::int8[], $18::int8[], $19::int8[], $20::int8[], $21::int[], $22::int[], $23::float8[], $24::float8[], $25::text[])
			AS w(id, tick, test, grp, node, at, phase_seconds, phase, status, qps, p50, p95, p99, avg, max,
				total, reads, writes, errors, active, target, cpu, memory, custom)
		WHERE r.run_id = $1
		ON CONFLICT DO NOTHING`,
		t.RunID,
		ids,
		ticks,
		results,
		groups,
		nodes,
		at,
		phaseSeconds,
		phases,
		statuses,
		qps,
		latency[0],
		latency[1],
		latency[2],
		latency[3],
		latency[4],
		total,
		reads,
		writes,
		faults,
		active,
		target,
		cpu,
		memory,
		custom,
	)
	return nil
}

func queuePoint(batch *pgx.Batch, runID string, p *engine.Point) error {
	kinds, err := document("point", p.QPSByKind)
	if err != nil {
		return err
	}
	classes, err := document("point", p.ErrorsByClass)
	if err != nil {
		return err
	}
	var hist []byte
	if err := optional(&hist, "point", p.Histogram); err != nil {
		return err
	}
	load, err := document("point", p.LoadStats)
	if err != nil {
		return err
	}
	// A point that is there already is not rolled up again.
	batch.Queue(
		`WITH new AS (INSERT INTO metrics_snapshots (run_id, "timestamp", elapsed_seconds, phase, qps, reads_per_sec, writes_per_sec,
			p50_latency_ms, p95_latency_ms, p99_latency_ms, avg_latency_ms, max_latency_ms, errors_per_sec, total_queries, error_count,
			active_connections, target_connections, qps_by_kind, errors_by_class, histogram, cpu_pct, memory_pct, host_cpu_pct, host_memory_pct, load_detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)
		ON CONFLICT DO NOTHING RETURNING *)
		INSERT INTO metrics_rollups AS r (run_id, stretch, phase, last_at, points, qps_sum, reads_sum, writes_sum, errors_sum,
			latencies, p50_sum, avg_sum, p95_max, p99_max, max_max)
		SELECT run_id, floor(elapsed_seconds / 10)::bigint, coalesce(phase, ''), "timestamp", 1, qps, reads_per_sec, writes_per_sec, errors_per_sec,
			(p50_latency_ms IS NOT NULL)::int, coalesce(p50_latency_ms, 0), coalesce(avg_latency_ms, 0), p95_latency_ms, p99_latency_ms, max_latency_ms FROM new
		ON CONFLICT (run_id, stretch, phase) DO UPDATE SET last_at = greatest(r.last_at, excluded.last_at), points = r.points + 1,
			qps_sum = r.qps_sum + excluded.qps_sum, reads_sum = r.reads_sum + excluded.reads_sum, writes_sum = r.writes_sum + excluded.writes_sum,
			errors_sum = r.errors_sum + excluded.errors_sum, latencies = r.latencies + excluded.latencies,
			p50_sum = r.p50_sum + excluded.p50_sum, avg_sum = r.avg_sum + excluded.avg_sum,
			p95_max = greatest(r.p95_max, excluded.p95_max), p99_max = greatest(r.p99_max, excluded.p99_max), max_max = greatest(r.max_max, excluded.max_max)`,
		runID,
		p.Timestamp.UTC(),
		p.ElapsedSeconds,
		orNull(p.Phase),
		p.QPS,
		p.ReadsPerSec,
		p.WritesPerSec,
		p.P50LatencyMs,
		p.P95LatencyMs,
		p.P99LatencyMs,
		p.AvgLatencyMs,
		p.MaxLatencyMs,
		p.ErrorsPerSec,
		p.TotalQueries,
		p.ErrorCount,
		p.ActiveConnections,
		p.TargetConnections,
		kinds,
		classes,
		hist,
		p.CPUPercent,
		p.MemoryPercent,
		p.HostCPUPercent,
		p.HostMemoryPercent,
		load,
	)
	return nil
}

func queueLogs(batch *pgx.Batch, runID string, lines []engine.LogEntry) {
	n := len(lines)
	seqs, at := make([]int64, n), make([]*time.Time, n)
	results, workers, levels, messages := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	details := make([]*string, n)
	for i, l := range lines {
		seqs[i], at[i] = l.Seq, stamp(l.Timestamp.Time)
		results[i], workers[i], levels[i], messages[i] = l.ResultID, l.WorkerID, string(l.Level), store.CleanText(l.Message)
		if len(l.Details) > 0 {
			text := string(store.CleanDetails(l.Details))
			details[i] = &text
		}
	}
	batch.Queue(`INSERT INTO test_logs (run_id, seq, test_id, worker_id, level, message, details, "timestamp")
		SELECT $1, l.seq, nullif(l.test, ''), nullif(l.worker, ''), l.level, l.message, l.details::jsonb, coalesce(l.at, clock_timestamp())
		FROM unnest($2::int8[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[])
			AS l(seq, test, worker, level, message, details, at)
		ON CONFLICT DO NOTHING`, runID, seqs, results, workers, levels, messages, details, at)
}

// appendLogs adds lines behind those that a run has, whose row tx has locked.
func appendLogs(ctx context.Context, tx pgx.Tx, runID string, lines []engine.LogEntry) error {
	if len(lines) == 0 {
		return nil
	}
	var last int64
	if err := tx.QueryRow(ctx, "SELECT coalesce(max(seq), 0) FROM test_logs WHERE run_id = $1",
		runID).Scan(&last); err != nil {
		return err
	}
	numbered := slices.Clone(lines)
	for i := range numbered {
		numbered[i].Seq = last + 1 + int64(i)
	}
	batch := &pgx.Batch{}
	queueLogs(batch, runID, numbered)
	return tx.SendBatch(ctx, batch).Close()
}
