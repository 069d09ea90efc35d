import type { ReactNode } from 'react';
import { useHasRole } from '../api/queries';

/** OperatorOnly hides actions from viewers, whom the server would reject. */
export function OperatorOnly({ children }: { children: ReactNode }) {
  return useHasRole('operator') ? children : null;
}
