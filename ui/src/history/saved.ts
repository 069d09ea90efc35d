import { columnsFrom } from './columns';

/** A list of runs with a name: what the address says of its filters, order, columns and trend. */
export interface View {
  name: string;
  /** The query of the address, without the mark before it. */
  search: string;
}

/** So many views are kept; a name has so many characters. */
export const mostViews = 50;
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

const storage = (user: string) => `loadstone.runs.views.${user}`;

/** Reads what was kept; what is no view, or was changed by hand, is left out. */
export function viewsFrom(text: string | null): View[] {
  let list: unknown;
  try {
    list = JSON.parse(text ?? '[]');
  } catch {
    return [];
  }
  if (!Array.isArray(list)) return [];
  return list
    .flatMap((v: unknown) => {
      const { name, search } = (v ?? {}) as Partial<View>;
      if (typeof name !== 'string' || typeof search !== 'string' || !name.trim()) return [];
      const q = new URLSearchParams(search);
      return [
        {
          name: name.slice(0, longestName),
          search: viewOf(search, (columnsFrom(q.get('columns') ?? '') ?? []).join(',')),
        },
      ];
    })
    .slice(0, mostViews);
}

/** The views that a user has saved in this browser. */
export function savedViews(user: string): View[] {
  try {
    return viewsFrom(localStorage.getItem(storage(user)));
  } catch {
    return [];
  }
}

/** Keeps views; false when the browser does not. */
export function saveViews(user: string, list: View[]): boolean {
  try {
    localStorage.setItem(storage(user), JSON.stringify(list));
    return true;
  } catch {
    return false;
  }
}

/** The list with a view more; one of that name is replaced. */
export function withView(list: View[], v: View): View[] {
  return [...list.filter((x) => x.name !== v.name), v].sort((a, b) => a.name.localeCompare(b.name));
}

/** What is wrong with a name, as a sentence; empty when nothing is. */
export function wrongName(name: string, list: View[]): string {
  if (!name.trim()) return '';
  if (name.trim().length > longestName) return `A name has at most ${longestName} characters.`;
  if (list.length >= mostViews && !list.some((v) => v.name === name.trim()))
    return `This browser keeps ${mostViews} views. Delete one first.`;
  return '';
}
