// What is made of runs that are over: tags, and baselines of templates.
import type { components } from '../src/api/schema';
import { need } from './answers';
import { iso } from './data';
import { Refusal } from './refusal';
import { runs, templates } from './state';

type Baseline = components['schemas']['Baseline'];

const path = /^\/api\/templates\/([^/]+)\/baseline$/;
const kept = new Map<string, Baseline>();

type Body = { run_id?: string; tags?: Record<string, string> };

export const handedRoutes: [string, RegExp, (parts: string[], body: Body) => unknown][] = [
  [
    'PUT',
    /^\/api\/runs\/([^/]+)\/tags$/,
    ([, id], { tags = {} }) => {
      need(runs, id, 'run').run.scenario_config.tags = tags;
      return { run_id: id, tags };
    },
  ],
  ['GET', path, ([, id]) => kept.get(id!) ?? (need(templates, id, 'template') && null)],
  [
    'PUT',
    path,
    ([, id], { run_id }) => {
      const { run } = need(runs, run_id ?? '', 'run');
      if (run.template_id !== id || run.status !== 'COMPLETED')
        throw new Refusal(409, 'conflict', 'This run cannot be the baseline: it has not completed.');
      const b = { template_id: id!, run_id: run.run_id, set_by: 'admin', set_at: iso(Date.now()) };
      kept.set(id!, b);
      return b;
    },
  ],
  ['DELETE', path, ([, id]) => (kept.delete(id!), null)],
];
