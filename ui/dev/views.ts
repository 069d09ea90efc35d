// The mock's saved views.
import { randomUUID } from 'node:crypto';
import type { RunView } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const views = new Map<string, RunView>();

function put(v: Partial<RunView> & { name: string }): RunView {
  const at = iso(Date.now());
  const made = {
    view_id: randomUUID(),
    query: '',
    shared: false,
    owner_id: 'u1',
    owner: 'admin',
    version: 1,
    updated_by: 'admin',
    created_at: at,
    updated_at: at,
    ...v,
  };
  views.set(made.view_id, made);
  return made;
}

/** seedViews adds another user's shared view. */
export function seedViews() {
  put({
    name: 'Failed, slowest first',
    query: 'status=FAILED&sort=-p95_ms',
    shared: true,
    owner_id: 'u2',
    owner: 'grace@example.com',
  });
}

function found(id: string | undefined, version?: number): RunView {
  const v = views.get(id ?? '');
  if (!v) throw new Refusal(404, 'not_found', `There is no view '${id}'.`, 'Perhaps it was deleted.');
  if (version !== undefined && version !== v.version)
    throw new Refusal(409, 'conflict', `The view "${v.name}" was changed by admin.`, 'Load it again.');
  return v;
}

type Body = { name?: string; query?: string; shared?: boolean; version?: number };

export const viewRoutes: [string, RegExp, (parts: string[], body: Body) => unknown][] = [
  [
    'GET',
    /^\/api\/v1\/run-views$/,
    () => ({ views: [...views.values()].sort((a, b) => a.name.localeCompare(b.name)), most: 200 }),
  ],
  [
    'POST',
    /^\/api\/v1\/run-views$/,
    (_m, b) => {
      const name = b.name ?? '';
      if ([...views.values()].some((v) => v.owner_id === 'u1' && v.name === name))
        throw new Refusal(409, 'conflict', `There is a view called "${name}" already.`, 'Choose another name.');
      return put({ name, query: b.query ?? '' });
    },
  ],
  [
    'PUT',
    /^\/api\/v1\/run-views\/([^/]+)$/,
    ([, id], b) => {
      const v = found(id, b.version);
      return put({ ...v, name: b.name ?? v.name, query: b.query ?? '', version: v.version + 1 });
    },
  ],
  [
    'PUT',
    /^\/api\/v1\/run-views\/([^/]+)\/shared$/,
    ([, id], b) => {
      const v = found(id, b.version);
      return put({ ...v, shared: b.shared ?? false, version: v.version + 1 });
    },
  ],
  ['DELETE', /^\/api\/v1\/run-views\/([^/]+)$/, ([, id]) => (views.delete(found(id).view_id), null)],
];
