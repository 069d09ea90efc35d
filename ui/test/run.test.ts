import { readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { LogEntry, Payload, RunDetail, WorkerPoint } from '../src/api/types';
import type { Template } from '../src/api/types';
import { firstRun, firstRunSource } from '../src/app/firstRun';
import { axisEnd, placeLabels } from '../src/charts/plot';
import { tagAddress, tagFrom } from '../src/history/tags';
import { guards } from '../src/runs/Guardrails';
import { firstGap, mergeLogs } from '../src/runs/logs';
import { prepareSteps, stepOf } from '../src/runs/PrepareProgressPanel';
import { columns, type Sample } from '../src/runs/series';
import { stopText } from '../src/runs/stop';
import { silenceText, unresponsive } from '../src/runs/unresponsive';
import { payloadPoints, workerCurves } from '../src/runs/workerSeries';

describe('the first run', () => {
  it('is the one of examples/first-run.yaml', () => {
    const example = readFileSync(new URL('../../examples/first-run.yaml', import.meta.url), 'utf8');
    expect(parse(firstRunSource)).toEqual(parse(example));
  });
  it('is of the template of that name, and leaves one when there is none', async () => {
    const there = { template_id: '7', name: 'First run' } as Template;
    expect(await firstRun([there])).toEqual({ template_id: '7', start: true });
    const sent: unknown[] = [];
    vi.stubGlobal('fetch', (path: string, request: RequestInit) => {
      sent.push(path, JSON.parse(request.body as string));
      const headers = { 'Content-Type': 'application/json' };
      return Promise.resolve(new Response('{"template_id": "8"}', { status: 201, headers }));
    });
    expect(await firstRun([])).toEqual({ template_id: '8', start: true });
    expect(sent).toEqual(['/api/templates', { source: firstRunSource }]);
    vi.unstubAllGlobals();
  });
});

describe('steps of the set-up', () => {
  it('tells the first connect from the last', () => {
    expect(prepareSteps[stepOf({ step: 'connect', rows_total: 0 })]!.now).toBe('Connecting to the target');
    expect(prepareSteps[stepOf({ step: 'connect', rows_total: 16 })]!.now).toBe('Opening connections');
    expect(prepareSteps[stepOf({ step: 'load', rows_total: 100 })]!.now).toBe('Loading sample rows');
    expect(stepOf({ step: 'unheard-of', rows_total: 0 })).toBe(-1);
    expect(stepOf(null)).toBe(-1);
  });
});

describe('what stopping a run does', () => {
  const scenario = (workload: object) =>
    ({ workload: { load_mode: 'CONCURRENCY', ...workload } }) as unknown as RunDetail['scenario_config'];
  it('names what happens to operations in flight, and when', () => {
    const message = stopText(scenario({}), 'RUNNING', 'MEASUREMENT');
    expect(message).toContain('get 5 s to finish');
    expect(message).toContain('cancelled and count as failed');
    expect(message).toContain('within about 15 s');
    expect(message).not.toContain('dropped');
  });
  it('follows the template', () => {
    expect(stopText(scenario({ stop: { drain_seconds: 60 } }), 'STOPPING', 'COOLDOWN')).toContain(
      'get 1 min to finish',
    );
    expect(stopText(scenario({ stop: { drain_seconds: 0 } }), 'RUNNING', 'WARMUP')).toContain('cancelled at once');
    expect(stopText(scenario({ load_mode: 'QPS' }), 'RUNNING', 'WARMUP')).toContain('have not started are dropped');
  });
  it('promises no load while the target is prepared', () =>
    expect(stopText(scenario({}), 'RUNNING', 'PREPARING')).toContain('cancels the preparation'));
});

describe('workers that are not heard of', () => {
  const now = Date.parse('2026-01-01T00:02:00Z');
  const worker = (i: number, health: string, status = 'RUNNING') => ({
    worker_id: `worker-${i}`,
    health,
    status,
    last_heartbeat: '2026-01-01T00:01:20Z',
  });
  const live = (...workers: object[]) => ({ status: 'RUNNING', workers }) as unknown as Payload;
  const four = [0, 1, 2, 4].map((i) => worker(i, 'HEALTHY'));
  it('are none while all are heard', () => {
    expect(unresponsive(live(...four), now)).toBeNull();
    expect(unresponsive(null, now)).toBeNull();
  });
  it('are counted, from STALE on', () => {
    const u = unresponsive(live(...four, worker(3, 'STALE')), now)!;
    expect(u.title).toBe('1/5 workers unresponsive');
    expect(u.tone).toBe('warn');
    expect(u.details).toHaveLength(1);
    expect(u.details[0]).toContain('worker-3');
  });
  it('say what a dead one means for the figures', () => {
    const u = unresponsive(live(...four, worker(3, 'DEAD', 'DEAD'), worker(5, 'STALE')), now)!;
    expect(u.title).toBe('2/6 workers unresponsive');
    expect(u.tone).toBe('bad');
    expect(u.details[1]).toContain('excluded from the live figures');
  });
  it('say for how long one was not heard, before it is stale', () => {
    const at = { timestamp: '2026-01-01T00:01:26Z' } as Payload;
    expect(silenceText(at, { silent_since: '2026-01-01T00:01:20Z' })).toBe('no report for 6 s');
    expect(silenceText(at, { silent_since: null })).toBeNull();
    expect(silenceText(null, { silent_since: '2026-01-01T00:01:20Z' })).toBeNull();
  });
  it('leave out those that retired', () =>
    expect(unresponsive(live(worker(0, 'STALE'), worker(1, 'HEALTHY', 'COMPLETED')), now)!.title).toBe(
      '1/1 workers unresponsive',
    ));
});

describe('lines that are missing in the log', () => {
  const lines = (...seqs: number[]) => seqs.map((seq) => ({ seq }) as LogEntry);
  it('are those after the last that is known', () => {
    expect(firstGap(lines(1, 2, 3))).toBeNull();
    expect(firstGap(lines())).toBeNull();
    expect(firstGap(lines(1, 2, 9, 10))).toBe(2);
    expect(firstGap(lines(7, 8))).toBe(0);
  });
  it('fill the hole when they come', () => {
    const all = mergeLogs(lines(1, 2, 9), lines(3, 4, 5, 6, 7, 8));
    expect(firstGap(all)).toBeNull();
    expect(all).toHaveLength(9);
  });
});

describe('labels of markers', () => {
  const place = (xs: number[], to = 400) => placeLabels(xs, [44, 72, 22], 0, to, 8);
  it('begin at their markers when there is room', () => expect(place([10, 100, 380], 420)).toEqual([10, 100, 380]));
  it('end at the marker when the edge is near', () => expect(place([10, 100, 395])).toEqual([10, 100, 373]));
  it('give way to the longest phase', () => expect(place([100, 110, 390])).toEqual([null, 110, 368]));
  it('lean into the phase before rather than vanish', () => expect(place([100, 140, 390])).toEqual([88, 140, 368]));
  it('leave out what has no room at all', () => expect(place([10, 12, 14], 50)).toEqual([null, null, 14]));
  it('never overlap and never leave the plot', () => {
    for (let a = 0; a <= 300; a += 13)
      for (let b = a; b <= 300; b += 7)
        for (let c = b; c <= 300; c += 11) {
          const placed = placeLabels([a, b, c], [44, 72, 22], 0, 300, 8)
            .map((p, i) => (p === null ? null : ([p, p + [44, 72, 22][i]!] as const)))
            .filter((p) => p !== null)
            .sort((x, y) => x[0] - y[0]);
          for (const [i, p] of placed.entries()) {
            expect(p[0]).toBeGreaterThanOrEqual(-1);
            expect(p[1]).toBeLessThanOrEqual(301);
            if (i > 0) expect(p[0] - placed[i - 1]![1]).toBeGreaterThanOrEqual(8);
          }
        }
  });
});

describe('tags', () => {
  it.each([
    ['ticket:PERF-1', 'ticket:PERF-1'],
    [' ticket : a:b ', 'ticket:a:b'],
    ['ticket', null],
    [':x', null],
    ['x:', null],
    ['', null],
  ])('reads %j', (text, tag) => expect(tagFrom(text)).toBe(tag));
  it('keeps odd names in the address', () =>
    expect(new URLSearchParams(tagAddress('a b', 'c&d=e').split('?')[1]).get('tag')).toBe('a b:c&d=e'));
});

describe('curves of run workers', () => {
  const point = (worker_id: string, s: number, qps: number, phase: WorkerPoint['phase'] = 'MEASUREMENT') => ({
    timestamp: new Date(s * 1000).toISOString(),
    elapsed_seconds: s,
    worker_id,
    phase,
    qps,
    p95_latency_ms: null,
  });
  it('sorts seconds by worker and time, once each', () => {
    const c = workerCurves([
      point('b', 2, 20),
      point('a', 1, 1),
      point('b', 1, 10),
      point('a', 2, 2),
      point('a', 2.2, 99),
      point('a', 0, 7, 'PREPARING'),
    ]);
    expect(c.get('a')!.qps).toEqual([1, 2]);
    expect(c.get('b')!.qps).toEqual([10, 20]);
  });
  it('ends where it is told', () =>
    expect(workerCurves([point('a', 1, 1), point('a', 9, 0)], 5000).get('a')!.qps).toEqual([1]));
  it('takes a payload without workers', () => expect(payloadPoints({ workers: null } as Payload)).toEqual([]));
});

describe('guardrails', () => {
  const sample = (cpu: number) => ({ t: cpu, at: cpu, qps: 1, active: 1, cpu, hostMemory: null }) as Sample;
  const c = columns({ samples: [sample(20), sample(90), sample(40)].map((s, t) => ({ ...s, t })) });
  const run = (guardrails: object) => ({ scenario_config: { guardrails } }) as RunDetail;
  it('has none without limits', () => expect(guards(run({ max_cpu_percent: null }), c, null)).toEqual([]));
  it('shows the highest second of a finished run', () =>
    expect(guards(run({ max_cpu_percent: 80, max_host_memory_percent: 90 }), c, null)).toMatchObject([
      { label: 'Generator CPU', limit: 80, value: 90 },
      { label: 'Host memory', limit: 90, value: null },
    ]));
  it('shows what a live run reports now', () => {
    const state = { name: 'max_cpu_percent', limit: 80, value: 33, held_seconds: 0, hold_seconds: 7 };
    const live = { guardrails: [state] } as unknown as Payload;
    expect(guards(run({ max_cpu_percent: 80, max_p99_ms: 5 }), c, live)).toMatchObject([
      { value: 33, heldSeconds: 0, hold: 7 },
      { label: 'P99', unit: 'ms', value: null },
    ]);
  });
  it('leaves the warm-up out of what the target did', () => {
    const of = (phase: string, p95: number, errors: number, t: number) =>
      ({ t, at: t, qps: 10, active: 1, phase, p95, errors }) as Sample;
    const shown = columns({ samples: [of('WARMUP', 90, 10, 0), of('MEASUREMENT', 20, 1, 1)] });
    expect(guards(run({ max_p95_ms: 50, max_error_rate_pct: 5 }), shown, null)).toMatchObject([
      { label: 'Error rate', value: 10 },
      { label: 'P95', value: 20 },
    ]);
  });
});

it('a threshold far above what was measured does not flatten it', () => {
  expect(axisEnd(12, [250])).toBe(12);
  expect(axisEnd(12, [20, 250])).toBe(20);
  expect(axisEnd(12, [5])).toBe(12);
  expect(axisEnd(0, [250, 40])).toBe(250);
  expect(axisEnd(null, [])).toBe(0);
});
