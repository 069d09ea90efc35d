// What is made of runs that are over: notes, tags, and baselines of templates.
import type { components } from '../src/api/schema';
import { need } from './answers';
import { iso } from './data';
import { Refusal } from './refusal';
import { runs, templates } from './state';

type Baseline = components['schemas']['Baseline'];

const path = /^\/api\/templates\/([^/]+)\/baseline$/;
const notePath = /^\/api\/runs\/([^/]+)\/note$/;
const kept = new Map<string, Baseline>();

type Tags = Record<string, string>;
type Body = { run_id?: string; tags?: Tags; was?: Tags; text?: string; version?: number };

const notes = new Map<string, components['schemas']['RunNote']>();
const note = (id: string) =>
  notes.get(id) ?? { run_id: id, text: '', version: 0, updated_by: '', updated_at: iso(Date.now()) };

const sorted = (tags: Tags | null | undefined) => JSON.stringify(Object.entries(tags ?? {}).sort());

export const handedRoutes: [string, RegExp, (parts: string[], body: Body) => unknown][] = [
  ['GET', notePath, ([, id]) => note(id!)],
  [
    'PUT',
    notePath,
    ([, id], { text = '', version = 0 }) => {
      const before = note(id!);
      if (version !== before.version)
        throw new Refusal(409, 'conflict', 'The note was changed by admin, after you had opened it.', 'Load it again.');
      const saved = { ...before, text, version: version + 1, updated_by: 'admin', updated_at: iso(Date.now()) };
      notes.set(id!, saved);
      return saved;
    },
  ],
  [
    'PUT',
    /^\/api\/runs\/([^/]+)\/tags$/,
    ([, id], { tags = {}, was }) => {
      const { scenario_config: scenario } = need(runs, id, 'run').run;
      if (was && sorted(was) !== sorted(scenario.tags))
        throw new Refusal(409, 'conflict', 'The tags of the run were changed by somebody else.', 'Load them again.');
      scenario.tags = tags;
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
