// Notes, tags and baselines of finished runs.
import type { components } from '../src/api/schema';
import { findOr404 } from './answers';
import { iso } from './data';
import { Refusal } from './refusal';
import { runs, templates } from './state';

type Baseline = components['schemas']['Baseline'];

const path = /^\/api\/templates\/([^/]+)\/baseline$/;
const notePath = /^\/api\/runs\/([^/]+)\/note$/;
const baselines = new Map<string, Baseline>();

type Tags = Record<string, string>;
type Body = { run_id?: string; tags?: Tags; was?: Tags; text?: string; version?: number };

const notes = new Map<string, components['schemas']['RunNote']>();
const note = (id: string) =>
  notes.get(id) ?? { run_id: id, text: '', version: 0, updated_by: '', updated_at: iso(Date.now()) };

const sorted = (tags: Tags | null | undefined) => JSON.stringify(Object.entries(tags ?? {}).sort());

export const noteRoutes: [string, RegExp, (parts: string[], body: Body) => unknown][] = [
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
      const { scenario_config: scenario } = findOr404(runs, id, 'run').run;
      if (was && sorted(was) !== sorted(scenario.tags))
        throw new Refusal(409, 'conflict', 'The tags of the run were changed by somebody else.', 'Load them again.');
      scenario.tags = tags;
      return { run_id: id, tags };
    },
  ],
  ['GET', path, ([, id]) => baselines.get(id!) ?? (findOr404(templates, id, 'template') && null)],
  [
    'PUT',
    path,
    ([, id], { run_id }) => {
      const { run } = findOr404(runs, run_id ?? '', 'run');
      if (run.template_id !== id || run.status !== 'COMPLETED')
        throw new Refusal(409, 'conflict', 'This run cannot be the baseline: it has not completed.');
      const b = { template_id: id!, run_id: run.run_id, set_by: 'admin', set_at: iso(Date.now()) };
      baselines.set(id!, b);
      return b;
    },
  ],
  ['DELETE', path, ([, id]) => (baselines.delete(id!), null)],
];
