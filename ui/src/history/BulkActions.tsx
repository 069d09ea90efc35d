import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, asProblem, fetchFile } from '../api/client';
import type { RunDetail, RunRow } from '../api/types';
import { csv, save } from '../charts/export';
import { type Action, ActionsMenu } from '../design/Controls';
import { Dialog, useConfirm } from '../design/Dialog';
import { Notice } from '../design/States';
import { useToast } from '../design/Toast';
import { parseTags } from '../runs/tagLines';
import { problemText } from '../design/sentences';

/** forEachRun applies an action to each run and reports the failed ones in a sentence. */
async function forEachRun(ids: string[], act: (id: string) => Promise<unknown>): Promise<string[]> {
  const failed: string[] = [];
  for (const id of ids) await act(id).catch((e: unknown) => failed.push(`${id.slice(0, 8)}: ${asProblem(e).message}`));
  return failed;
}

/** BulkActions are the actions for selected runs. */
export function BulkActions({ ids, visible, done }: { ids: string[]; visible: RunRow[]; done: () => void }) {
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  const [tagging, setTagging] = useState(false);
  const many = `${ids.length} ${ids.length === 1 ? 'run' : 'runs'}`;
  const name = (id: string) => visible.find((r) => r.run_id === id)?.test_name ?? id;
  const answered = async (failed: string[], what: string) => {
    await qc.invalidateQueries({ queryKey: ['runs'] });
    if (failed.length === 0) toast(`${many} ${ids.length === 1 ? 'was' : 'were'} ${what}.`, 'ok');
    else toast(`${failed.length} of ${many} failed (${what}): ${failed.join(' ')}`, 'bad');
  };
  const actions: Action[] = [
    { label: 'Add a tag', icon: 'edit', needs: 'operator', act: () => setTagging(true) },
    {
      label: 'Save reports as ZIP',
      icon: 'file',
      act: () => {
        toast(`Preparing the reports of ${many}.`);
        fetchFile(`/api/v1/reports?runs=${ids.map(encodeURIComponent).join(',')}`).then(
          (zip) => save('reports.zip', zip),
          (e: unknown) => {
            const p = asProblem(e);
            toast(problemText(p), 'bad');
          },
        );
      },
    },
    {
      label: 'Save as CSV',
      icon: 'table',
      act: () =>
        void Promise.all(
          ids.map(
            async (id) =>
              visible.find((r) => r.run_id === id) ?? toListedRun(await api.get('/api/runs/{id}', { path: { id } })),
          ),
        ).then(
          (rows) => save('runs.csv', new Blob([table(rows)], { type: 'text/csv' })),
          (e: unknown) => toast(asProblem(e).message, 'bad'),
        ),
    },
    {
      label: 'Delete',
      icon: 'trash',
      danger: true,
      needs: 'operator',
      act: () =>
        ask({
          title: `Delete ${many}?`,
          body: (
            <>
              This deletes their figures, logs and executions permanently: {ids.slice(0, 8).map(name).join(', ')}
              {ids.length > 8 && ` and ${ids.length - 8} more`}.
            </>
          ),
          verb: `Delete ${many}`,
          act: async () => {
            await answered(await forEachRun(ids, (id) => api.remove('/api/runs/{id}', { path: { id } })), 'deleted');
            done();
          },
        }),
    },
  ];
  return (
    <>
      <ActionsMenu label={`More for ${many}`} actions={actions} />
      {dialog}
      {tagging && (
        <TagDialog
          many={many}
          onClose={() => setTagging(false)}
          act={async (tags) => {
            const failed = await forEachRun(ids, async (id) => {
              const run = await api.get('/api/runs/{id}', { path: { id }, asStored: true });
              const was = run.scenario_config.tags ?? {};
              await api.put('/api/runs/{id}/tags', { path: { id }, body: { tags: { ...was, ...tags }, was } });
            });
            await answered(failed, 'tagged');
            setTagging(false);
          }}
        />
      )}
    </>
  );
}

function TagDialog(props: { many: string; onClose: () => void; act: (tags: Record<string, string>) => Promise<void> }) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const tags = parseTags(text);
  const wrong = text && typeof tags === 'string' ? 'Use the form name:value.' : '';
  return (
    <Dialog title={`Add a tag to ${props.many}`} onClose={props.onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          if (typeof tags === 'string') return;
          setBusy(true);
          void props.act(tags);
        }}
      >
        <input
          className="input"
          aria-label="Tag, as name:value"
          placeholder="ticket:PERF-1"
          maxLength={200}
          autoFocus
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
        {wrong && <Notice tone="warn">{wrong}</Notice>}
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy || !text || typeof tags === 'string'}>
            Add tag
          </button>
        </div>
      </form>
    </Dialog>
  );
}

type ListedRun = Pick<RunRow, 'run_id' | 'test_name' | 'status' | 'start_time' | 'end_time' | 'total_ops'> &
  Partial<Pick<RunRow, 'qps' | 'p50_ms' | 'p95_ms' | 'p99_ms' | 'error_rate' | 'passed'>>;

/** toListedRun converts a run of another page of the list to a row. */
export const toListedRun = ({ summary: s, ...run }: RunDetail): ListedRun => ({
  ...run,
  qps: s?.qps ?? null,
  p50_ms: s?.latency_ms?.p50 ?? null,
  p95_ms: s?.latency_ms?.p95 ?? null,
  p99_ms: s?.latency_ms?.p99 ?? null,
  error_rate: s?.errors.rate ?? null,
  passed: s?.passed ?? null,
});

/** table writes runs as CSV. */
export function table(rows: ListedRun[]): string {
  return csv(
    [
      'run_id',
      'name',
      'status',
      'start_time',
      'end_time',
      'qps',
      'p50_ms',
      'p95_ms',
      'p99_ms',
      'error_rate',
      'total_ops',
      'passed',
    ],
    rows.map((r) => [
      r.run_id,
      r.test_name,
      r.status,
      r.start_time,
      r.end_time,
      r.qps,
      r.p50_ms,
      r.p95_ms,
      r.p99_ms,
      r.error_rate,
      r.total_ops,
      r.passed == null ? '' : String(r.passed),
    ]),
  );
}
