import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';

const ShortcutList = lazy(() => import('./ShortcutList'));
const Palette = lazy(() => import('./Palette'));

/** jumps are the pages that g and a letter lead to. */
export const jumps: Record<string, [string, string]> = {
  h: ['/', 'Home'],
  t: ['/templates', 'Templates'],
  r: ['/history', 'Runs'],
  e: ['/explore', 'Explore'],
  c: ['/connections', 'Connections'],
  m: ['/streams', 'Streams'],
  n: ['/nodes', 'Nodes'],
  p: ['/plugins', 'Plugins'],
  s: ['/settings', 'Settings'],
};

/** typing reports whether the key belongs to the focused field or dialog. */
function typing(e: KeyboardEvent): boolean {
  const el = e.target as HTMLElement | null;
  return !!el?.closest('input, textarea, select, [contenteditable], dialog, [role="menu"]');
}

function moveInList(step: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  if (rows.length === 0) return false;
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const to = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[to]?.focus();
  return true;
}

/**
 * Shortcuts handles the page's keys: Ctrl+K finds, g and a letter navigate, / searches, j and k move in a list, x
 * selects, ? shows help.
 */
export function Shortcuts() {
  const [open, setOpen] = useState(false);
  const [finding, setFinding] = useState(false);
  const [, navigate] = useLocation();
  const g = useRef(0);
  useEffect(() => {
    const show = () => setOpen(true);
    const find = () => setFinding(true);
    const key = (e: KeyboardEvent) => {
      // Also from a field; a dialog keeps its keys.
      if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') {
        if (document.querySelector('dialog[open]')) return;
        e.preventDefault();
        setFinding(true);
        return;
      }
      if (e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
      if (e.key === '?') {
        e.preventDefault();
        setOpen(true);
      } else if (e.key === '/') {
        const box = document.querySelector<HTMLInputElement>('[data-search]');
        if (box) {
          e.preventDefault();
          box.focus();
          box.select();
        }
      } else if (e.key === 'n' && !(g.current && Date.now() - g.current < 1500)) {
        // The page's main action.
        const make = document.querySelector<HTMLElement>('[data-new]');
        if (make) {
          e.preventDefault();
          make.click();
        }
      } else if (e.key === 'g') {
        g.current = Date.now();
      } else if (g.current && Date.now() - g.current < 1500 && jumps[e.key]) {
        e.preventDefault();
        g.current = 0;
        navigate(jumps[e.key]![0]);
      } else if (e.key === 'j' || (e.key === 'ArrowDown' && document.activeElement?.matches('[data-row]'))) {
        if (moveInList(1)) e.preventDefault();
      } else if (e.key === 'k' || (e.key === 'ArrowUp' && document.activeElement?.matches('[data-row]'))) {
        if (moveInList(-1)) e.preventDefault();
      } else if (e.key === 'x' && document.activeElement?.matches('[data-row]')) {
        // Moving in a list with selection keeps what is selected.
        document.activeElement.closest('tr')?.querySelector<HTMLInputElement>('input[type="checkbox"]')?.click();
      } else {
        g.current = 0;
      }
    };
    addEventListener('keydown', key);
    addEventListener('loadstone:shortcuts', show);
    addEventListener('loadstone:palette', find);
    return () => {
      removeEventListener('keydown', key);
      removeEventListener('loadstone:palette', find);
      removeEventListener('loadstone:shortcuts', show);
    };
  }, [navigate]);
  return (
    <Suspense fallback={null}>
      {open && <ShortcutList onClose={() => setOpen(false)} />}
      {finding && <Palette onClose={() => setFinding(false)} />}
    </Suspense>
  );
}
