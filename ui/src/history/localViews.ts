import type { RunView } from '../api/types';
import { columnsFrom } from './columns';

/** LocalView is a named list view saved in the browser: filters, order, columns and trend. */
interface LocalView {
  name: string;
  /** The address's query, without the question mark. */
  search: string;
}

export const maxNameLength = 80;

const savedParams = ['status', 'search', 'template', 'range', 'tag', 'sort', 'columns', 'trend', 'figure'];

/** viewQuery keeps an address's view parameters, without page and selection; columns are always explicit. */
export function viewQuery(search: string, columns: string): string {
  const q = new URLSearchParams(search);
  const picked = new URLSearchParams();
  for (const p of savedParams) for (const v of q.getAll(p)) picked.append(p, v);
  picked.set('columns', columns);
  return picked.toString();
}

/** normalizeQuery formats a query as viewQuery does, for comparison. */
export function normalizeQuery(query: string): string {
  const columns = columnsFrom(new URLSearchParams(query).get('columns') ?? '') ?? [];
  return viewQuery(query, columns.join(','));
}

const storageKey = (user: string) => `loadstone.runs.views.${user}`;

/** viewsFrom parses views saved in the browser before the server stored them; invalid ones are dropped. */
export function viewsFrom(text: string | null): LocalView[] {
  let list: unknown;
  try {
    list = JSON.parse(text ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  return list.flatMap((v: unknown) => {
    const { name, search } = (v ?? {}) as Partial<LocalView>;
    if (typeof name !== 'string' || typeof search !== 'string' || !name.trim()) return [];
    return [{ name: name.trim().slice(0, maxNameLength).trim(), search: normalizeQuery(search) }];
  });
}

/** localViews are a user's views left in this browser. */
export function localViews(user: string): LocalView[] {
  try {
    return viewsFrom(localStorage.getItem(storageKey(user)));
  } catch {
    return [];
  }
}

/** saveLocalViews replaces the browser's views. */
export function saveLocalViews(user: string, list: LocalView[]): void {
  try {
    if (list.length) localStorage.setItem(storageKey(user), JSON.stringify(list));
    else localStorage.removeItem(storageKey(user));
  } catch {
    // Without storage there are none.
  }
}

/** uploadName picks the server name of a local view; '' when the server already has the view. */
export function uploadName(v: LocalView, own: Pick<RunView, 'name' | 'query'>[]): string {
  for (let n = 0; ; n++) {
    const mark = n === 0 ? '' : ` (browser${n === 1 ? '' : ` ${n}`})`;
    const name = v.name.slice(0, maxNameLength - mark.length).trimEnd() + mark;
    const existing = own.find((o) => o.name === name);
    if (!existing) return name;
    if (normalizeQuery(existing.query) === v.search) return '';
  }
}

/** nameProblem says what is wrong with a name; '' when it is valid. */
export function nameProblem(name: string, own: Pick<RunView, 'name'>[], limit: number): string {
  if (!name.trim()) return '';
  if ([...name.trim()].length > maxNameLength) return `A name has at most ${maxNameLength} characters.`;
  if (own.length >= limit && !own.some((v) => v.name === name.trim()))
    return `You have ${limit} views, the maximum. Delete one first.`;
  return '';
}
