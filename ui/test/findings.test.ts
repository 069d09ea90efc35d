import { describe, expect, it } from 'vitest';
import { diffLines, hunks } from '../src/templates/diff';
import { lineOf, moveFindings, sortByLine, withFormLabels } from '../src/templates/findings';

const at = (line: number | undefined, field = 'x') => ({ field, message: 'is wrong', line });

describe('what was found in a text that was changed since', () => {
  const text = 'name: a\ntarget:\n  connection: p\nworkload:\n  plugin: mixx\n';
  it('moves along with the lines below a change', () => {
    expect(moveFindings([at(5)], text, `# a comment\n# of two lines\n${text}`)).toEqual([at(7)]);
    expect(moveFindings([at(5), at(1)], text, text.replace('target:\n', '')).map((e) => e.line)).toEqual([4, 1]);
  });
  it('keeps its line while that is being written, and has none once lines came or went there', () => {
    expect(moveFindings([at(5)], text, text.replace('mixx', 'mix'))).toEqual([at(5)]);
    expect(moveFindings([at(5)], text, text.replace('mixx', 'mix\n  seed: 5'))[0]!.line).toBeUndefined();
    expect(moveFindings([at(5)], text, text)).toEqual([at(5)]);
  });
  it('stands in the order of the lines', () => {
    expect(sortByLine([at(undefined, 'a'), at(9, 'b'), at(2, 'c'), at(9, 'd')]).map((e) => e.field)).toEqual([
      'c',
      'b',
      'd',
      'a',
    ]);
  });
});

describe('the line of a field', () => {
  const text = [
    'name: a', // 1
    'target: {connection: p, adapter: postgres}',
    'workload:',
    '  plugin: sql',
    '  params:', // 5
    '    statements:',
    '      - id: one',
    '        binds:',
    '          - {name: plugin}',
    '      # a comment', // 10
    '      - id: two',
    '        sql: |',
    '          SELECT id: 5',
    'scaling:',
    '  plugin: not this', // 15
    'thresholds:',
    '- p95_ms < 5',
    '- nonsense',
  ].join('\n');
  it.each([
    ['name', 1],
    ['target.connection', 2],
    ['workload.plugin', 4],
    ['workload.params.statements', 6],
    ['workload.params.statements[0].id', 7],
    ['workload.params.statements[1].id', 11],
    ['workload.params.statements[1].sql', 12],
    ['workload.params.statements[1].weight', 11],
    ['scaling.plugin', 15],
    ['scaling.worker_count', 14],
    ['thresholds[1]', 18],
    ['guardrails.max_p95_ms', undefined],
  ])('%s', (field, line) => expect(lineOf(text, field)).toBe(line));
});

describe('messages in the words of the form', () => {
  it.each([
    ['is required in an open loop (load_mode: QPS)', 'is required in an open loop'],
    [
      '50 connections do not fit: scaling.worker_count 2 × scaling.per_worker_capacity 8 = 16',
      '50 connections do not fit: “Workers” 2 × “Capacity of a worker” 8 = 16',
    ],
    [
      'raise worker_count or per_worker_capacity, or ask for fewer connections',
      'raise “Workers” or “Capacity of a worker”, or ask for fewer connections',
    ],
    ['is required with mode BOUNDED', 'is required with Scaling “Bounded”'],
    ['for example: p95_ms < 20', 'for example: p95_ms < 20'],
  ])('%s', (text, words) => expect(withFormLabels(text)).toBe(words));
});

describe('two versions of a text', () => {
  it('differ in what only one of them has', () => {
    const lines = diffLines('a\nb\nc\nd\n', 'a\nB\nc\nd\ne\n');
    expect(lines.map((l) => `${l.kind[0]} ${l.text}`)).toEqual(['s a', 't b', 'm B', 's c', 's d', 'm e']);
    expect(diffLines('a\nb', 'a\nb\n').every((l) => l.kind === 'same')).toBe(true);
  });
  it('are both whole in what is shown', () => {
    const one = Array.from({ length: 60 }, (_, i) => `line ${(i * 7) % 13}`);
    const two = one.toSpliced(20, 3, 'new', 'newer').toSpliced(50, 0, 'more');
    const lines = diffLines(one.join('\n'), two.join('\n'));
    expect(lines.filter((l) => l.kind !== 'mine').map((l) => l.text)).toEqual(one);
    expect(lines.filter((l) => l.kind !== 'theirs').map((l) => l.text)).toEqual(two);
    const shown = hunks(lines);
    expect(shown.filter((l) => l.kind === 'gap').length).toBeGreaterThan(1);
    expect(shown.reduce((n, l) => n + (l.kind === 'gap' ? l.lines : 1), 0)).toBe(lines.length);
  });
});
