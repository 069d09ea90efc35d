import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api } from '../api/client';
import type { RunDetail, Share } from '../api/types';
import { OperatorOnly } from '../app/OperatorOnly';
import { CardTable } from '../design/CardTable';
import { Dialog, useConfirm } from '../design/Dialog';
import { ago, count, dateTime, plain } from '../design/format';
import { Icon } from '../design/icons';
import { ShownOnce } from '../design/ShownOnce';
import { Empty, Load, ProblemNotice, SkeletonRows } from '../design/States';

/** reportUrl is the download address of a run's report. */
export const reportUrl = (id: string) => `/api/runs/${encodeURIComponent(id)}/report`;

const useShares = (run?: string) =>
  useQuery({
    queryKey: ['shares', run ?? ''],
    queryFn: ({ signal }) => api.get('/api/v1/shares', { query: { run_id: run }, signal }).then((r) => r.shares),
  });

const terms = [
  [1, '1 day'],
  [7, '7 days'],
  [30, '30 days'],
  [365, 'a year'],
] as const;

/** ShareDialog creates a share link and shows it once. */
export function ShareDialog({ run, onClose }: { run: Pick<RunDetail, 'run_id' | 'test_name'>; onClose: () => void }) {
  const [days, setDays] = useState(7);
  const [url, setUrl] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const qc = useQueryClient();
  const id = useId();
  const make = async () => {
    setBusy(true);
    setError(null);
    try {
      const made = await api.post('/api/runs/{id}/shares', {
        path: { id: run.run_id },
        body: { expires_in_days: days },
      });
      setUrl(made.url);
      void qc.invalidateQueries({ queryKey: ['shares'] });
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  if (url)
    return (
      <ShownOnce title="Share link" wide text={url} copy="Copy the link" onClose={onClose}>
        <p className="muted">
          Anyone with this link can read the report of “{run.test_name}” and nothing else, until the link expires or you
          revoke it.
        </p>
      </ShownOnce>
    );
  return (
    <Dialog title={`Share the report of “${run.test_name}”`} onClose={onClose}>
      <p className="muted">
        A share link opens without signing in. It shows the verdict, figures, charts and log of this run, and nothing
        else of this server.
      </p>
      {error !== null && <ProblemNotice error={error} />}
      <div className="field">
        <label htmlFor={id}>Valid for</label>
        <select id={id} className="input auto" value={days} onChange={(e) => setDays(Number(e.target.value))}>
          {terms.map(([n, words]) => (
            <option key={n} value={n}>
              {words}
            </option>
          ))}
        </select>
      </div>
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="btn primary" disabled={busy} onClick={() => void make()}>
          Make link
        </button>
      </div>
    </Dialog>
  );
}

/** ShareLinks lists the share links of a run, or of all runs. */
export function ShareLinks({ run }: { run?: string }) {
  const shares = useShares(run);
  const qc = useQueryClient();
  const [dialog, ask] = useConfirm();
  const end = (s: Share) =>
    ask({
      title: 'Revoke this link?',
      body: `The link to the report of “${s.run_name}” stops working.`,
      verb: 'Revoke link',
      act: async () => {
        await api.remove('/api/v1/shares/{id}', { path: { id: s.share_id } });
        await qc.invalidateQueries({ queryKey: ['shares'] });
      },
    });
  return (
    <section className="panel" aria-label="Links to reports">
      <header>
        <h2 className="h3">Links to {run ? 'the report' : 'reports'}</h2>
      </header>
      <Load
        from={shares}
        what="The links could not be read."
        skeleton={<SkeletonRows rows={2} />}
        empty={(list) =>
          list.length === 0 && (
            <Empty tight title="No link yet">
              {run
                ? 'Press “Share the report” in the menu above to create a link that opens without signing in.'
                : 'Create a link on the page of a run. It opens its report without signing in.'}
            </Empty>
          )
        }
      >
        {(list) => (
          <CardTable
            label="Links"
            dense
            rows={list}
            id={(s) => s.share_id}
            columns={[
              ...(run
                ? []
                : [{ head: 'Run', cell: (s: Share) => <span className="wrap-anywhere">{s.run_name}</span> }]),
              {
                head: 'Created',
                cell: (s) => (
                  <>
                    {ago(s.created_at)} by {s.created_by}
                  </>
                ),
                title: (s) => dateTime(s.created_at),
                phone: 'alone',
              },
              {
                head: 'State',
                cell: (s) => {
                  const expired = Date.parse(s.expires_at ?? '') <= Date.now();
                  return (
                    <span className={`badge ${s.run_deleted || expired ? '' : 'ok'}`}>
                      {s.run_deleted ? 'Run deleted' : expired ? 'Expired' : 'Active'}
                    </span>
                  );
                },
                title: (s) => `Expires ${dateTime(s.expires_at)}`,
                phone: 'alone',
              },
              {
                head: 'Opened',
                cell: (s) => plain(count(s.use_count)),
                title: (s) => (s.used_at ? `Last ${dateTime(s.used_at)}` : undefined),
                num: true,
              },
            ]}
            acts={(s) => (
              <OperatorOnly>
                <button
                  type="button"
                  className="btn quiet small"
                  aria-label={`End the link to ${s.run_name} of ${dateTime(s.created_at)}`}
                  onClick={() => end(s)}
                >
                  <Icon name="close" size={12} /> End
                </button>
              </OperatorOnly>
            )}
          />
        )}
      </Load>
      {dialog}
    </section>
  );
}
