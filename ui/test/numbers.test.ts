import { describe, expect, it } from 'vitest';
import { parseResponse } from '../src/api/safeText';
import { cellText, chartData, tabSeparated } from '../src/tables/model';

describe('numbers of answers', () => {
  const text =
    '{"rows":[[9007199254740991,9007199254740993,-9223372036854775808,0.30000000000000004,12.3333333333333333,1.50,' +
    '100000000000000000000,1e-05,123456789012345678901234567890.5,-0,7,"say \\"9007199254740993\\" 1"]]}';
  const rows = (parseResponse(text, false, true) as { rows: (string | number)[][] }).rows;

  it('keep all of their digits', () => {
    expect(rows[0]).toEqual([
      9007199254740991,
      '9007199254740993',
      '-9223372036854775808',
      0.30000000000000004,
      '12.3333333333333333',
      1.5,
      100000000000000000000,
      0.00001,
      '123456789012345678901234567890.5',
      -0,
      7,
      'say "9007199254740993" 1',
    ]);
    expect(rows[0]!.map(cellText)[1]).toBe('9007199254740993');
  });

  it('are numbers to a chart and to a spreadsheet', () => {
    const columns = [
      { name: 'n', type: 'int8' },
      { name: 'v', type: 'numeric' },
    ];
    const big = [
      [1, '12.3333333333333333'],
      [2, 'NaN'],
    ];
    const c = chartData(columns, big, { x: 'n', y: 'v', series: '', shape: 'line' });
    expect(c.curves[0]!.points.map((p) => p.y)).toEqual([12.333333333333334]);
    expect(c.lacking).toBe(1);
    expect(tabSeparated(columns, [['-9223372036854775808', 1.5]])).toBe('n\tv\n-9223372036854775808\t1.5');
  });
});
