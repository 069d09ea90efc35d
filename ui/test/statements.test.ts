import { describe, expect, it } from 'vitest';
import {
  generatorOf,
  guessBind,
  newMemory,
  readValues,
  unusedId,
  withGenerator,
  withSql,
  writeValues,
} from '../src/statements/binds';
import { placesOf } from '../src/statements/columns';
import { colourStatement, namesOf, parametersOf, withNamedParameters } from '../src/statements/params';

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
    ['PREPARE f (int) AS SELECT * FROM t WHERE id = $1; EXECUTE f(:id)', ['id']],
    ['COPY {table} (a, "B ""c", D) FROM STDIN', ['a', 'B "c', 'd']],
    ['COPY (SELECT :a) TO STDOUT', ['a']],
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
    expect(withNamedParameters(sql)).toBe("SELECT '$1 ?', x FROM t WHERE a = :p2 AND b = :p1 AND c = :p2");
    expect(withNamedParameters('SELECT ?, ?')).toBe('SELECT :p1, :p2');
    expect(withNamedParameters('SELECT a ?| b, :x')).toBe('SELECT a ?| b, :x');
    expect(parametersOf('SELECT $1, :a').map((p) => p.form)).toEqual(['number', 'name']);
    expect(parametersOf("PREPARE f AS SELECT ';', $1; EXECUTE f($2)").map((p) => p.name)).toEqual(['2']);
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
    const memory = newMemory();
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
    expect(withSql({ id: 'b' }, 'SELECT :id, :x', newMemory(), ['id']).binds!.map((b) => b.name)).toEqual(['x']);
    expect(withSql({ id: 'b' }, 'SELECT :id', newMemory(), [], true).binds).toEqual([{ name: 'id', type: 'i64' }]);
  });
  it('are guessed by cast and name', () => {
    const of = (name: string, cast = '') => generatorOf(guessBind(name, cast));
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
    expect(unusedId([{ id: 'statement_1' }, { id: 'x', transaction: [{ id: 'statement_2' }] }])).toBe('statement_3');
  });
});

describe('parameters stand for columns', () => {
  const column = (name: string, type: string, more = {}) => ({ name, type, ...more });
  const things = {
    schema: 'public',
    name: 'things',
    columns: [
      column('id', 'bigint', { key: true, generated: 'always' }),
      column('ref', 'uuid'),
      column('made', 'timestamp with time zone'),
      column('amount', 'numeric(4,2)'),
      column('doc', 'jsonb'),
      column('active', 'boolean'),
      column('raw', 'bytea'),
      column('nums', 'integer[]'),
      column('state', 'mood', { values: ['calm', "it's odd"] }),
      column('mail', 'text'),
      column('code', 'character varying(5)'),
      column('Odd Name', 'text'),
    ],
  };
  const owners = {
    schema: 'sales',
    name: 'owners',
    columns: [column('id', 'integer', { key: true }), column('born', 'date')],
  };
  const all = [things, owners];
  const of = (sql: string, table = 'things') =>
    Object.fromEntries([...placesOf(sql, all, table)].map(([k, v]) => [k, `${v.use} ${v.column?.name ?? ''}`.trim()]));
  it.each([
    ['SELECT 1 FROM things WHERE ref = :a AND :b < amount', { a: 'find ref', b: 'find amount' }],
    ['SELECT 1 FROM {table} t WHERE t.ref = :a LIMIT :n OFFSET :m', { a: 'find ref', n: 'limit', m: 'offset' }],
    ['SELECT 1 FROM things WHERE made BETWEEN :a AND :b', { a: 'find made', b: 'find made' }],
    [
      'SELECT 1 FROM things WHERE code NOT IN (:a, :b) OR nums = ANY(:c)',
      { a: 'find code', b: 'find code', c: 'any nums' },
    ],
    ['SELECT 1 FROM things WHERE mail ILIKE :a', { a: 'like mail' }],
    [
      'SELECT 1 FROM things a JOIN sales.owners o ON o.id = a.id WHERE o.born > :a AND a."Odd Name" = :b',
      {
        a: 'find born',
        b: 'find Odd Name',
      },
    ],
    [
      'UPDATE things SET amount = amount + :a, doc = :b WHERE id = :c',
      {
        a: 'store amount',
        b: 'store doc',
        c: 'find id',
      },
    ],
    [
      "INSERT INTO things (ref, doc, state) VALUES (:a, jsonb_build_object('x', :no), :c), (DEFAULT, :d::jsonb, :e)",
      {
        a: 'store ref',
        c: 'store state',
        d: 'store doc',
        e: 'store state',
      },
    ],
    [
      'INSERT INTO sales.owners SELECT :a, :b FROM things WHERE active = :c',
      {
        a: 'store id',
        b: 'store born',
        c: 'find active',
      },
    ],
    ['DELETE FROM things WHERE lower(code) = lower(:a) -- ref = :b\n AND ref = :c', { c: 'find ref' }],
    ['SELECT 1 FROM nowhere WHERE ref = :a', {}],
  ])('%s', (sql, want) => expect(of(sql)).toEqual(want));
  it('whose types their generators follow', () => {
    const sql =
      'INSERT INTO things (ref, made, amount, doc, active, raw, nums, state, mail, code) ' +
      'VALUES (:total, :b, :c, :d, :e, :f, :g, :h, :mail, :j)';
    const s = withSql({ id: 'a' }, sql, newMemory(), [], false, placesOf(sql, all, 'things'));
    expect(s.binds).toEqual([
      { name: 'total', generator: 'uuid' },
      { name: 'b', generator: 'timestamp', from: '2024-01-01', to: '2025-12-31' },
      { name: 'c', generator: 'uniform', min: 1, max: 99, decimals: 2 },
      { name: 'd', generator: 'text', pattern: '{"n": "##"}' },
      { name: 'e', generator: 'choice', values: [true, false] },
      { name: 'f', generator: 'text', length: 16, type: 'bytes' },
      { name: 'g', generator: 'text', pattern: '{1#,2#}' },
      { name: 'h', generator: 'choice', values: ['calm', "it's odd"] },
      { name: 'mail', generator: 'text', pattern: '????????@example.com' },
      { name: 'j', generator: 'text', length: 5 },
    ]);
  });
  it('find rows of the own table by its keys, and others by their types', () => {
    const of = (sql: string) => {
      const places = placesOf(sql, all, 'things');
      return namesOf(sql).map(({ name, cast }) => generatorOf(guessBind(name, cast, places.get(name))));
    };
    expect(of('SELECT 1 FROM things WHERE id = :a OR id = :b::text')).toEqual(['key', 'text']);
    expect(of('SELECT 1 FROM sales.owners WHERE id = :a')).toEqual(['uniform']);
    expect(of('INSERT INTO things (id) VALUES (:a)')).toEqual(['new_key']);
  });
  it('is guessed anew when the tables are known, unless somebody chose', () => {
    const memory = newMemory();
    const sql = 'SELECT 1 FROM things WHERE ref = :a AND code = :b';
    let s = withSql({ id: 'a' }, sql, memory);
    expect(s.binds!.map(generatorOf)).toEqual(['uniform', 'uniform']);
    s = { ...s, binds: [s.binds![0]!, { name: 'b', generator: 'constant', value: 7 }] };
    s = withSql(s, sql, memory, [], false, placesOf(sql, all, 'things'));
    expect(s.binds!.map(generatorOf)).toEqual(['uuid', 'constant']);
    expect(withSql({ id: 'b' }, sql, newMemory(), [], true, placesOf(sql, all)).binds).toEqual([
      { name: 'a', type: 'text' },
      { name: 'b', type: 'text' },
    ]);
  });
  it('colours the words of statements that write', () => {
    const keys = colourStatement('UPDATE things SET set_name = :set RETURNING x.do, "into"')
      .flat()
      .filter((p) => p.kind === 'key');
    expect(keys.map((p) => p.text)).toEqual(['UPDATE', 'SET', 'RETURNING']);
  });
});
