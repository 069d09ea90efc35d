import type { ReactNode } from 'react';
import { useMay } from '../api/queries';

/** What changes something: not there for viewers, whom the server would refuse. */
export function Writes({ children }: { children: ReactNode }) {
  return useMay('operator') ? children : null;
}
