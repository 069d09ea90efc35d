import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useId, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useHasRole, useMe } from '../api/queries';
import type { Preview, Retention as Saved } from '../api/types';
import type { Question } from '../design/Dialog';
import { ago, bytes, dateTime, plain } from '../design/format';
import { Load, Notice, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { draftOf, keptRunsText, leftoverText, passText, previewText, rulesOf } from './retentionText';

/** Retention lets admins configure which runs are deleted automatically. */
export function Retention({ ask }: { ask: (q: Question) => void }) {
  const known = useMe().data !== undefined;
  const admin = useHasRole('admin') && known;
  const saved = useQuery({
    queryKey: ['retention'],
    enabled: admin,
    refetchInterval: 10_000,
    queryFn: ({ signal }) => api.get('/api/v1/retention', { signal }),
  });
  if (!admin) return null;
  return (
    <section className="panel" aria-label="Retention">
      <header>
        <h2>Retention</h2>
        <span className="end">
          {saved.data && <span className={`badge ${saved.data.on ? 'ok' : ''}`}>{saved.data.on ? 'On' : 'Off'}</span>}
        </span>
      </header>
      <p className="body muted">
        Loadstone deletes old runs by these rules. It keeps baselines, runs with a note or a share link, replayed runs,
        and unfinished runs.
      </p>
      <Load from={saved} what="The retention could not be read." skeleton={<SkeletonRows rows={3} />}>
        {(s) => <Form key={s.version} saved={s} ask={ask} />}
      </Load>
    </section>
  );
}

function Form({ saved, ask }: { saved: Saved; ask: (q: Question) => void }) {
  const id = useId();
  const qc = useQueryClient();
  const toast = useToast();
  const [draft, setDraft] = useState(draftOf(saved));
  const [preview, setPreview] = useState<Preview | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const set = (to: Partial<typeof draft>) => {
    setDraft((d) => ({ ...d, ...to }));
    setPreview(null);
  };
  const fieldError = (name: string) => asProblem(error).fields.find((f) => f.field === name);
  const tryRules = async () => {
    setBusy(true);
    setError(null);
    try {
      return await api.post('/api/v1/retention/preview', { body: rulesOf(draft) });
    } catch (err) {
      setError(err);
      return null;
    } finally {
      setBusy(false);
    }
  };
  const save = async () => {
    try {
      await api.put('/api/v1/retention', { body: { ...rulesOf(draft), version: saved.version } });
    } catch (err) {
      setError(err);
      throw err;
    } finally {
      await qc.invalidateQueries({ queryKey: ['retention'] });
    }
    toast('Retention saved.', 'ok');
  };
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    const now = await tryRules();
    if (!now) return;
    setPreview(now);
    if (!draft.on || now.deleted_runs + now.deleted_executions === 0) return void (await save().catch(() => {}));
    ask({
      title: 'Turn on deletion?',
      body: `${previewText(now)} ${keptRunsText(now)} This cannot be undone.`,
      verb: 'Save and delete',
      danger: true,
      act: save,
    });
  };
  const number = (
    name: 'runs' | 'executions' | 'budget',
    field: string,
    label: string,
    unit: string,
    help: ReactNode,
  ) => (
    <div className="field">
      <label className="label" htmlFor={id + name}>
        {label}
      </label>
      <span className="row">
        <input
          id={id + name}
          className="input keeping-number"
          type="number"
          min={0}
          step={name === 'budget' ? 'any' : 1}
          max={name === 'budget' ? 1e9 : 36500}
          value={draft[name]}
          placeholder="keep all"
          onChange={(e) => set({ [name]: e.target.value })}
        />
        {unit}
      </span>
      {error !== null && fieldError(field) && (
        <span className="problem" role="alert">
          {fieldError(field)?.message}
        </span>
      )}
      <span className="help">{help}</span>
    </div>
  );
  const last = saved.last_pass;
  return (
    <form className="body stack" onSubmit={(e) => void submit(e)}>
      {error !== null && <ProblemNotice error={error} />}
      <div className="keeping">
        {number(
          'runs',
          'keep_runs_days',
          'Delete runs after',
          'days',
          'Including figures, charts, logs and executions.',
        )}
        {number(
          'executions',
          'keep_executions_days',
          'Delete executions after',
          'days',
          'Executions take most of the space. Figures, charts and logs stay.',
        )}
        {number(
          'budget',
          'executions_budget_gb',
          'Budget for executions',
          'GB',
          'Above the budget, Loadstone deletes executions of the oldest runs. It keeps those of the last hour.',
        )}
        <div className="field">
          <label className="label" htmlFor={`${id}tags`}>
            Tags that keep a run
          </label>
          <input
            id={`${id}tags`}
            className="input"
            value={draft.tags}
            onChange={(e) => set({ tags: e.target.value })}
            placeholder="none"
            autoComplete="off"
            maxLength={1000}
          />
          <span className="help">Names with commas between; * is any tag.</span>
        </div>
      </div>
      <label className="row">
        <input type="checkbox" checked={draft.on} onChange={(e) => set({ on: e.target.checked })} />
        Delete by these rules
      </label>
      {preview && (
        <Notice tone={preview.over_budget_bytes > 0 ? 'warn' : 'plain'}>
          {previewText(preview)} {keptRunsText(preview)}
          {preview.over_budget_bytes > 0 &&
            ` The executions would still exceed the budget by ${plain(bytes(preview.over_budget_bytes))}: ` +
              'kept runs and runs of the last hour stay.'}
        </Notice>
      )}
      {saved.over_budget_bytes > 0 && (
        <Notice tone="warn">
          Executions have exceeded the budget by {plain(bytes(saved.over_budget_bytes))} since{' '}
          {dateTime(saved.over_budget_since)}. All remaining executions belong to kept runs or to runs of the last hour.
        </Notice>
      )}
      {last && (
        <p className="muted" title={dateTime(last.started_at)} role="status">
          {passText(last)} {ago(last.started_at)}
          {last.error && <span className="problem"> {last.error}</span>}
        </p>
      )}
      {saved.leftovers.map((l) => (
        <Notice key={l.place} tone={l.problem ? 'warn' : 'plain'}>
          {leftoverText(l, ago)}
        </Notice>
      ))}
      <div className="row">
        <button
          type="button"
          className="btn"
          disabled={busy}
          onClick={() => void tryRules().then((p) => setPreview(p))}
        >
          Preview
        </button>
        <button type="submit" className="btn primary" disabled={busy}>
          Save
        </button>
      </div>
    </form>
  );
}
