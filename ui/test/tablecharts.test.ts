// Rendered result charts, in a time zone other than UTC.
process.env.TZ = 'America/New_York';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { Cell, ChartChoice } from '../src/tables/model';
import { ResultChart } from '../src/tables/ResultChart';
import { timeText, timeTicks, zoneOf } from '../src/tables/XYChart';

const columns = (type: string) => [
  { name: 'at', type },
  { name: 'size', type: 'text' },
  { name: 'p95', type: 'float8' },
];
const drawn = (type: string, rows: Cell[][], choice: Partial<ChartChoice> = {}) =>
  renderToStaticMarkup(
    createElement(ResultChart, {
      columns: columns(type),
      rows,
      choice: { x: 'at', y: 'p95', series: '', shape: 'line', ...choice },
      onChange: () => {},
    }),
  );
const count = (html: string, what: RegExp) => html.match(new RegExp(what, 'g'))?.length ?? 0;
const hours = (values: (number | null)[]): Cell[][] =>
  values.map((v, i) => [`2026-11-22 ${String(i).padStart(2, '0')}:00:00+00`, i % 2 ? 'Small' : null, v]);

describe('the chart of an answer', () => {
  it('has a gap, not a line, where a value is NULL', () => {
    const html = drawn('timestamptz', hours([1, 2, null, 4, 5]));
    expect(count(html, /<polyline/)).toBe(2);
    expect(html).toContain('1 of 5 rows is not drawn: 1 lacks a value.');
    expect(count(drawn('timestamptz', hours([1, 2, 3, 4, 5])), /<polyline/)).toBe(1);
  });
  it('shows a value between two gaps, of however many', () => {
    const many = Array.from({ length: 600 }, (_, i) => (i % 3 === 1 ? i : null));
    const html = drawn(
      'int4',
      many.map((v, i) => [i, 'x', v]),
    );
    expect(count(html, /xy-dot/)).toBe(200);
  });
  it('names the series that has no name', () => {
    const html = drawn('timestamptz', hours([1, 2, 3, 4]), { series: 'size', shape: 'bars' });
    expect(html).toMatch(/xy-legend.*null.*Small/);
    expect(count(html, /xy-bar/)).toBe(4);
    expect(html).toContain('p95 by at, for each size');
  });
  it('says that nothing can be drawn', () => {
    expect(drawn('timestamptz', hours([null, null]))).toContain('No row has both at and p95.');
  });
  it('says whose clock its times are of, where that is not the one of the table', () => {
    expect(drawn('timestamptz', hours([1, 2]))).toContain('times in UTC−05:00');
    const days = [
      ['2026-11-22', '', 1],
      ['2026-11-23', '', 2],
    ];
    const html = drawn('date', days);
    expect(html).not.toContain('times in');
    expect(html).toContain('Nov 22');
    expect(html).not.toContain('Nov 21');
  });
});

describe('an axis of times', () => {
  const midnight = Date.parse('2026-11-22T00:00:00Z');
  const day = 86_400_000;
  it('begins its days at midnight of the clock that it shows', () => {
    expect(timeTicks(midnight, midnight + 2 * day, 2, false)[0]).toBe(midnight);
    expect(timeTicks(midnight, midnight + 2 * day, 2, true)[0]).toBe(midnight + 5 * 3_600_000);
    expect(timeText(midnight, day, day, false)).toBe('Nov 22');
    expect(timeText(midnight, 3_600_000, day, true)).toBe('Nov 21 19:00');
  });
  it('knows the zone of a summer, too', () => {
    expect(zoneOf(midnight)).toBe('UTC−05:00');
    expect(zoneOf(Date.parse('2026-07-01T00:00:00Z'))).toBe('UTC−04:00');
  });
});
