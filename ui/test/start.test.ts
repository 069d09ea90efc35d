import { describe, expect, it } from 'vitest';
import YAML from 'yaml';
import { questions } from '../src/start/gallery';
import { type FirstFigures, meaning } from '../src/start/meaning';

const good: FirstFigures = {
  operations: 600_000,
  qps: 30_000,
  p95_ms: 1.02,
  error_rate: 0,
  connections: 8,
  verdict: 'VALID',
  causes: [],
  passed: true,
  failed: false,
};
const said = (f: Partial<FirstFigures>) => meaning({ ...good, ...f }).sentences.join(' ');

describe('what a first run means', () => {
  it('says what was measured, and what it is not', () => {
    expect(said({})).toMatch(/600 k operations .*30.0 k\/s, over 8 connections/);
    expect(said({})).toMatch(/not the most that the table can take/);
    expect(said({})).toMatch(/1.02 ms or less/);
    expect(said({})).toMatch(/None of them failed.*figures are those of the database/);
    expect(meaning(good).next).toBe('limit');
  });
  it('does not praise what failed, or what Loadstone was too slow for', () => {
    expect(said({ error_rate: 0.5 })).toMatch(/50.0 % of them failed/);
    expect(meaning({ ...good, error_rate: 0.5 }).next).toBe('');
    const busy = { cause: 'generator_cpu', detail: 'node-1: the generator used up to 97 % of its CPUs for 9 s' };
    const slow = said({ verdict: 'DEGRADED', causes: [busy] });
    expect(slow).toMatch(/generator's limit.*Node-1: the generator used.*9 s\./);
    expect(slow).not.toMatch(/time to spare/);
    expect(said({ passed: false })).toMatch(/threshold was not met/);
  });
  it('does not blame Loadstone for what the database did', () => {
    const errors = { cause: 'errors', detail: '100 % of the operations failed: the figures say how fast errors come' };
    const what = said({ verdict: 'DEGRADED', error_rate: 1, causes: [errors] });
    expect(what).toMatch(/Something speaks against these figures\. 100 % of the operations failed/);
    expect(what).not.toMatch(/generator|Loadstone/);
  });
  it('reads nothing from nothing', () => {
    expect(said({ operations: 0, failed: true })).toMatch(/ended before an operation was measured/);
    expect(said({ operations: 0 })).not.toMatch(/None of them failed|time to spare/);
  });
});

describe('templates by question', () => {
  it.each(questions.map((q) => [q.id, q] as const))('%s', (_, q) => {
    const doc = YAML.parse(q.source) as { name: string; workload: { plugin: string } };
    expect(doc.name).not.toBe('');
    expect(q.question).toMatch(/\?$/);
    expect(['mix', 'sql', 'tpcb', 'tpcc', 'ycsb']).toContain(doc.workload.plugin);
  });
  it('have ids and names of their own', () => {
    expect(new Set(questions.map((q) => q.id)).size).toBe(questions.length);
    expect(new Set(questions.map((q) => (YAML.parse(q.source) as { name: string }).name)).size).toBe(questions.length);
  });
});
