/** Quantity is a formatted number; the unit is shown smaller than the value. */
export interface Quantity {
  value: string;
  unit: string;
  /** The full figure, for hover and copies. */
  exact: string;
}

export const missing: Quantity = { value: '–', unit: '', exact: 'no figure' };

const exactFormat = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 });

/** exact uses thousands separators and up to six decimals. */
export function exact(n: number): string {
  return exactFormat.format(n);
}

/** significant uses three significant digits, without an exponent. */
export function significant(n: number, digits = 3): string {
  if (n === 0) return '0';
  const size = Math.floor(Math.log10(Math.abs(n)));
  const decimals = Math.max(0, Math.min(9, digits - 1 - size));
  const text = n.toFixed(decimals);
  // 9.996 becomes 10.00: one digit too many after rounding up.
  if (decimals > 0 && Math.floor(Math.log10(Math.abs(Number(text)))) > size) return n.toFixed(decimals - 1);
  return text;
}

const steps: [number, string][] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

/** count scales a count: 1 234 567 → 1.23 M. Counts under 10 000 are written in full. */
export function count(n: number | null | undefined): Quantity {
  if (n === null || n === undefined || !Number.isFinite(n)) return missing;
  const all = exact(n);
  if (Math.abs(n) < 10_000 && Number.isInteger(n)) return { value: all, unit: '', exact: all };
  return scaled(n, '', all);
}

/** rate scales a rate: 31 245 → 31.2 k/s. */
export function rate(n: number | null | undefined, per = '/s'): Quantity {
  if (n === null || n === undefined || !Number.isFinite(n)) return missing;
  return scaled(n, per, `${exact(n)} ${per === '/s' ? 'per second' : per}`);
}

function scaled(n: number, suffix: string, all: string): Quantity {
  for (const [size, letter] of steps) {
    if (Math.abs(n) >= size * 0.9995) return { value: significant(n / size), unit: letter + suffix, exact: all };
  }
  return { value: significant(n), unit: suffix, exact: all };
}

/** latency takes milliseconds: 0.0523 → 52.3 µs, 12.4 → 12.4 ms, 1 230 → 1.23 s. */
export function latency(ms: number | null | undefined): Quantity {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return missing;
  const all = `${exact(ms)} ms`;
  if (ms === 0) return { value: '0', unit: 'ms', exact: all };
  if (ms < 0.1) return { value: significant(ms * 1000), unit: 'µs', exact: all };
  if (ms < 999.5) return { value: significant(ms), unit: 'ms', exact: all };
  return { value: significant(ms / 1000), unit: 's', exact: all };
}

/** percent takes 0…100. */
export function percent(p: number | null | undefined, digits = 3): Quantity {
  if (p === null || p === undefined || !Number.isFinite(p)) return missing;
  const size = Math.abs(p);
  const value =
    p === 0 ? '0' : size >= 0.001 ? `${p < 0 ? '−' : ''}${significant(size, digits)}` : p > 0 ? '<0.001' : '>−0.001';
  return { value, unit: '%', exact: `${exact(p)} %` };
}

/** money has three digits and the currency as its unit. */
export function money(n: number | null | undefined, currency: string): Quantity {
  if (n === null || n === undefined || !Number.isFinite(n)) return missing;
  return { value: significant(n), unit: currency, exact: `${exact(n)} ${currency}` };
}

/** errorRate takes a fraction and writes a percentage with at most three decimals. */
export function errorRate(fraction: number | null | undefined): Quantity {
  if (fraction === null || fraction === undefined || !Number.isFinite(fraction)) return missing;
  const p = fraction * 100;
  if (p > 0 && p < 0.001) return { value: '<0.001', unit: '%', exact: `${exact(p)} %` };
  return { value: p >= 10 ? significant(p) : p.toFixed(3), unit: '%', exact: `${exact(p)} %` };
}

/** bytes uses binary units. */
export function bytes(n: number | null | undefined): Quantity {
  if (n === null || n === undefined || !Number.isFinite(n)) return missing;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  let v = n;
  while (v >= 1024 && i < units.length - 1) {
    v /= 1024;
    i++;
  }
  return { value: i === 0 ? String(v) : significant(v), unit: units[i]!, exact: `${exact(n)} bytes` };
}

export function plain(q: Quantity): string {
  return q.unit ? `${q.value} ${q.unit}` : q.value;
}

/** clock writes seconds as 00:02:05. */
export function clock(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds + 1e-6));
  const two = (n: number) => String(n).padStart(2, '0');
  return `${two(Math.floor(s / 3600))}:${two(Math.floor((s % 3600) / 60))}:${two(s % 60)}`;
}

/** elapsed writes seconds briefly for an axis: 45s, 2:05, 1:02:05. */
export function elapsed(seconds: number): string {
  const sign = seconds < 0 ? '−' : '';
  const s = Math.abs(seconds);
  if (s < 60) return `${sign}${Number.isInteger(s) ? s : s.toFixed(1)}s`;
  const whole = Math.round(s);
  const two = (n: number) => String(n).padStart(2, '0');
  const h = Math.floor(whole / 3600);
  const m = Math.floor((whole % 3600) / 60);
  return h ? `${sign}${h}:${two(m)}:${two(whole % 60)}` : `${sign}${m}:${two(whole % 60)}`;
}

/** moment writes seconds to the millisecond: 4.288s, 1:05.288, 1:00:05.288. */
export function moment(seconds: number): string {
  const ms = Math.round(Math.abs(seconds) * 1000);
  const sign = seconds < 0 && ms > 0 ? '−' : '';
  const part = String(ms % 1000).padStart(3, '0');
  const whole = Math.floor(ms / 1000);
  return `${sign}${whole < 60 ? `${whole}.${part}s` : `${elapsed(whole)}.${part}`}`;
}

/** duration writes seconds as text: 20 s, 5 min, 1 h 5 min. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return '–';
  if (seconds < 1) return seconds <= 0 ? '0 s' : `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${Number.isInteger(seconds) ? seconds : significant(seconds)} s`;
  const s = Math.round(seconds);
  const h = Math.floor(s / 3600);
  const m = Math.floor((s % 3600) / 60);
  const rest = s % 60;
  if (h) return m ? `${h} h ${m} min` : `${h} h`;
  return rest ? `${m} min ${rest} s` : `${m} min`;
}

/** ago writes an age: just now, 5 min ago, 3 d ago. */
export function ago(iso: string | null | undefined, now = Date.now()): string {
  if (!iso) return 'never';
  const s = (now - Date.parse(iso)) / 1000;
  if (s < 10) return 'just now';
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  if (s < 30 * 86400) return `${Math.floor(s / 86400)} d ago`;
  return new Date(iso).toLocaleDateString(undefined, { year: 'numeric', month: 'short', day: 'numeric' });
}

/** dateTime writes an instant in the browser's time zone. */
export function dateTime(iso: string | null | undefined): string {
  if (!iso) return '–';
  return new Date(iso).toLocaleString(undefined, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  });
}

/** timeOfDay has milliseconds, for log lines. */
export function timeOfDay(iso: string): string {
  const d = new Date(iso);
  const two = (n: number) => String(n).padStart(2, '0');
  const ms = String(d.getMilliseconds()).padStart(3, '0');
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${ms}`;
}

/** humanize turns POINT_LOOKUP or generator_cpu into lower-case text. */
export function humanize(name: string): string {
  const text = name.replaceAll('_', ' ').toLowerCase();
  return text
    .replace(/\bsql\b/, 'SQL')
    .replace(/\bcpu\b/, 'CPU')
    .replace(/\bgc\b/, 'GC');
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
