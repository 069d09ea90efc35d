import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { Dialog } from '../design/Dialog';

const jumps: Record<string, [string, string]> = {
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
 * Shortcuts handles the page's keys: g and a letter navigate, / searches, j and k move in a list, x selects, ? shows
 * help.
 */
export function Shortcuts() {
  const [open, setOpen] = useState(false);
  const [, navigate] = useLocation();
  const g = useRef(0);
  useEffect(() => {
    const show = () => setOpen(true);
    const key = (e: KeyboardEvent) => {
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
    return () => {
      removeEventListener('keydown', key);
      removeEventListener('loadstone:shortcuts', show);
    };
  }, [navigate]);
  if (!open) return null;
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => setOpen(false)}>
      <dl className="keys">
        {Object.entries(jumps).map(([k, [, name]]) => (
          <div key={k}>
            <dt>
              <kbd>g</kbd> <kbd>{k}</kbd>
            </dt>
            <dd>{name}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>Search the list</dd>
        </div>
        <div>
          <dt>
            <kbd>n</kbd>
          </dt>
          <dd>Make a new one, where the page makes something</dd>
        </div>
        <div>
          <dt>
            <kbd>j</kbd> <kbd>k</kbd>
          </dt>
          <dd>Walk a list; Enter opens</dd>
        </div>
        <div>
          <dt>
            <kbd>x</kbd>
          </dt>
          <dd>Choose a row of it, where several can be chosen</dd>
        </div>
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>S</kbd>
          </dt>
          <dd>Save the template</dd>
        </div>
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </dt>
          <dd>Save the template and run it</dd>
        </div>
        <div>
          <dt>
            <kbd>m</kbd>
          </dt>
          <dd>Mark this moment of a run</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>This list</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close</dd>
        </div>
        <div>
          <dt>
            <kbd>←</kbd> <kbd>→</kbd>
          </dt>
          <dd>Read a chart that has the focus; Home, End, Enter for executions, + − 0 to zoom</dd>
        </div>
        <div>
          <dt>drag</dt>
          <dd>Zoom all charts; double-click resets</dd>
        </div>
      </dl>
      <div className="actions">
        <button type="button" className="btn" onClick={() => setOpen(false)}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
