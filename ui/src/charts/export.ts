/** Hands a file to the browser's download. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * What a spreadsheet would take for a formula is given an apostrophe, which it takes for text. Names come from others.
 */
export function forSheets(v: string): string {
  return /^ *[=+\-@\t\r\n＝＋－＠]/.test(v) && !/^[-+]?[0-9]+(\.[0-9]+)?$/.test(v) ? `'${v}` : v;
}

function cell(v: string | number | null | undefined): string {
  if (v === null || v === undefined) return '';
  const s = typeof v === 'string' ? forSheets(v) : String(v);
  return /[",;\t\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
}

/** Writes rows as CSV (RFC 4180). */
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

/** Saves a chart's canvas on the page's background, so that it can be pasted into a document. */
export function savePng(
  name: string,
  canvas: HTMLCanvasElement,
  background: string,
  title: string,
  ink: string,
  font: string,
): void {
  const ratio = devicePixelRatio || 1;
  const head = Math.round(30 * ratio);
  const out = document.createElement('canvas');
  out.width = canvas.width;
  out.height = canvas.height + head;
  const c = out.getContext('2d');
  if (!c) return;
  c.fillStyle = background;
  c.fillRect(0, 0, out.width, out.height);
  c.fillStyle = ink;
  c.font = `600 ${14 * ratio}px ${font}`;
  c.fillText(title, 12 * ratio, 20 * ratio);
  c.drawImage(canvas, 0, head);
  out.toBlob((blob) => {
    if (blob) save(name, blob);
  });
}
