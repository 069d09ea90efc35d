// The runs that one is compared with: those of its kind that were completed before it.

import type { Run } from '../api/types';

type Asked = { template_id: string } | { search: string };

export type Before = Asked & { status: ['COMPLETED']; until: string; limit: number; cursor?: string };

interface Page {
  runs?: Run[] | null;
  next_cursor?: string | null;
}

/** How many pages are read at most: a part of a name may be that of thousands of runs. */
const mostPages = 10;

/** The latest runs of the same template, or of the same name where there is none, that began before this one. */
export async function lastBefore(
  run: Run,
  most: number,
  leftOut: string[],
  read: (q: Before) => Promise<Page>,
): Promise<Run[]> {
  const start = Date.parse(run.start_time ?? '');
  if (Number.isNaN(start)) return [];
  // The server searches for a part of the name, of 200 characters at most.
  const of: Asked = run.template_id ? { template_id: run.template_id } : { search: run.test_name.slice(0, 200) };
  const alike = (r: Run) => (run.template_id ? r.template_id === run.template_id : r.test_name === run.test_name);
  const found: Run[] = [];
  let cursor: string | undefined;
  for (let i = 0; i < mostPages && found.length < most; i++) {
    // `until` is of the creation, which is before the start.
    const page = await read({ ...of, status: ['COMPLETED'], until: run.start_time!, limit: 100, cursor });
    for (const r of page.runs ?? [])
      if (alike(r) && !leftOut.includes(r.run_id) && Date.parse(r.start_time ?? '') < start) found.push(r);
    cursor = page.next_cursor ?? undefined;
    if (!cursor) break;
  }
  return found.slice(0, most);
}
