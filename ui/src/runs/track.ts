import {
  type Columns,
  columns,
  insertSample,
  isContiguous,
  isIdle,
  joinHistory,
  sameSecondWithin,
  type Sample,
  thin,
} from './series';

/**
 * Track joins a live run's history and socket samples once, then appends. A new second costs the same after an hour as
 * at the start.
 */
export class Track {
  private stored: Sample[] = [];
  private readonly live: Sample[] = [];
  /** Both together, in time order. */
  private all: Sample[] = [];
  private c: Columns = columns({ samples: [] });
  /**
   * The last second in the columns, and idle ones after it, which a later second of load would turn into the middle of
   * the run.
   */
  private last: Sample | null = null;
  private idle: Sample[] = [];

  /** history replaces the stored samples; socket samples that they lack stay. */
  history(samples: Sample[]): void {
    if (samples === this.stored) return;
    this.stored = samples;
    this.begin();
  }

  /** add appends a socket sample. */
  add(s: Sample): void {
    insertSample(this.live, s);
    const last = this.all.at(-1);
    if (last && s.t < last.t + sameSecondWithin) {
      this.begin();
      return;
    }
    this.all.push(s);
    if (!isIdle(s)) {
      const { t, at, rows, cacheKey: stem } = this.c;
      this.c = { t: [...t], at: [...at], rows: [...rows], cacheKey: stem };
      for (const i of this.idle) this.append(i);
      this.idle = [];
      this.append(s);
    } else if (this.last) this.idle.push(s);
  }

  /**
   * thin merges the oldest seconds above the limit and returns the new history; null when nothing changed. An open page
   * therefore does not grow.
   */
  thin(): Sample[] | null {
    const fewer = thin(this.all);
    if (fewer === this.all) return null;
    this.stored = fewer;
    // A new read of history may lack the last of them.
    this.live.splice(0, this.live.length - 60);
    this.begin();
    return fewer;
  }

  /** columns returns the current columns, with the same cacheKey while seconds were only appended. */
  columns(): Columns {
    return this.c;
  }

  private begin(): void {
    this.all = joinHistory(this.stored, { samples: this.live }).samples;
    this.c = columns({ samples: this.all });
    this.last = this.c.rows.at(-1) ?? null;
    this.idle = this.last ? this.all.slice(this.all.lastIndexOf(this.last) + 1) : [];
  }

  private append(s: Sample): void {
    const { t, at, rows } = this.c;
    if (this.last && !isContiguous(this.last, s)) {
      t.push(this.last.t + 1);
      at.push(this.last.at + 1000);
      rows.push(null);
    }
    t.push(s.t);
    at.push(s.at);
    rows.push(s);
    this.last = s;
  }
}

/** FoldState is a fold's result up to a row. */
interface FoldState<T> {
  upTo: number;
  is: T;
}

const foldStates = new WeakMap<object, Map<string, FoldState<unknown>>>();

/**
 * fold accumulates rows into a value cached by name: in a live run only new rows are read. The returned object is the
 * same each time and grows in place.
 */
export function fold<T>(
  c: Columns,
  name: string,
  start: () => T,
  take: (is: T, s: Sample | null, i: number) => void,
): T {
  let of = foldStates.get(c.cacheKey);
  if (!of) foldStates.set(c.cacheKey, (of = new Map<string, FoldState<unknown>>()));
  let f = of.get(name) as FoldState<T> | undefined;
  // Older columns may be read again: the fold may be ahead of them.
  if (!f) of.set(name, (f = { upTo: 0, is: start() }));
  for (; f.upTo < c.rows.length; f.upTo++) take(f.is, c.rows[f.upTo]!, f.upTo);
  return f.is;
}

/** lineValues is one value per row. */
export const lineValues = (c: Columns, name: string, of: (s: Sample) => number | null | undefined): (number | null)[] =>
  fold(
    c,
    `values ${name}`,
    (): (number | null)[] => [],
    (all, s) => all.push(s ? (of(s) ?? null) : null),
  );

/** anyRow reports whether any row matches. */
export const anyRow = (c: Columns, name: string, is: (s: Sample) => boolean): boolean =>
  fold(
    c,
    `some ${name}`,
    () => ({ so: false }),
    (f, s) => {
      f.so ||= s !== null && is(s);
    },
  ).so;

/** presentNames lists the names with a positive count in any row: in the given order, then alphabetically. */
export function presentNames(
  c: Columns,
  name: string,
  of: (s: Sample) => Record<string, number>,
  order: readonly string[],
): string[] {
  const counts = fold(
    c,
    `present ${name}`,
    () => new Set<string>(),
    (all, s) => {
      if (s) for (const [k, v] of Object.entries(of(s))) if (v > 0) all.add(k);
    },
  );
  return [...order.filter((k) => counts.has(k)), ...[...counts].filter((k) => !order.includes(k)).sort()];
}

/** perSecond converts a counter that resets with each phase to a rate. */
export function perSecond(c: Columns, name: string, of: (s: Sample) => number | null): (number | null)[] {
  const rate = (last: Sample | null, s: Sample): number | null => {
    const now = of(s);
    const was = last ? of(last) : 0;
    if (now === null || was === null) return null;
    const span = last ? Math.max(0.5, s.t - last.t) : s.span;
    // Counts reset with a phase, but the cool-down continues the measurement's.
    const fresh = !last || (last.phase !== s.phase && s.phase !== 'COOLDOWN');
    const gained = fresh || now < was ? now : now - was;
    return gained / (fresh ? s.span : span);
  };
  return fold(
    c,
    `per second ${name}`,
    () => ({ all: [] as (number | null)[], last: null as Sample | null }),
    (f, s) => {
      f.all.push(s && rate(f.last, s));
      if (s) f.last = s;
    },
  ).all;
}
