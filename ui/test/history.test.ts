import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, it } from 'vitest';
import { type History, historyQuery } from '../src/runs/history';
import type { Sample } from '../src/runs/series';

it('what takes the place of a history is kept as it is, not made anew', () => {
  const qc = new QueryClient();
  const options = { ...historyQuery('r1', 0), enabled: false };
  const end = new QueryObserver(qc, options).subscribe(() => {});
  const of = (n: number): History => ({
    samples: Array.from({ length: n }, (_, t) => ({ t, at: 1000 * t, span: 1 }) as Sample),
    resolution: 1,
  });
  for (const told of [of(4), of(3)]) {
    qc.setQueryData<History>(options.queryKey, told);
    expect(qc.getQueryData(options.queryKey)).toBe(told);
  }
  end();
  qc.clear();
});
