// Earlier completed runs of the same kind, for comparison.

import type { Run } from '../api/types';

type RunSearch = { template_id: string } | { search: string };

export type EarlierRunsQuery = RunSearch & { status: ['COMPLETED']; until: string; limit: number; cursor?: string };

interface Page {
  runs?: Run[] | null;
  next_cursor?: string | null;
}

/** maxPages limits the search: part of a name may match thousands of runs. */
const maxPages = 10;

/**
 * earlierRuns returns the latest runs of the same template, or of the same name without one, that started before this
 * one.
 */
export async function earlierRuns(
  run: Run,
  limit: number,
  leftOut: string[],
  read: (q: EarlierRunsQuery) => Promise<Page>,
): Promise<Run[]> {
  const start = Date.parse(run.start_time ?? '');
  if (Number.isNaN(start)) return [];
  // The server searches for a part of the name, at most 200 characters.
  const of: RunSearch = run.template_id ? { template_id: run.template_id } : { search: run.test_name.slice(0, 200) };
  const isSameSeries = (r: Run) =>
    run.template_id ? r.template_id === run.template_id : r.test_name === run.test_name;
  const found: Run[] = [];
  let cursor: string | undefined;
  for (let i = 0; i < maxPages && found.length < limit; i++) {
    // `until` is the creation time, which is before the start.
    const page = await read({ ...of, status: ['COMPLETED'], until: run.start_time!, limit: 100, cursor });
    for (const r of page.runs ?? [])
      if (isSameSeries(r) && !leftOut.includes(r.run_id) && Date.parse(r.start_time ?? '') < start) found.push(r);
    cursor = page.next_cursor ?? undefined;
    if (!cursor) break;
  }
  return found.slice(0, limit);
}
