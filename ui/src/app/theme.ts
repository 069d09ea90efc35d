import { useCallback, useEffect, useState } from 'react';

export type ThemeChoice = 'light' | 'dark' | 'system';
const key = 'loadstone.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

function saved(): ThemeChoice {
  try {
    const v = localStorage.getItem(key);
    return v === 'light' || v === 'dark' ? v : 'system';
  } catch {
    return 'system';
  }
}

function apply(choice: ThemeChoice): void {
  const name = choice === 'system' ? (dark.matches ? 'dark' : 'light') : choice;
  document.documentElement.dataset.theme = name;
}

/** useTheme is the chosen theme; public/theme.js applies it before the first paint. */
export function useTheme(): [ThemeChoice, (c: ThemeChoice) => void] {
  const [choice, setChoice] = useState<ThemeChoice>(saved);
  useEffect(() => {
    apply(choice);
    if (choice !== 'system') return;
    const follow = () => apply('system');
    dark.addEventListener('change', follow);
    return () => dark.removeEventListener('change', follow);
  }, [choice]);
  const set = useCallback((c: ThemeChoice) => {
    try {
      localStorage.setItem(key, c);
    } catch {
      // Without storage the choice lasts for this visit.
    }
    setChoice(c);
  }, []);
  return [choice, set];
}

/** nextTheme is the choice that a click leads to. */
export const nextTheme: Record<ThemeChoice, ThemeChoice> = { system: 'light', light: 'dark', dark: 'system' };
export const themeIcon: Record<ThemeChoice, string> = { system: 'system', light: 'sun', dark: 'moon' };
