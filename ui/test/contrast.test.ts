import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('../src/design/tokens.css', import.meta.url), 'utf8');

function tokens(theme: string): Record<string, string> {
  const block = new RegExp(`data-theme=.${theme}.\\] \\{([\\s\\S]*?)\\n\\}`).exec(css)![1]!;
  return Object.fromEntries([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((m) => [m[1]!, m[2]!]));
}

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((i) => {
    const c = Number.parseInt(hex.slice(i, i + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: string, b: string): number {
  const [hi, lo] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (hi! + 0.05) / (lo! + 0.05);
}

const text: [string, string[]][] = [
  ['text', ['bg', 'surface', 'surface-2', 'surface-3']],
  ['text-2', ['bg', 'surface', 'surface-2', 'surface-3']],
  ['text-3', ['bg', 'surface', 'surface-2']],
  ['accent', ['bg', 'surface', 'accent-soft']],
  ['on-accent', ['accent', 'accent-hover']],
  ['ok', ['surface', 'ok-soft']],
  ['warn', ['surface', 'warn-soft']],
  ['bad', ['surface', 'bad-soft']],
  ['warmup', ['warmup-soft']],
  ['code-key', ['surface', 'bad-soft']],
  ['code-string', ['surface', 'bad-soft']],
  ['code-number', ['surface', 'bad-soft']],
  ['code-comment', ['surface']],
];

describe.each(['light', 'dark'])('the %s theme', (theme) => {
  const t = tokens(theme);
  it.each(text)('has legible text in %s', (ink, grounds) => {
    for (const g of grounds) expect(contrast(t[ink]!, t[g]!), `${ink} on ${g}`).toBeGreaterThanOrEqual(4.5);
  });
  it('has marks that can be told from their ground', () => {
    const marks = [
      'p95',
      'p99',
      'line-strong',
      'focus',
      'bad-mark',
      ...Object.keys(t).filter((k) => /^([ke]|run)-/.test(k)),
    ];
    for (const m of marks) expect(contrast(t[m]!, t.surface!), m).toBeGreaterThanOrEqual(3);
  });
  it('draws percentiles from light to strong', () => {
    const [a, b, c] = ['p50', 'p95', 'p99'].map((k) => contrast(t[k]!, t.surface!));
    expect(a!).toBeLessThan(b!);
    expect(b!).toBeLessThan(c!);
  });
});
