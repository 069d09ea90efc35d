import { describe, expect, it } from 'vitest';
import { problemFrom, queryString } from '../src/api/client';
import { backOff } from '../src/api/socket';
import { safeNext, tokenFrom } from '../src/app/SignIn';
import { csv, fileName } from '../src/charts/export';
import { stack } from '../src/charts/plot';
import { fromUrl, noParts, toUrl } from '../src/connections/dsn';
import { rangeStart } from '../src/history/ranges';

describe('connection addresses', () => {
  it.each([
    'postgres://bench:s%40crt@db.example.com:5432/shop?sslmode=verify-full',
    'postgres://u:***@h:6432/a%20b?application_name=x&sslmode=require',
    'postgres://u@[::1]:5432/db?sslmode=prefer',
  ])('survives the form: %s', (url) => expect(toUrl(fromUrl(url)!)).toBe(url));
  it('reads a socket', () => {
    const p = fromUrl('postgres:///playground?host=%2Frun%2Fpg&user=x')!;
    expect(p).toMatchObject({ host: '/run/pg', database: 'playground' });
    expect(fromUrl(toUrl(p))).toEqual(p);
  });
  it('keeps odd passwords', () => {
    const p = { ...noParts, host: 'h', database: 'd', user: 'a:b', password: 'p@ss/w:rd?#' };
    expect(fromUrl(toUrl(p))).toMatchObject({ user: 'a:b', password: 'p@ss/w:rd?#' });
  });
  it('leaves key=value forms alone', () => expect(fromUrl('host=x user=y')).toBeNull());
});

describe('signing in', () => {
  it('takes a link or a token', () => {
    expect(tokenFrom(' http://127.0.0.1:8080/signin?token=abc%2Bd&x=1 ')).toBe('abc+d');
    expect(tokenFrom('abc')).toBe('abc');
  });
  it('goes on to addresses of this page only', () => {
    expect(safeNext('/runs/1?tab=log')).toBe('/runs/1?tab=log');
    for (const bad of [
      null,
      '',
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      'javascript:1',
      '/signin?token=x',
    ])
      expect(safeNext(bad)).toBe('/');
  });
});

describe('refusals', () => {
  it('reads problem documents and whatever a proxy sends', () => {
    const p = problemFrom(
      422,
      JSON.stringify({
        detail: 'No.',
        hint: 'Do.',
        code: 'invalid',
        errors: [{ field: 'name', message: 'is taken', line: 3, column: 5 }],
      }),
    );
    expect([p.message, p.hint, p.code, p.fields[0]!.line, p.fields[0]!.column]).toEqual([
      'No.',
      'Do.',
      'invalid',
      3,
      5,
    ]);
    expect(problemFrom(502, '<html>').message).toContain('502');
    expect(problemFrom(500, 'null').fields).toEqual([]);
  });
});

it('waits longer with each lost socket, and never for ever', () => {
  const waits = Array.from({ length: 12 }, (_, i) => backOff(i, () => 1));
  expect(waits.slice(0, 3)).toEqual([500, 1000, 2000]);
  expect(Math.max(...waits)).toBe(10_000);
  expect(backOff(3, () => 0)).toBeLessThan(backOff(3, () => 1));
});

it('stacks what is shown and leaves gaps open', () => {
  const line = (key: string, values: (number | null)[], more = {}) => ({ key, label: key, color: '', values, ...more });
  const lines = [line('a', [1, 2, null]), line('b', [10, 20, null]), line('c', [5, 5, 5], { unstacked: true })];
  expect(stack(lines, new Set())).toEqual([
    [1, 2, null],
    [11, 22, null],
    [5, 5, 5],
  ]);
  expect(stack(lines, new Set(['a']))[1]).toEqual([10, 20, null]);
});

it('writes CSV and file names', () => {
  expect(
    csv(
      ['a', 'b'],
      [
        [1, 'x,"y"'],
        [null, 'z'],
      ],
    ),
  ).toBe('a,b\r\n1,"x,""y"""\r\n,z\r\n');
  expect(fileName('Checkout peak', 'P95 / P99')).toBe('checkout-peak-p95-p99');
});

it('neutralises formulas in every text of a CSV, and leaves figures alone', () => {
  const cells = ['=1+1', '+SUM(A1)', '-2+3', '@cmd', '\t=1', '  =1', '＝1', '-5', '+1.5', 'a=b', ''];
  expect(csv(['=h'], [cells, [-5, -1.5e-9]])).toBe(
    `'=h\r\n'=1+1,'+SUM(A1),'-2+3,'@cmd,"'\t=1",'  =1,'＝1,-5,+1.5,a=b,\r\n-5,-1.5e-9\r\n`,
  );
});

it('builds addresses from what is set', () => {
  expect(queryString({ a: 1, b: '', c: undefined, d: 'x y' })).toBe('?a=1&d=x+y');
  expect(queryString({})).toBe('');
});

it('narrows a list by time', () => {
  const now = Date.parse('2026-11-20T12:00:30Z');
  expect(rangeStart('1h', now)).toBe('2026-11-20T11:00:00.000Z');
  expect(rangeStart('', now)).toBeUndefined();
  expect(rangeStart('x; drop', now)).toBeUndefined();
});
