/** save downloads a file. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** escapeFormula prefixes text that a spreadsheet would run as a formula. Names are untrusted. */
export function escapeFormula(v: string): string {
  return /^ *[=+\-@\t\r\n＝＋－＠]/.test(v) && !/^[-+]?[0-9]+(\.[0-9]+)?$/.test(v) ? `'${v}` : v;
}

function cell(v: string | number | null | undefined): string {
  if (v === null || v === undefined) return '';
  const s = typeof v === 'string' ? escapeFormula(v) : String(v);
  return /[",;\t\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
}

/** csv writes rows as RFC 4180. */
export function csv(header: string[], rows: (string | number | null | undefined)[][]): string {
  return [header, ...rows]
    .map((r) => r.map(cell).join(','))
    .join('\r\n')
    .concat('\r\n');
}

export function fileName(...parts: string[]): string {
  return parts
    .join('-')
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^-+|-+$/g, '');
}

/** Key is an entry of a chart's legend. */
export interface Key {
  label: string;
  color: string;
}

/** wrapLegend places legend entries in lines of this width. */
function wrapLegend(widths: number[], width: number): { x: number; line: number }[] {
  let [x, line] = [0, 0];
  return widths.map((w) => {
    if (x > 0 && x + w > width) [x, line] = [0, line + 1];
    const at = { x, line };
    x += w;
    return at;
  });
}

/** savePng saves a chart on the page's background with its title and legend, to paste into a document. */
export function savePng(
  name: string,
  canvas: HTMLCanvasElement,
  of: { title: string; file: string; keys: Key[] },
  look: { background: string; ink: string; muted: string; font: string },
): void {
  const ratio = devicePixelRatio || 1;
  const [head, edge, swatch] = [30 * ratio, 12 * ratio, 14 * ratio];
  const out = document.createElement('canvas');
  const c = out.getContext('2d');
  if (!c) return;
  const [bold, plain] = [`600 ${14 * ratio}px ${look.font}`, `${12 * ratio}px ${look.font}`];
  c.font = plain;
  const keys = of.keys.map((k) => ({ ...k, label: truncate(k.label, 60) }));
  const places = wrapLegend(
    keys.map((k) => swatch + 6 * ratio + c.measureText(k.label).width + 18 * ratio),
    canvas.width - 2 * edge,
  );
  const step = 20 * ratio;
  const lines = keys.length > 0 ? places.at(-1)!.line + 1 : 0;
  // Setting the size resets the context.
  out.width = canvas.width;
  out.height = Math.round(canvas.height + head + (lines > 0 ? lines * step + 8 * ratio : 0));
  c.fillStyle = look.background;
  c.fillRect(0, 0, out.width, out.height);
  c.fillStyle = look.ink;
  c.font = bold;
  c.fillText(of.title, edge, 20 * ratio);
  const after = edge + c.measureText(of.title).width + 10 * ratio;
  c.fillStyle = look.muted;
  c.font = plain;
  c.fillText(truncate(of.file, 60), after, 20 * ratio);
  c.drawImage(canvas, 0, Math.round(head));
  keys.forEach((k, i) => {
    const x = edge + places[i]!.x;
    const y = head + canvas.height + places[i]!.line * step + 12 * ratio;
    c.fillStyle = k.color;
    c.fillRect(x, y - 5 * ratio, swatch, 3 * ratio);
    c.fillStyle = look.ink;
    c.fillText(k.label, x + swatch + 6 * ratio, y);
  });
  out.toBlob((blob) => {
    if (blob) save(name, blob);
  });
}

const truncate = (text: string, limit: number) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);
