import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { api, Problem } from '../api/client';
import { harmless } from '../api/harmless';
import { useMe } from '../api/queries';
import type { RunView } from '../api/types';
import { useToast } from '../design/Toast';
import { browsersViews, leaveViews, nameFor } from './saved';

/** The user's views, those that others share, and how many a user may have. */
export interface Views {
  own: RunView[];
  shared: RunView[];
  most: number;
}

const none: Views = { own: [], shared: [], most: 0 };

export function useRunViews() {
  const me = useMe().data?.user_id;
  const list = useQuery({
    queryKey: ['run-views', me],
    queryFn: ({ signal }) => api.get('/api/v1/run-views', { signal }),
    enabled: me !== undefined,
    select: (d): Views => ({
      own: d.views.filter((v) => v.owner_id === me),
      shared: d.views.filter((v) => v.owner_id !== me),
      most: d.most,
    }),
  });
  return { views: list.data ?? none, failed: list.isError, me };
}

/** Asks for the views anew: another tab may have changed them. */
export function useViewsChanged() {
  const qc = useQueryClient();
  return () => qc.invalidateQueries({ queryKey: ['run-views'] });
}

/** Whether a refusal says that there is a view of this name. */
const isTaken = (err: unknown) =>
  err instanceof Problem && err.status === 409 && err.fields.some((f) => f.field === 'name');

/** Gives the server the views that this browser has of a user, one after the other; how many could not be given. */
async function moveViews(user: string): Promise<number> {
  let left = browsersViews(user);
  const { views } = await api.get('/api/v1/run-views', {});
  const own = views.filter((v) => v.owner_id === user);
  for (const v of [...left]) {
    const name = nameFor({ ...v, name: harmless(v.name) }, own);
    try {
      if (name) own.push(await api.post('/api/v1/run-views', { body: { name, query: v.search } }));
    } catch (err) {
      // Another tab is doing the same.
      if (!isTaken(err)) return left.length;
    }
    left = left.filter((o) => o !== v);
    leaveViews(user, left);
  }
  return 0;
}

/** Once on this page, has the server take over what the browser kept before it could. */
export function useMovedViews(): void {
  const me = useMe().data?.user_id;
  const changed = useViewsChanged();
  const toast = useToast();
  useEffect(() => {
    if (!me) return;
    const all = browsersViews(me).length;
    if (all === 0) return;
    moveViews(me)
      .then(async (left) => {
        await changed();
        if (left)
          toast(`${left} of the views in this browser could not be moved to the server. Delete some first.`, 'warn');
        else toast('Your views of this browser are kept on the server now.', 'ok');
      })
      .catch(() => {}); // The next visit tries again.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each user
  }, [me]);
}
