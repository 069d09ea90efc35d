import { describe, expect, it } from 'vitest';
import {
  ago,
  bytes,
  clock,
  count,
  duration,
  elapsed,
  errorRate,
  humanize,
  latency,
  moment,
  percent,
  plain,
  rate,
  significant,
} from '../src/design/format';

describe('percentages', () => {
  it.each([
    [0, '0'],
    [12.34, '12.3'],
    [0.0004, '<0.001'],
    [-0.754, '−0.754'],
    [-89.61, '−89.6'],
    [-0.0004, '>−0.001'],
  ])('%d is %s', (p, text) => expect(percent(p).value).toBe(text));
});

describe('three significant digits', () => {
  it.each([
    [0, '0'],
    [0.412, '0.412'],
    [0.41, '0.410'],
    [1.0249, '1.02'],
    [9.996, '10.0'],
    [12.44, '12.4'],
    [123.4, '123'],
    [999.6, '1000'],
  ])('%d is %s', (n, text) => expect(significant(n)).toBe(text));

  it('never shows an exponent', () => {
    for (let e = -8; e < 15; e++) expect(significant(3.7182 * 10 ** e)).not.toContain('e');
  });
});

describe('quantities', () => {
  it('moves to the next unit before four digits would be shown', () => {
    expect(plain(rate(999.4))).toBe('999 /s');
    expect(plain(rate(999.7))).toBe('1.00 k/s');
    expect(plain(rate(31_245))).toBe('31.2 k/s');
    expect(plain(latency(0.0523))).toBe('52.3 µs');
    expect(plain(latency(0.41))).toBe('0.410 ms');
    expect(plain(latency(999.6))).toBe('1.00 s');
    expect(plain(latency(12.4))).toBe('12.4 ms');
  });
  it('writes small counts in full and keeps the exact figure', () => {
    expect(plain(count(9_999))).toBe('9,999');
    expect(count(1_234_567)).toEqual({ value: '1.23', unit: 'M', exact: '1,234,567' });
  });
  it('never rounds an error rate to zero', () => {
    expect(plain(errorRate(0))).toBe('0.000 %');
    expect(plain(errorRate(1e-7))).toBe('<0.001 %');
    expect(plain(errorRate(0.0042))).toBe('0.420 %');
    expect(plain(errorRate(0.5))).toBe('50.0 %');
  });
  it('has a sign for what is missing', () => {
    for (const f of [count, rate, latency, errorRate, bytes]) {
      expect(plain(f(null))).toBe('–');
      expect(plain(f(Number.NaN))).toBe('–');
    }
  });
  it('uses binary units for bytes', () => expect(plain(bytes(81_233_412_096))).toBe('75.7 GiB'));
});

describe('times', () => {
  it('writes clocks', () => {
    expect(clock(125)).toBe('00:02:05');
    expect(clock(-3)).toBe('00:00:00');
    expect(clock(360_000)).toBe('100:00:00');
  });
  it('writes axis labels and lengths', () => {
    expect(elapsed(45)).toBe('45s');
    expect(elapsed(125)).toBe('2:05');
    expect(elapsed(3725)).toBe('1:02:05');
    expect(duration(90)).toBe('1 min 30 s');
    expect(duration(3900)).toBe('1 h 5 min');
    expect(duration(0.25)).toBe('250 ms');
  });
  it('writes a moment of a run to the millisecond, which no part of is rounded up', () => {
    expect([0, 4.288, 4.95, 5.02, 59.9996, 65.288, 119.999, 3605.007].map(moment)).toEqual([
      '0.000s',
      '4.288s',
      '4.950s',
      '5.020s',
      '1:00.000',
      '1:05.288',
      '1:59.999',
      '1:00:05.007',
    ]);
    expect([-0.25, -0.0001, -61.5].map(moment)).toEqual(['−0.250s', '0.000s', '−1:01.500']);
  });
  it('says how long ago', () => {
    const now = Date.parse('2026-11-20T12:00:00Z');
    expect(ago('2026-11-20T11:59:55Z', now)).toBe('just now');
    expect(ago('2026-11-20T11:55:00Z', now)).toBe('5 min ago');
    expect(ago(null, now)).toBe('never');
  });
  it('turns names into words', () => {
    expect(humanize('POINT_LOOKUP')).toBe('point lookup');
    expect(humanize('generator_cpu')).toBe('generator CPU');
    expect(humanize('GENERIC_SQL')).toBe('generic SQL');
  });
});
