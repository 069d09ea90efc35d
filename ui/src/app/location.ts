import { useCallback, useEffect } from 'react';
import { useLocation, useSearch } from 'wouter';

/** The address as it is now; the parts of a file have one that the browser does not know. */
export const here = { path: () => location.pathname, search: () => location.search };

/**
 * A parameter of the address; setting it replaces the entry, so that Back leaves the page. Where it is kept, Back
 * undoes the change.
 */
export function useParam(name: string, fallback = '', kept = false): [string, (v: string) => void] {
  const [, navigate] = useLocation();
  const search = useSearch();
  const value = new URLSearchParams(search).get(name) ?? fallback;
  const set = useCallback(
    (v: string) => {
      // Two changes in one breath must not undo each other: read the address as it is now.
      const q = new URLSearchParams(here.search());
      if (v === '' || v === fallback) q.delete(name);
      else q.set(name, v);
      const s = q.toString();
      navigate(here.path() + (s ? `?${s}` : ''), { replace: !kept });
    },
    [navigate, name, fallback, kept],
  );
  return [value, set];
}

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Loadstone` : 'Loadstone';
  }, [title]);
}

/** A part of the path, from 1, as it was before it was encoded: the router leaves `%2C` and its like. */
export function pathPart(n: number): string {
  const part = window.location.pathname.split('/')[n] ?? '';
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}
