import { useCallback, useEffect } from 'react';
import { useLocation, useSearch } from 'wouter';

/** currentUrl is the address now; a report file has its own, which the browser does not know. */
export const currentUrl = { path: () => location.pathname, search: () => location.search };

/**
 * useParam is a parameter of the address. Setting it replaces the history entry; with pushHistory, Back undoes the
 * change.
 */
export function useParam(name: string, fallback = '', pushHistory = false): [string, (v: string) => void] {
  const [, navigate] = useLocation();
  const search = useSearch();
  const value = new URLSearchParams(search).get(name) ?? fallback;
  const set = useCallback(
    (v: string) => {
      // Two changes in one tick must not undo each other: read the current address.
      const q = new URLSearchParams(currentUrl.search());
      if (v === '' || v === fallback) q.delete(name);
      else q.set(name, v);
      const s = q.toString();
      navigate(currentUrl.path() + (s ? `?${s}` : ''), { replace: !pushHistory });
    },
    [navigate, name, fallback, pushHistory],
  );
  return [value, set];
}

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Loadstone` : 'Loadstone';
  }, [title]);
}

/** pathSegment is the nth part of the path, decoded: the router leaves `%2C` and similar. */
export function pathSegment(n: number): string {
  const part = window.location.pathname.split('/')[n] ?? '';
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // typed by hand
  }
}
