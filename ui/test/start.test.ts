import { describe, expect, it } from 'vitest';
import YAML from 'yaml';
import { questions } from '../src/start/gallery';
import type { RunDetail } from '../src/api/types';
import { explainRun, otherNotes, type FirstFigures, progressText } from '../src/start/explanation';

const good: FirstFigures = {
  operations: 600_000,
  qps: 30_000,
  p95_ms: 1.02,
  error_rate: 0,
  connections: 8,
  verdict: 'VALID',
  causes: [],
  notes: [],
  local: false,
  passed: true,
  failed: false,
};
const sentences = (f: Partial<FirstFigures>) => explainRun({ ...good, ...f }).sentences.join(' ');

describe('what a first run means', () => {
  it('says what was measured, and what it is not', () => {
    expect(sentences({})).toMatch(/600 k operations: 30.0 k\/s over 8 connections/);
    expect(sentences({})).toMatch(/not the limit of the table/);
    expect(sentences({})).toMatch(/1.02 ms or less/);
    expect(sentences({})).toMatch(/No operation failed.*figures describe the database/);
    expect(explainRun(good).next).toBe('limit');
  });
  it('does not praise what failed, or what Loadstone was too slow for', () => {
    expect(sentences({ error_rate: 0.5 })).toMatch(/50.0 % of the operations failed/);
    expect(explainRun({ ...good, error_rate: 0.5 }).next).toBe('');
    const busy = { cause: 'generator_cpu', detail: 'node-1: the generator used up to 97 % of its CPUs for 9 s' };
    const slow = sentences({ verdict: 'DEGRADED', causes: [busy] });
    expect(slow).toMatch(/limit of the generator.*Node-1: the generator used.*9 s\./);
    expect(slow).not.toMatch(/was fast enough/);
    expect(sentences({ passed: false })).toMatch(/threshold failed/);
  });
  it('does not blame Loadstone for what the database did', () => {
    const errors = { cause: 'errors', detail: '100 % of the operations failed: the figures say how fast errors come' };
    const what = sentences({ verdict: 'DEGRADED', error_rate: 1, causes: [errors] });
    expect(what).toMatch(/These figures may be unreliable\. 100 % of the operations failed/);
    expect(what).not.toMatch(/generator|Loadstone/);
  });
  it('does not call figures describe the database alone when it shared its machine, and tells the notes', () => {
    const notes = otherNotes({
      notes: ['The target is on the same machine as the load generator.', '40 operations were measured: few.'],
      note_details: [{ code: 'target_local' }, { code: 'operations_few' }],
    });
    expect(sentences({ local: true, notes })).toMatch(/shared its machine.*40 operations were measured: few\.$/);
    expect(sentences({ local: true, notes })).not.toMatch(/describe the database|same machine as/);
  });
  it('reads nothing from nothing', () => {
    expect(sentences({ operations: 0, failed: true })).toMatch(/ended before its measurement/);
    expect(sentences({ operations: 0 })).not.toMatch(/No operation failed|was fast enough/);
  });
});

describe('a first run that goes on', () => {
  const live = (phase: string, more: object) =>
    progressText({
      status: 'RUNNING',
      phase,
      live: { phase, timing: { phase_remaining_seconds: 7.2 }, ...more },
    } as RunDetail);
  it('says what it does, and how much is left', () => {
    const load = { step: 'load', message: '', rows_done: 40_000, rows_total: 100_000, remaining_seconds: 12.4 };
    expect(live('PREPARING', { prepare: load })).toBe('Loading sample rows, 40.0 k of 100 k. About 13 s left.');
    expect(live('WARMUP', {})).toMatch(/do not count yet\. About 8 s left/);
    expect(live('MEASUREMENT', { ops: { total: 9, current_per_sec: 4 } })).toMatch(/4.* now\. About 8 s left/);
    expect(live('MEASUREMENT', { ops: { total: 0, current_per_sec: 0 } })).toMatch(/no operation has finished yet/);
  });
  it('says what it waits for, and needs no news to say something', () => {
    const waiting = { reason: 'Another run is live.' };
    expect(progressText({ status: 'PREPARED', waiting } as RunDetail)).toBe('The run is waiting: Another run is live.');
    expect(progressText({ status: 'RUNNING', phase: 'PREPARING', live: null })).toBe('Preparing the run.');
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
