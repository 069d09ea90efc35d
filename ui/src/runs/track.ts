import { type Columns, columns, continues, idle, join, put, type Sample, sameSecond, thinned } from './series';

/**
 * The seconds of a run that goes on: its history, and what the socket told, joined once and then only added to. A
 * second that comes costs the same after an hour as at the start.
 */
export class Track {
  private told: Sample[] = [];
  private readonly heard: Sample[] = [];
  /** Both together, in order of time. */
  private all: Sample[] = [];
  private c: Columns = columns({ samples: [] });
  /** The last second in the columns, and idle ones after it: a second of load would make them the middle of the run. */
  private last: Sample | null = null;
  private idle: Sample[] = [];

  /** Takes history anew; what the socket told of seconds that it does not have stays. */
  history(told: Sample[]): void {
    if (told === this.told) return;
    this.told = told;
    this.begin();
  }

  /** Takes a second that the socket told. */
  hear(s: Sample): void {
    put(this.heard, s);
    const last = this.all.at(-1);
    if (last && s.t < last.t + sameSecond) {
      this.begin();
      return;
    }
    this.all.push(s);
    if (!idle(s)) {
      const { t, at, rows, stem } = this.c;
      this.c = { t: [...t], at: [...at], rows: [...rows], stem };
      for (const i of this.idle) this.lay(i);
      this.idle = [];
      this.lay(s);
    } else if (this.last) this.idle.push(s);
  }

  /**
   * Joins the oldest seconds where there are too many, and returns what is to be kept as history in the place of what
   * it was given; null where nothing was joined. So a page that is left open does not grow.
   */
  thin(): Sample[] | null {
    const fewer = thinned(this.all);
    if (fewer === this.all) return null;
    this.told = fewer;
    // History that is read anew may not have the last of them yet.
    this.heard.splice(0, this.heard.length - 60);
    this.begin();
    return fewer;
  }

  /** The columns as of now, of the same stem as before where seconds were only added. */
  columns(): Columns {
    return this.c;
  }

  private begin(): void {
    this.all = join(this.told, { samples: this.heard }).samples;
    this.c = columns({ samples: this.all });
    this.last = this.c.rows.at(-1) ?? null;
    this.idle = this.last ? this.all.slice(this.all.lastIndexOf(this.last) + 1) : [];
  }

  private lay(s: Sample): void {
    const { t, at, rows } = this.c;
    if (this.last && !continues(this.last, s)) {
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

/** What was found of the rows of a stem, up to a row. */
interface Found<T> {
  upTo: number;
  is: T;
}

const found = new WeakMap<object, Map<string, Found<unknown>>>();

/**
 * Folds the rows of columns into something that only grows with them, and is kept by its name: of a run that goes on
 * only the rows that are new are read. What is returned is the same thing each time, grown in place.
 */
export function fold<T>(
  c: Columns,
  name: string,
  start: () => T,
  take: (is: T, s: Sample | null, i: number) => void,
): T {
  let of = found.get(c.stem);
  if (!of) found.set(c.stem, (of = new Map<string, Found<unknown>>()));
  let f = of.get(name) as Found<T> | undefined;
  // Columns of before are read again by whoever still has them: the fold may be ahead of these.
  if (!f) of.set(name, (f = { upTo: 0, is: start() }));
  for (; f.upTo < c.rows.length; f.upTo++) take(f.is, c.rows[f.upTo]!, f.upTo);
  return f.is;
}

/** The values of a line, one for each row. */
export const values = (c: Columns, name: string, of: (s: Sample) => number | null | undefined): (number | null)[] =>
  fold(
    c,
    `values ${name}`,
    (): (number | null)[] => [],
    (all, s) => all.push(s ? (of(s) ?? null) : null),
  );

/** Whether any row is so. */
export const some = (c: Columns, name: string, is: (s: Sample) => boolean): boolean =>
  fold(
    c,
    `some ${name}`,
    () => ({ so: false }),
    (f, s) => {
      f.so ||= s !== null && is(s);
    },
  ).so;

/** The names with a count above zero in any row, in a given order, then alphabetically. */
export function present(
  c: Columns,
  name: string,
  of: (s: Sample) => Record<string, number>,
  order: readonly string[],
): string[] {
  const seen = fold(
    c,
    `present ${name}`,
    () => new Set<string>(),
    (all, s) => {
      if (s) for (const [k, v] of Object.entries(of(s))) if (v > 0) all.add(k);
    },
  );
  return [...order.filter((k) => seen.has(k)), ...[...seen].filter((k) => !order.includes(k)).sort()];
}

/** Turns a counter that starts anew with each phase into a rate per second. */
export function perSecond(c: Columns, name: string, of: (s: Sample) => number | null): (number | null)[] {
  const rate = (last: Sample | null, s: Sample): number | null => {
    const now = of(s);
    const was = last ? of(last) : 0;
    if (now === null || was === null) return null;
    const span = last ? Math.max(0.5, s.t - last.t) : s.span;
    // The counts begin anew with a phase, but the cool-down is the end of what was measured.
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
