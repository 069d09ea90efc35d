import { describe, expect, it } from 'vitest';
import {
  type Bind,
  freshId,
  generatorOf,
  guess,
  readValues,
  withGenerator,
  withSql,
  writeValues,
} from '../src/statements/binds';
import { colourStatement, named, namesOf, parametersOf } from '../src/statements/params';

const names = (sql: string) => namesOf(sql).map((n) => n.name);

describe('parameters are found by themselves', () => {
  it.each([
    ['SELECT * FROM t WHERE id = :id AND at > :since::timestamptz OR id = :id', ['id', 'since']],
    ["SELECT ':no', \"a:b\", 'it''s :no', x::text FROM t -- :no\n WHERE a = :yes", ['yes']],
    ["SELECT E'\\' :no', $$ :no $$, $a$ :no $a$ /* :no /* :no */ :no */, :yes", ['yes']],
    ['SELECT a[1:2], a[:lo : :hi], b := 5', ['lo', 'hi']],
    ['SELECT ::x', []],
    ["SELECT 'open :no", []],
    ['SELECT a:b', ['b']],
  ])('%s', (sql, want) => expect(names(sql)).toEqual(want));
  it('knows what they are cast to', () => {
    expect(namesOf('SELECT :a::timestamp with time zone, :b::numeric(10,2), :c::uuid[], :d')).toMatchObject([
      { name: 'a' },
      { name: 'b', cast: 'numeric' },
      { name: 'c', cast: 'uuid' },
      { name: 'd', cast: '' },
    ]);
  });
  it('writes $1 and ? as the workload takes them', () => {
    const sql = "SELECT '$1 ?', x FROM t WHERE a = $2 AND b = $1 AND c = $2";
    expect(named(sql)).toBe("SELECT '$1 ?', x FROM t WHERE a = :p2 AND b = :p1 AND c = :p2");
    expect(named('SELECT ?, ?')).toBe('SELECT :p1, :p2');
    expect(named('SELECT a ?| b, :x')).toBe('SELECT a ?| b, :x');
    expect(parametersOf('SELECT $1, :a').map((p) => p.form)).toEqual(['number', 'name']);
  });
  it('colours them, and nothing is lost', () => {
    const sql = "SELECT x::text, ':no' -- :no\nFROM {table} WHERE id = :id AND d > :d::date";
    const lines = colourStatement(sql);
    expect(lines.map((l) => l.map((p) => p.text).join('')).join('\n')).toBe(sql);
    expect(lines.flat().flatMap((p) => (p.kind === 'param' ? [p.text] : []))).toEqual([':id', ':d']);
  });
});

describe('generators of parameters', () => {
  it('follow the text, and come back as they were', () => {
    const memory = new Map<string, Bind>();
    let s = withSql({ id: 'a' }, 'SELECT :id, :since::timestamptz', memory);
    expect(s.binds!.map((b) => [b.name, generatorOf(b)])).toEqual([
      ['id', 'uniform'],
      ['since', 'timestamp'],
    ]);
    s = { ...s, binds: [{ ...s.binds![0]!, max: 7 }, s.binds![1]!] };
    s = withSql(s, 'SELECT 1', memory);
    expect(s.binds).toBeUndefined();
    s = withSql(s, 'SELECT :id', memory);
    expect(s.binds).toEqual([{ name: 'id', generator: 'uniform', min: 1, max: 7 }]);
    expect(withSql({ id: 'b' }, 'SELECT :id, :x', new Map<string, Bind>(), ['id']).binds!.map((b) => b.name)).toEqual([
      'x',
    ]);
    expect(withSql({ id: 'b' }, 'SELECT :id', new Map<string, Bind>(), [], true).binds).toEqual([
      { name: 'id', type: 'i64' },
    ]);
  });
  it('are guessed by cast and name', () => {
    const of = (name: string, cast = '') => generatorOf(guess(name, cast));
    expect([of('created_at'), of('x', 'uuid'), of('note'), of('limit'), of('x', 'boolean'), of('customer_id')]).toEqual(
      ['timestamp', 'uuid', 'text', 'constant', 'choice', 'uniform'],
    );
  });
  it('keep only what the other one takes too', () => {
    const b = withGenerator({ name: 'x', generator: 'uniform', min: 5, max: 9, decimals: 2, nulls: 10 }, 'zipfian');
    expect(b).toEqual({ name: 'x', generator: 'zipfian', min: 5, max: 9, nulls: 10 });
    expect(generatorOf({ name: 'x', values: [1] })).toBe('choice');
    expect(generatorOf({ name: 'x', ref: 'a.b' })).toBe('ref');
  });
  it('write lists of values as they are read', () => {
    const list = ['new', 'a, b', 3, -1.5, true, null, '7', 'null', 'say "x"'];
    expect(readValues(writeValues(list))).toEqual(list);
    expect(readValues(' new , paid,, 07')).toEqual(['new', 'paid', '07']);
  });
  it('have statements with ids of their own', () => {
    expect(freshId([{ id: 'statement_1' }, { id: 'x', transaction: [{ id: 'statement_2' }] }])).toBe('statement_3');
  });
});
