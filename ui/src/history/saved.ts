import type { RunView } from '../api/types';
import { columnsFrom } from './columns';

/** A list of runs with a name: what the address says of its filters, order, columns and trend. */
export interface View {
  name: string;
  /** The query of the address, without the mark before it. */
  search: string;
}

/** A name has so many characters. */
export const longestName = 80;

const parts = ['status', 'search', 'template', 'range', 'tag', 'sort', 'columns', 'trend', 'figure'];

/** What a view keeps of an address: neither the page nor the marked runs; the columns also where they are the usual. */
export function viewOf(search: string, columns: string): string {
  const q = new URLSearchParams(search);
  const kept = new URLSearchParams();
  for (const p of parts) for (const v of q.getAll(p)) kept.append(p, v);
  kept.set('columns', columns);
  return kept.toString();
}

/** What a view says, whoever wrote it: as viewOf writes it, so that two can be compared. */
export function searchOf(query: string): string {
  const columns = columnsFrom(new URLSearchParams(query).get('columns') ?? '') ?? [];
  return viewOf(query, columns.join(','));
}

const storage = (user: string) => `loadstone.runs.views.${user}`;

/** Reads what a browser kept before the server did; what is no view, or was changed by hand, is left out. */
export function viewsFrom(text: string | null): View[] {
  let list: unknown;
  try {
    list = JSON.parse(text ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  return list.flatMap((v: unknown) => {
    const { name, search } = (v ?? {}) as Partial<View>;
    if (typeof name !== 'string' || typeof search !== 'string' || !name.trim()) return [];
    return [{ name: name.trim().slice(0, longestName).trim(), search: searchOf(search) }];
  });
}

/** The views that a user has in this browser still. */
export function browsersViews(user: string): View[] {
  try {
    return viewsFrom(localStorage.getItem(storage(user)));
  } catch {
    return [];
  }
}

/** Leaves these views in the browser, and no others. */
export function leaveViews(user: string, list: View[]): void {
  try {
    if (list.length) localStorage.setItem(storage(user), JSON.stringify(list));
    else localStorage.removeItem(storage(user));
  } catch {
    // A browser that keeps nothing has none.
  }
}

/**
 * Under which name the server is to keep a view of this browser, beside those that the user has there; empty where it
 * has it already.
 */
export function nameFor(v: View, own: Pick<RunView, 'name' | 'query'>[]): string {
  for (let n = 0; ; n++) {
    const mark = n === 0 ? '' : ` (browser${n === 1 ? '' : ` ${n}`})`;
    const name = v.name.slice(0, longestName - mark.length).trimEnd() + mark;
    const there = own.find((o) => o.name === name);
    if (!there) return name;
    if (searchOf(there.query) === v.search) return '';
  }
}

/** What is wrong with a name, as a sentence; empty when nothing is. */
export function wrongName(name: string, own: Pick<RunView, 'name'>[], most: number): string {
  if (!name.trim()) return '';
  if ([...name.trim()].length > longestName) return `A name has at most ${longestName} characters.`;
  if (own.length >= most && !own.some((v) => v.name === name.trim()))
    return `You keep ${most} views, and no more are kept. Delete one first.`;
  return '';
}
