import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import type { RunDetail, Summary } from '../src/api/types';
import { ByLoad } from '../src/runs/ByLoad';

const part = {
  from: '2026-11-22T12:00:02Z',
  to: '2026-11-22T12:00:12.5Z',
  load: 100,
  operations: 1_050,
  errors: 3,
  qps: 100,
  p50_ms: 0.412,
  p95_ms: 1.02,
  p99_ms: null,
};
const rows = (load_mode: string, by_load: Summary['by_load']) => {
  const html = renderToStaticMarkup(
    createElement(ByLoad, {
      run: {
        start_time: '2026-11-22T12:00:00Z',
        scenario_config: { workload: { load_mode } },
      } as RunDetail,
      s: { by_load } as Summary,
    }),
  );
  return [...html.matchAll(/<tr>(.*?)<\/tr>/g)].map((r) =>
    [...r[1]!.matchAll(/<t[dh][^>]*>(.*?)<\/t[dh]>/g)].map((c) =>
      c[1]!.replace(/<[^>]*>/g, '').replace(/\u202f|&nbsp;/g, ' '),
    ),
  );
};
const second = { ...part, from: part.to, to: '2026-11-22T12:01:02Z', load: 300, operations: 14_850, qps: 300 };

it('shows each load with its time in the run, and what no operation has as nothing', () => {
  const [head, first, last] = rows('QPS', [part, second]);
  expect(head).toEqual(['From', 'To', 'Load', 'Operations', 'Throughput', 'P50', 'P95', 'P99', 'Errors']);
  expect(first!).toEqual(['2s', '12.5s', '100 /s', '1,050', '100/s', '0.412ms', '1.02ms', '–', '3']);
  expect(last!.slice(0, 3)).toEqual(['12.5s', '1:02', '300 /s']);
});

it('counts connections in a closed loop', () => {
  const loads = rows('CONCURRENCY', [
    { ...part, load: 1 },
    { ...second, load: 12 },
  ]).map((r) => r[2]);
  expect(loads).toEqual(['Load', '1 connection', '12 connections']);
});

it('is not there where nobody changed the load', () => {
  expect(rows('QPS', [])).toEqual([]);
  expect(rows('QPS', null)).toEqual([]);
});
