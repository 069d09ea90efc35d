import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useId, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useTemplates } from '../api/queries';
import type { Schedule } from '../api/types';
import { Dialog } from '../design/Dialog';
import { ProblemNotice } from '../design/States';
import { useToast } from '../design/Toast';
import { useDebounced } from '../design/useDebounced';
import { draftOf, examples, fieldErrors, zonedTime } from './schedules';

/** ScheduleForm creates a schedule, or changes one, and shows its next times while it is edited. */
export function ScheduleForm({ existing, onClose }: { existing: Schedule | null; onClose: () => void }) {
  const id = useId();
  const qc = useQueryClient();
  const toast = useToast();
  const templates = useTemplates().data ?? [];
  const [draft, setDraft] = useState(() => draftOf(existing));
  const [error, setError] = useState<unknown>(null);
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const set = (to: Partial<typeof draft>) => setDraft((d) => ({ ...d, ...to }));
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setError(null);
    setWrong({});
    setBusy(true);
    try {
      const saved = existing
        ? await api.put('/api/v1/schedules/{id}', {
            path: { id: existing.schedule_id },
            body: { ...draft, version: existing.version },
          })
        : await api.post('/api/v1/schedules', { body: draft });
      toast(`Schedule “${saved.name}” was saved.`, 'ok');
      onClose();
    } catch (err) {
      const own = fieldErrors(asProblem(err).fields);
      setWrong(own);
      if (!['name', 'template_id', 'cron', 'time_zone'].some((f) => own[f])) setError(err);
    }
    setBusy(false);
    await qc.invalidateQueries({ queryKey: ['schedules'] });
  };
  const field = (name: string, label: string, input: (id: string) => ReactNode, help?: ReactNode) => (
    <div className="field">
      <label className="label" htmlFor={`${id}${name}`}>
        {label}
      </label>
      {input(`${id}${name}`)}
      {wrong[name] && (
        <span className="problem" role="alert">
          {wrong[name]}
        </span>
      )}
      {help && <span className="help">{help}</span>}
    </div>
  );
  return (
    <Dialog title={existing ? `Change schedule “${existing.name}”` : 'New schedule'} onClose={onClose}>
      <form className="stack" onSubmit={(e) => void submit(e)}>
        {error !== null && <ProblemNotice error={error} />}
        {field('name', 'Name', (n) => (
          <input
            id={n}
            className="input"
            value={draft.name}
            onChange={(e) => set({ name: e.target.value })}
            placeholder="nightly"
            autoComplete="off"
            required
            maxLength={100}
          />
        ))}
        {field('template_id', 'Template', (n) => (
          <select
            id={n}
            className="input"
            value={draft.template_id}
            onChange={(e) => set({ template_id: e.target.value })}
            required
          >
            <option value="">Choose a template</option>
            {templates.map((t) => (
              <option key={t.template_id} value={t.template_id}>
                {t.name}
              </option>
            ))}
          </select>
        ))}
        {field(
          'cron',
          'Cron expression',
          (n) => (
            <>
              <input
                id={n}
                className="input mono"
                value={draft.cron}
                onChange={(e) => set({ cron: e.target.value })}
                list={`${n}examples`}
                autoComplete="off"
                spellCheck={false}
                required
                maxLength={200}
              />
              <datalist id={`${n}examples`}>
                {examples.map((x) => (
                  <option key={x.value} value={x.value}>
                    {x.label}
                  </option>
                ))}
              </datalist>
            </>
          ),
          'Minute, hour, day of the month, month, day of the week; or @daily, @weekly, @hourly.',
        )}
        {field('time_zone', 'Time zone', (n) => (
          <input
            id={n}
            className="input"
            value={draft.time_zone}
            onChange={(e) => set({ time_zone: e.target.value })}
            placeholder="Europe/Berlin"
            autoComplete="off"
            spellCheck={false}
            maxLength={100}
          />
        ))}
        <NextTimes cron={draft.cron} zone={draft.time_zone} />
        <label className="row">
          <input type="checkbox" checked={draft.paused} onChange={(e) => set({ paused: e.target.checked })} />
          Paused
        </label>
        <p className="muted">
          Runs start in your name. A template has one scheduled run at a time: a start that is due meanwhile is skipped.
        </p>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy}>
            {busy ? 'Saving…' : 'Save schedule'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** NextTimes shows the next three times of an expression, or what is wrong with it. */
function NextTimes({ cron, zone }: { cron: string; zone: string }) {
  const asked = useDebounced(`${cron}\n${zone}`, 300);
  const [expression = '', timeZone = ''] = asked.split('\n');
  const times = useQuery({
    queryKey: ['schedule-times', expression, timeZone],
    enabled: expression.trim() !== '',
    queryFn: ({ signal }) =>
      api.get('/api/v1/schedule-times', { query: { cron: expression, time_zone: timeZone, count: 3 }, signal }),
    placeholderData: (before) => before,
    retry: false,
  });
  const problem = times.error && Object.values(fieldErrors(asProblem(times.error).fields))[0];
  return (
    <p className="muted" aria-live="polite">
      {problem ??
        `Next: ${(times.data?.times ?? []).map((t) => zonedTime(t ?? '', timeZone || 'UTC')).join(' · ') || '…'}`}
    </p>
  );
}
