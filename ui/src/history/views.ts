import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, Problem } from '../api/client';
import { safeText } from '../api/safeText';
import { useMe } from '../api/queries';
import type { RunView } from '../api/types';
import { useToast } from '../design/Toast';
import { localViews, saveLocalViews, uploadName } from './localViews';

/** Views are the user's and shared views, and the limit per user. */
export interface Views {
  own: RunView[];
  shared: RunView[];
  limit: number;
}

const none: Views = { own: [], shared: [], limit: 0 };

export function useRunViews() {
  const me = useMe().data?.user_id;
  const list = useQuery({
    queryKey: ['run-views', me],
    queryFn: ({ signal }) => api.get('/api/v1/run-views', { signal }),
    enabled: me !== undefined,
    select: (d): Views => ({
      own: d.views.filter((v) => v.owner_id === me),
      shared: d.views.filter((v) => v.owner_id !== me),
      limit: d.most,
    }),
  });
  return { views: list.data ?? none, failed: list.isError, me };
}

/** useInvalidateViews refetches the views: another tab may have changed them. */
export function useInvalidateViews() {
  const qc = useQueryClient();
  return () => qc.invalidateQueries({ queryKey: ['run-views'] });
}

/** isNameTaken reports a duplicate name error. */
const isNameTaken = (err: unknown) =>
  err instanceof Problem && err.status === 409 && err.fields.some((f) => f.field === 'name');

/** migrateViews uploads the browser's views one by one; it returns how many failed. */
async function migrateViews(user: string): Promise<number> {
  let left = localViews(user);
  const { views } = await api.get('/api/v1/run-views', {});
  const own = views.filter((v) => v.owner_id === user);
  for (const v of [...left]) {
    const name = uploadName({ ...v, name: safeText(v.name) }, own);
    try {
      if (name) own.push(await api.post('/api/v1/run-views', { body: { name, query: v.search } }));
    } catch (err) {
      // Another tab does the same.
      if (!isNameTaken(err)) return left.length;
    }
    left = left.filter((o) => o !== v);
    saveLocalViews(user, left);
  }
  return 0;
}

/** useMigratedViews moves views from the browser to the server, once per page. */
export function useMigratedViews(): void {
  const me = useMe().data?.user_id;
  const changed = useInvalidateViews();
  const toast = useToast();
  useEffect(() => {
    if (!me) return;
    const all = localViews(me).length;
    if (all === 0) return;
    migrateViews(me)
      .then(async (left) => {
        await changed();
        if (left)
          toast(`${left} views of this browser could not be moved to the server. Delete some views first.`, 'warn');
        else toast('The views of this browser are now saved on the server.', 'ok');
      })
      .catch(() => {}); // The next visit tries again.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each user
  }, [me]);
}
