// A live run of the mock: it prepares, warms up, measures, and ends with figures.
import type { LogEntry, LogLevel, Payload, Phase } from '../src/api/types';
import {
  closedLoop,
  finish,
  iso,
  type Loaded,
  logsOf,
  notEnriched,
  openLoop,
  point,
  type StoredRun,
  valid,
} from './data';
import { searchState } from './search';
import { plan } from './plugins';
import { histogram, kinds, random, type Random, type Second, second, summarise } from './model';

interface Listener {
  send: (p: Payload) => void;
  end: () => void;
}

/** RunHolder is a run that may be live. */
export interface RunHolder extends StoredRun {
  live?: Live | null;
  workers?: number;
}

export interface StartOptions {
  skip?: number;
  errors?: number;
  prepare?: number;
  /** Number of run workers; 2 by default. */
  workers?: number;
}

export class Live {
  payload!: Payload;
  private readonly run: StoredRun['run'];
  private readonly errors: number;
  private readonly rnd: Random;
  private readonly prepareSeconds: number;
  private readonly workers: number;
  private readonly start: number;
  private readonly timer: NodeJS.Timeout;
  private now = 0;
  private tick = 0;
  private seconds: Loaded[] = [];
  private fresh: LogEntry[] = [];
  private readonly listeners = new Set<Listener>();
  private readonly classes: Record<string, number> = {};
  private total = 0;
  private failed = 0;
  private byKind: Record<string, number> = {};
  private stopAt: number | null = null;

  constructor(
    private readonly holder: RunHolder,
    { skip = 0, errors = 0, prepare = 4, workers = 2 }: StartOptions = {},
  ) {
    this.run = holder.run;
    this.errors = errors;
    this.workers = workers;
    holder.workers = workers;
    this.rnd = random(Math.floor(Math.random() * 1e9));
    this.prepareSeconds = skip ? 1 : prepare;
    this.start = Date.now() - skip * 1000;
    Object.assign(this.run, {
      status: 'RUNNING',
      phase: 'PREPARING',
      start_time: iso(this.start),
      created_at: iso(this.start),
    });
    holder.points = [];
    holder.plan = null;
    holder.logs = logsOf(this.run, this.start, 0).slice(0, 5);
    while (this.tick < skip) this.step();
    this.timer = setInterval(() => this.step(), 1000);
    this.step();
  }

  subscribe(send: Listener['send'], end: Listener['end']) {
    const l = { send, end };
    this.listeners.add(l);
    send(this.payload);
    return () => this.listeners.delete(l);
  }

  stop() {
    if (this.stopAt !== null) return;
    this.stopAt = this.tick + 2;
    Object.assign(this.run, {
      status: 'CANCELLING',
      cancellation_reason: 'User requested cancellation',
      stop_reason: 'user_requested',
    });
  }

  private log(level: LogLevel, message: string, worker?: string) {
    const seq = (this.holder.logs.at(-1)?.seq ?? 0) + 1;
    const line = { seq, run_id: this.run.run_id, worker_id: worker, level, message, timestamp: iso(this.now) };
    this.holder.logs.push(line);
    this.fresh.push(line);
  }

  private step(): void {
    const t = ++this.tick;
    this.now = this.start + t * 1000;
    this.fresh = [];
    const w = this.run.scenario_config.workload;
    const p = this.prepareSeconds;
    const warmEnd = p + w.warmup_seconds;
    const end = warmEnd + w.duration_seconds;
    if (this.stopAt !== null && t >= this.stopAt) return this.finish('CANCELLED');
    if (t > end + 1) return this.finish('COMPLETED');
    let phase: Phase = 'PREPARING';
    if (t > p) {
      if (!this.holder.plan) {
        this.holder.plan = plan;
        this.run.warmup_start_time = iso(this.start + p * 1000);
        this.log('INFO', `Warm-up began; it lasts ${w.warmup_seconds} s.`);
      }
      phase = t <= warmEnd ? 'WARMUP' : t <= end ? 'MEASUREMENT' : 'COOLDOWN';
    }
    if (phase === 'MEASUREMENT' && this.run.phase !== 'MEASUREMENT') {
      this.run.warmup_end_time = iso(this.start + warmEnd * 1000);
      this.total = 0;
      this.byKind = {};
      this.log('INFO', `Measurement began; it lasts ${w.duration_seconds} s.`);
    }
    if (phase === 'COOLDOWN') {
      this.run.status = 'STOPPING';
      this.run.measurement_end_time ??= iso(this.start + end * 1000);
    }
    this.run.phase = phase;
    if (phase !== 'PREPARING' && t % 17 === 0)
      this.log('INFO', `${Math.round(this.total)} operations so far.`, `worker-${t % 2}`);
    if (phase !== 'PREPARING' && t % 31 === 0)
      this.log('WARNING', 'A checkpoint of the target slowed writes for 1.2 s.', 'worker-1');
    const s =
      phase === 'PREPARING'
        ? null
        : second(this.rnd, {
            t: t - p,
            connections: w.concurrent_connections,
            errors: t % 23 === 0 ? 0.002 : this.errors,
          });
    if (s) {
      this.seconds.push({ ...s, phase });
      this.total += Math.round(s.qps);
      const failed = Math.round(s.errorsPerSec);
      this.failed += failed;
      if (failed) this.classes.serialization = (this.classes.serialization ?? 0) + failed;
      for (const k of kinds) this.byKind[k] = (this.byKind[k] ?? 0) + Math.round(s.byKind[k]);
      this.holder.points.push(
        point(s, {
          loop: w.load_mode === 'QPS' ? openLoop(s, w.concurrent_connections) : closedLoop,
          at: this.now,
          t,
          phase,
          connections: w.concurrent_connections,
          total: this.total,
          failed: this.failed,
          classes: { ...this.classes },
        }),
      );
    }
    Object.assign(this.run, { total_ops: this.total, error_count: this.failed, current_qps: s?.qps ?? 0 });
    this.payload = this.snapshot(s, phase, t, { p, warmEnd, end });
    for (const l of this.listeners) l.send(this.payload);
  }

  private snapshot(
    s: Second | null,
    phase: Phase,
    t: number,
    { p, warmEnd, end }: { p: number; warmEnd: number; end: number },
  ): Payload {
    const w = this.run.scenario_config.workload;
    const l = summarise(s?.latencies ?? []);
    const begin = { PREPARING: 0, WARMUP: p, MEASUREMENT: warmEnd, COOLDOWN: end, PROCESSING: end, '': end }[phase];
    const part = w.concurrent_connections / this.workers;
    const share = Math.min(1, t / p);
    return {
      test_id: this.run.run_id,
      run_id: this.run.run_id,
      test_name: this.run.test_name,
      status: this.run.status,
      phase,
      timestamp: iso(this.now),
      elapsed: t,
      timing: {
        elapsed_display_seconds: t,
        phase_elapsed_seconds: t - begin,
        phase_remaining_seconds: null,
        start_time: this.run.start_time,
        warmup_start_time: this.run.warmup_start_time,
        warmup_end_time: this.run.warmup_end_time,
        measurement_start_time: this.run.warmup_end_time,
        measurement_end_time: this.run.measurement_end_time,
        end_time: null,
        warmup_seconds: w.warmup_seconds,
        duration_seconds: w.duration_seconds,
        expected_seconds_total: end,
        prepare_elapsed_seconds: null,
        processing_start_time: null,
        processing_elapsed_seconds: null,
      },
      ops: { total: this.total, current_per_sec: s?.qps ?? 0 },
      operations: {
        reads: Math.round(this.total * 0.8),
        writes: Math.round(this.total * 0.2),
        reads_per_sec: (s?.qps ?? 0) * 0.8,
        writes_per_sec: (s?.qps ?? 0) * 0.2,
      },
      latency: l,
      latency_total: l,
      simulated: false,
      emulated: false,
      guardrails: [],
      rules: (this.run.scenario_config.rules ?? []).map((r) => ({
        name: r.name,
        do: r.do,
        status: 'RUNNING',
        rows_in: Math.floor(t) * this.workers,
        rows_out: 0,
        last_at: null,
        last_row: '',
        failure: '',
      })),
      service_total: summarise([]),
      ...(s && w.load_mode === 'QPS' ? openLoop(s, w.concurrent_connections) : closedLoop),
      latency_by_kind: {},
      latency_aggregation_method: s ? 'merged_histogram' : null,
      latency_histogram: s ? histogram(s.latencies, s.scale) : null,
      ops_by_kind: Object.fromEntries(
        kinds.map((k) => [k, { total: this.byKind[k] ?? 0, errors: 0, per_sec: s?.byKind[k] ?? 0 }]),
      ),
      errors: {
        count: this.failed,
        rate: this.total ? this.failed / this.total : 0,
        per_sec: s?.errorsPerSec ?? 0,
        by_class: { ...this.classes },
        recent: Object.entries(this.classes).map(([error_class, count]) => ({
          error_class,
          error_code: '40001',
          error_message: 'could not serialize access due to concurrent update',
          count,
          first_at: iso(this.start + (p + 1) * 1000),
          last_at: iso(this.now),
        })),
        dropped: 0,
        retries: 0,
      },
      connections: {
        active: s ? w.concurrent_connections : 0,
        target: w.concurrent_connections,
        missing: 0,
        lost: 0,
        refused: 0,
        reopened: 0,
      },
      workers: Array.from({ length: this.workers }, (_, i) => ({
        worker_id: `worker-${i}`,
        worker_group_id: i,
        node_id: 'local',
        status: s ? 'RUNNING' : 'STARTING',
        phase,
        health: 'HEALTHY',
        last_heartbeat: iso(this.now),
        silent_since: null,
        load_ends_by: null,
        beginning: s
          ? { node_id: 'local', began_at: iso(this.now - t * 1000), start_late_ms: i * 0.4, clock_error_ms: i * 0.2 }
          : null,
        metrics: {
          qps: ((s?.qps ?? 0) / this.workers) * (i ? 1.02 : 0.98),
          p50_latency_ms: l.p50,
          p95_latency_ms: l.p95 && l.p95 * (1 + i * 0.06),
          p99_latency_ms: l.p99,
          total_queries: Math.round(this.total / this.workers),
          error_count: i ? this.failed : 0,
          active_connections: s ? part : 0,
          target_connections: part,
          cpu_pct: 40 + i * 3,
        },
      })),
      warehouse: null,
      find_max:
        w.load_mode === 'FIND_MAX_CONCURRENCY' && t > warmEnd
          ? searchState(t - warmEnd, { repeat: w.repeat ?? 1 })
          : null,
      custom_metrics: {
        app_ops_breakdown: {},
        sf_bench: {},
        resources: {
          cpu_pct: 41 + 4 * Math.sin(t / 6),
          memory_pct: 4.2,
          memory_bytes: 121_000_000,
          goroutines: 180,
          gc_pause_max_ms: 0.2,
          stood_still_ms: 0,
          host_cpu_pct: 83,
          host_memory_pct: 38,
        },
      },
      cancellation_reason: this.run.cancellation_reason,
      validity: valid,
      enrichment: notEnriched('PENDING'),
      prepare:
        phase === 'PREPARING'
          ? {
              step: share < 0.9 ? 'load' : 'connect',
              message: share < 0.9 ? 'Loading sample rows into orders' : 'Opening the connections of the run workers',
              rows_done: share < 0.9 ? Math.round(100000 * share) : w.concurrent_connections,
              rows_total: share < 0.9 ? 100000 : w.concurrent_connections,
              rows_per_second: share < 0.9 ? 100000 / p : 0,
              remaining_seconds: p - t,
            }
          : null,
      logs: this.fresh,
      logs_dropped: 0,
    };
  }

  private finish(status: 'CANCELLED' | 'COMPLETED') {
    clearInterval(this.timer);
    this.fresh = [];
    const done = finish(this.run, {
      start: this.start + (this.prepareSeconds - 1) * 1000,
      status,
      reason: this.run.cancellation_reason,
      seconds: this.seconds.length ? this.seconds : undefined,
      points: this.holder.points,
    });
    this.run.start_time = iso(this.start);
    Object.assign(this.holder, { summary: done.summary, plan: done.plan, artifacts: done.artifacts });
    this.payload = { ...this.payload, status, phase: null };
    for (const l of this.listeners) {
      l.send(this.payload);
      l.end();
    }
    this.listeners.clear();
    this.holder.live = null;
  }
}
