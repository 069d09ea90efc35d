import { useEffect, useState } from 'react';

/** useDebounced returns the value after it has not changed for ms, so that not every key press sends a request. */
export function useDebounced(value: string, ms = 250): string {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setDebounced(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return debounced;
}
