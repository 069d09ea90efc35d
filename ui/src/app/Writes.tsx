import type { ReactNode } from 'react';
import { useMe } from '../api/queries';

/** What changes something: not there for viewers, whom the server would refuse. */
export function Writes({ children }: { children: ReactNode }) {
  return useMe().data?.role === 'viewer' ? null : children;
}
