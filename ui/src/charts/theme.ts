/** token resolves a colour token in the current theme; canvases cannot use var(). */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888';
}

/** canvasFont is a canvas font of a size in CSS pixels. */
export function canvasFont(px: number): string {
  return `${px}px ${token('--font')}`;
}

function channels(hex: string): [number, number, number] {
  const h = hex.replace('#', '');
  return [0, 2, 4].map((i) => Number.parseInt(h.slice(i, i + 2), 16)) as [number, number, number];
}

/** heatRamp interpolates n colours through the heat tokens. */
export function heatRamp(n = 64): string[] {
  const stops = [0, 1, 2, 3, 4].map((i) => channels(token(`--heat-${i}`)));
  return Array.from({ length: n }, (_, i) => {
    const x = (i / (n - 1)) * (stops.length - 1);
    const a = stops[Math.min(stops.length - 2, Math.floor(x))]!;
    const b = stops[Math.min(stops.length - 1, Math.floor(x) + 1)]!;
    const f = x - Math.min(stops.length - 2, Math.floor(x));
    const mix = a.map((v, k) => Math.round(v + (b[k]! - v) * f));
    return `rgb(${mix.join(' ')})`;
  });
}
