import { describe, expect, it } from 'vitest';
import YAML from 'yaml';
import { plugins } from '../dev/plugins';
import { questions } from '../src/start/gallery';
import {
  appliesTo,
  asNewTemplate,
  blank,
  draftBody,
  edit,
  exampleSource,
  unplacedErrors,
} from '../src/templates/draft';
import { check, describe as list, fieldKind, get, limits, type Schema, set } from '../src/templates/schema';
import { corners, totalSeconds } from '../src/templates/stages';
import { colour, hasComments, writeYaml } from '../src/templates/yaml';

const mix = plugins[0]!.manifest.parameters as Schema;

describe('errors that the form has no place for', () => {
  it('are those without a control on the page', () => {
    const errors = [
      'workload.stages[0].connections',
      'workload.retry.classes[1]',
      'guardrails.max_p95_ms',
      'workload.target_qps',
    ].map((field) => ({ field, message: 'is wrong' }));
    const fields = (there: string[]) => unplacedErrors(errors, there).map((e) => e.field);
    expect(fields(['workload.stages', 'workload.retry.max'])).toEqual([
      'workload.retry.classes[1]',
      'workload.target_qps',
    ]);
    expect(fields(['workload.target_qps'])).toEqual(['workload.stages[0].connections', 'workload.retry.classes[1]']);
  });
});

describe('parameter forms', () => {
  it('chooses the control by the schema', () => {
    const kinds = Object.fromEntries(Object.entries(mix.properties!).map(([k, s]) => [k, fieldKind(s)]));
    expect(kinds).toEqual({
      weights: 'weights',
      keys: 'choice',
      zipf_theta: 'number',
      zipf_scrambled: 'switch',
      scan_length: 'integer',
      value_size: 'group',
    });
    expect(fieldKind({ type: 'array', items: { type: 'string' } })).toBe('list');
    expect(fieldKind({ type: 'object' })).toBe('json');
    expect(fieldKind({ type: ['string', 'null'] })).toBe('text');
    expect(fieldKind({})).toBe('json');
  });
  it('says which field is wrong and what its limits are', () => {
    const wrong = check(
      { keys: 'hot', scan_length: 1.5, weights: { INSERT: -1 }, zipf: 1, value_size: { min: 'x' } },
      mix,
      'workload.params',
    );
    expect(wrong.map((e) => e.field).sort()).toEqual([
      'workload.params.keys',
      'workload.params.scan_length',
      'workload.params.value_size.min',
      'workload.params.weights.INSERT',
      'workload.params.zipf',
    ]);
    expect(wrong.find((e) => e.field.endsWith('INSERT'))!.hint).toBe('0 to 1,000,000');
    expect(check({ keys: 'zipfian' }, mix, 'p')).toEqual([]);
    expect(check(undefined, mix, 'p')).toEqual([]);
    // A value of own SQL may have several types.
    const any: Schema = { type: ['string', 'number', 'boolean', 'null'], maxLength: 3 };
    for (const v of ['new', 10, 2.5, true, null]) expect(check(v, any, 'p'), String(v)).toEqual([]);
    expect(check([false, 1, 'x'], { type: 'array', items: any }, 'p')).toEqual([]);
    expect(check('paid', any, 'p')[0]!.message).toBe('is too long');
    expect(check({}, any, 'p')[0]!.message).toBe('is not text');
    expect(limits({ exclusiveMinimum: 0 })).toBe('above 0');
  });
  it('lists nested parameters with their paths', () =>
    expect(list(mix).map((d) => d.path)).toContain('value_size.max'));
});

describe('editing one field', () => {
  it('shares what it does not touch', () => {
    const a = blank();
    const b = set(a, 'workload.params.keys', 'latest');
    expect(get(b, 'workload.params.keys')).toBe('latest');
    expect(b.target).toBe(a.target);
    expect(get(a, 'workload.params.keys')).toBeUndefined();
    expect('description' in set(set(a, 'description', 'x'), 'description', undefined)).toBe(false);
  });
  it('lets a capacity that was just enough follow the connections', () => {
    const more = edit(blank(), 'workload.concurrent_connections', 33);
    expect(more.scaling.per_worker_capacity).toBe(17);
    const roomy = edit(
      { ...blank(), scaling: { mode: 'FIXED', worker_count: 2, per_worker_capacity: 100 } },
      'workload.concurrent_connections',
      33,
    );
    expect(roomy.scaling.per_worker_capacity).toBe(100);
  });
  it('sends what was edited last', () => {
    const config = blank();
    expect(draftBody({ config, source: 'name: x', edited: 'yaml' })).toEqual({ source: 'name: x' });
    expect(draftBody({ config, source: 'name: x', edited: 'form' })).toEqual({ config });
  });
  it('makes a copy without its origin', () => {
    expect(asNewTemplate({ ...blank(), template_id: 'a', template_name: 'b' }, 'c')).toEqual({ ...blank(), name: 'c' });
  });
  it('names no connection that is not there, in an example either', () => {
    expect(blank([{ name: 'mine' }]).target?.connection).toBe('');
    expect(blank(undefined).target?.connection).toBe('playground');
    let named = 0;
    for (const { id, source } of questions) {
      expect(exampleSource(source, [{ name: 'mine' }, { name: 'playground' }])).toBe(source);
      expect(exampleSource(source, undefined)).toBe(source);
      const changed = YAML.stringify(YAML.parse(exampleSource(source, [{ name: 'mine' }])));
      expect(changed, id).not.toMatch(/: playground$/m);
      expect(changed, id).toBe(
        YAML.stringify(YAML.parse(source)).replaceAll(/connection: playground$/gm, 'connection: ""'),
      );
      named += source.match(/connection: playground/g)?.length ?? 0;
    }
    expect(named).toBeGreaterThan(5);
  });
  it('knows which control an error belongs to', () => {
    expect(appliesTo('thresholds', 'thresholds[1]')).toBe(true);
    expect(appliesTo('workload.params', 'workload.params.keys')).toBe(true);
    expect(appliesTo('workload.seed', 'workload.seed_more')).toBe(false);
  });
});

describe('open loop and stages', () => {
  it('leaves out what a mode has no meaning for', () => {
    let c = edit(blank(), 'workload.load_mode', 'QPS');
    expect(c.workload).toMatchObject({ load_mode: 'QPS', target_qps: 500 });
    expect(c.workload.think_time_ms).toBeUndefined();
    c = edit(c, 'workload.arrival', 'workload');
    expect(c.workload.target_qps).toBeUndefined();
    c = edit(edit(c, 'workload.arrival', 'poisson'), 'workload.max_in_flight', 50);
    expect(c.workload.target_qps).toBe(500);
    c = edit(c, 'workload.load_mode', 'CONCURRENCY');
    for (const field of ['target_qps', 'arrival', 'max_in_flight', 'stages'] as const)
      expect(c.workload[field]).toBeUndefined();
  });
  it('lets stages say how long the measurement is', () => {
    let c = edit(blank(), 'workload.stages', [{ duration_seconds: 30, connections: 50 }]);
    expect(c.workload.duration_seconds).toBeUndefined();
    expect(totalSeconds(c.workload.stages!)).toBe(30);
    for (const [path, value] of [
      ['workload.stages', undefined],
      ['workload.load_mode', 'QPS'],
    ] as const)
      expect(edit(c, path, value).workload.duration_seconds).toBe(60);
    c = edit(c, 'workload.stages', undefined);
    expect(c.workload.duration_seconds).toBe(60);
  });
  it('draws ramps and steps', () => {
    const stages = [
      { duration_seconds: 10, target_qps: 300 },
      { duration_seconds: 5, target_qps: 50, ramp: 'step' as const },
    ];
    expect(corners(stages, 100, 'target_qps')).toEqual([
      [0, 100],
      [10, 300],
      [10, 50],
      [15, 50],
    ]);
    expect(corners(stages.slice(0, 1), null, 'target_qps')).toEqual([
      [0, 300],
      [10, 300],
    ]);
  });
});

describe('YAML', () => {
  it('writes what a YAML reader reads back', () => {
    const docs: unknown[] = [
      blank(),
      {
        a: 'yes',
        b: '1e3',
        c: '',
        d: ' x',
        e: 'a: b',
        f: '# no',
        g: 'p95_ms < 50',
        h: null,
        i: [],
        j: {},
        k: [1, { l: [true] }],
        'odd key: x': 'multi\nline',
        m: '-1',
        n: '~',
      },
      {
        thresholds: ['error_rate < 0.001'],
        target: { connection: { driver: 'postgres', dsn: 'postgres://u:p@h/db?x=1' } },
      },
    ];
    for (const d of docs) expect(YAML.parse(writeYaml(d))).toEqual(d);
  });
  it('colours a line without changing it', () => {
    const lines = [
      'name: first run # words',
      '  rows: {a: 1, b: "x # y"}',
      '- p95_ms < 250',
      "k: 'it''s'",
      '',
      '\t',
      'url: postgres://u:p@h:5432/db',
      'weights: {POINT_LOOKUP: 70}',
      '"unclosed: x',
    ];
    for (const l of lines)
      expect(
        colour(l)
          .map((p) => p.text)
          .join(''),
      ).toBe(l);
    expect(colour('rows: 100 # c').map((p) => p.kind)).toEqual(['key', '', 'number', '', 'comment']);
    expect(colour('text: for 20 seconds').some((p) => p.kind === 'number')).toBe(false);
  });
  it('sees comments, not hashes in text', () => {
    expect(hasComments('a: 1 # x')).toBe(true);
    expect(hasComments('a: "x # y"\nb: c#d')).toBe(false);
  });
});

describe('a search for the limit in the form', () => {
  it('brings what it needs, and takes it away again', () => {
    const first = edit(blank(), 'workload.load_mode', 'FIND_MAX_CONCURRENCY');
    expect(first.find_max).toMatchObject({ enabled: true, unit: 'connections', start_concurrency: 4 });
    // Worker capacity must not stay at what one fixed load needed.
    expect(first.scaling.per_worker_capacity).toBeUndefined();
    const rate = edit(edit(first, 'find_max.max_concurrency', 90), 'find_max.unit', 'rate');
    expect(rate.find_max).toMatchObject({ unit: 'rate', start_rate: 500 });
    expect(rate.find_max?.max_concurrency).toBeUndefined();
    const slo = edit(edit(rate, 'find_max.slo.p95_ms', 20), 'find_max.slo.p95_ms', undefined);
    expect(slo.find_max?.slo).toBeUndefined();
    const back = edit(rate, 'workload.load_mode', 'CONCURRENCY');
    expect(back.find_max).toBeUndefined();
    expect(back.workload.concurrent_connections).toBe(16);
    expect(back.scaling.per_worker_capacity).toBe(8);
  });
});
