import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, asProblem, queryString } from '../api/client';
import { useHasRole } from '../api/queries';
import type { AuditEntry } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { problemText } from '../design/sentences';

const outcomes = ['done', 'refused', 'failed'] as const;

/** spans are the offered time ranges, in days. */
const spans = [
  { value: '', label: 'Any time' },
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
];

/** spanStart is rounded to the minute, so that the query stays the same for a while. */
export function spanStart(days: string, now = Date.now()): string | undefined {
  if (!/^\d+$/.test(days)) return undefined;
  return new Date(Math.floor((now - Number(days) * 86_400_000) / 60_000) * 60_000).toISOString();
}

/** AuditPage lists who did what, from where, and the outcome. */
export function AuditPage() {
  usePageTitle('Audit');
  const admin = useHasRole('admin');
  const [user, setUser] = useParam('user');
  const [action, setAction] = useParam('action');
  const [object, setObject] = useParam('object');
  const [outcome, setOutcome] = useParam('outcome');
  const [days, setDays] = useParam('days');
  const filter = {
    user: user || undefined,
    action: action || undefined,
    object: object || undefined,
    outcome: outcomes.find((o) => o === outcome),
    since: spanStart(days),
  };
  const pages = useInfiniteQuery({
    queryKey: ['audit', user, action, object, outcome, days],
    enabled: admin,
    placeholderData: keepPreviousData,
    initialPageParam: 0,
    queryFn: ({ pageParam, signal }) =>
      api.get('/api/audit', { query: { ...filter, limit: 100, before: pageParam }, signal }),
    getNextPageParam: (last) => last.next_before || undefined,
  });
  if (!admin)
    return (
      <div className="page">
        <div className="panel">
          <Empty icon="file" title="Only admins can read the audit log">
            Ask an admin to look something up for you.
          </Empty>
        </div>
      </div>
    );
  const filtered = Boolean(user || action || object || outcome || days);
  const entries = pages.data?.pages.flatMap((p) => p.entries);
  return (
    <>
      <header className="page-head">
        <h1>Audit</h1>
        <span className="sub hide-phone">Every change: who, what, from where, and its outcome.</span>
        <div className="actions">
          <a className="btn" href={`/api/audit/export${queryString({ ...filter, format: 'csv' })}`} download>
            <Icon name="download" /> CSV
          </a>
          <a className="btn" href={`/api/audit/export${queryString({ ...filter, format: 'json' })}`} download>
            <Icon name="download" /> JSON
          </a>
        </div>
      </header>
      <div className="page">
        <div className="panel">
          <div className="body row wrap audit-filter">
            <FilterInput label="User" value={user} onChange={setUser} />
            <FilterInput label="Action" value={action} onChange={setAction} />
            <FilterInput label="Object" value={object} onChange={setObject} />
            <select
              className="input"
              aria-label="Outcome"
              value={filter.outcome ?? ''}
              onChange={(e) => setOutcome(e.target.value)}
            >
              <option value="">Any outcome</option>
              {outcomes.map((o) => (
                <option key={o}>{o}</option>
              ))}
            </select>
            <select className="input" aria-label="Time" value={days} onChange={(e) => setDays(e.target.value)}>
              {spans.map((s) => (
                <option key={s.value} value={s.value}>
                  {s.label}
                </option>
              ))}
            </select>
          </div>
          <Load
            from={{ ...pages, data: entries }}
            what="The audit log could not be read."
            skeleton={<SkeletonRows rows={10} />}
            empty={(list) =>
              list.length === 0 && (
                <Empty icon="file" title={filtered ? 'Nothing matches' : 'No entries yet'}>
                  {filtered ? 'Remove a filter to see more.' : 'Changes, sign-ins, tests and downloads appear here.'}
                </Empty>
              )
            }
          >
            {(list) => <EntryTable list={list} />}
          </Load>
          {pages.hasNextPage && (
            <div className="body row">
              <button
                type="button"
                className="btn"
                onClick={() => void pages.fetchNextPage()}
                disabled={pages.isFetchingNextPage}
              >
                {pages.isFetchingNextPage ? 'Loading…' : 'Show older entries'}
              </button>
            </div>
          )}
        </div>
        <Retention />
      </div>
    </>
  );
}

function FilterInput({ label, value, onChange }: { label: string; value: string; onChange: (v: string) => void }) {
  return (
    <input
      className="input"
      type="search"
      aria-label={label}
      placeholder={label}
      value={value}
      maxLength={100}
      onChange={(e) => onChange(e.target.value)}
    />
  );
}

function EntryTable({ list }: { list: AuditEntry[] }) {
  return (
    <div className="table-wrap" tabIndex={0} role="group" aria-label="Audit log, scrollable">
      <table className="table cards">
        <thead>
          <tr>
            <th>When</th>
            <th>User</th>
            <th>Action</th>
            <th>Object</th>
            <th>Outcome</th>
          </tr>
        </thead>
        <tbody>
          {list.map((e) => (
            <tr key={e.audit_id}>
              <td className="nowrap">{dateTime(e.at)}</td>
              <td data-label="User">
                <span className="wrap-anywhere">{e.user_name || e.user_id || 'not signed in'}</span>
                <span className="second">
                  {[e.address, e.token_name && `by ${e.token_name}`].filter(Boolean).join(' · ')}
                </span>
              </td>
              <td data-label="Action">
                <code>{e.action}</code>
              </td>
              <td data-label="Object">
                <span className="wrap-anywhere">{e.object || '–'}</span>
                {e.detail && <span className="second wrap-anywhere">{e.detail}</span>}
              </td>
              <td>
                <span className={`chip${e.outcome === 'done' ? '' : ' bad'}`}>{e.outcome}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const retentionOptions = [
  { days: 0, label: 'forever' },
  { days: 30, label: '30 days' },
  { days: 90, label: '90 days' },
  { days: 365, label: '1 year' },
  { days: 1095, label: '3 years' },
];

function Retention() {
  const qc = useQueryClient();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const retention = useQuery({
    queryKey: ['audit-retention'],
    queryFn: ({ signal }) => api.get('/api/audit/retention', { signal }),
  });
  const days = retention.data?.keep_days;
  const keep = async (to: number) => {
    setBusy(true);
    try {
      await api.put('/api/audit/retention', { body: { keep_days: to, was: days } });
      toast('Retention of the audit log saved.', 'ok');
    } catch (err) {
      const p = asProblem(err);
      toast(problemText(p), 'bad');
    }
    setBusy(false);
    await qc.invalidateQueries({ queryKey: ['audit-retention'] });
    await qc.invalidateQueries({ queryKey: ['audit'] });
  };
  if (days === undefined) return null;
  const options = retentionOptions.some((k) => k.days === days)
    ? retentionOptions
    : [...retentionOptions, { days, label: `${days} days` }];
  return (
    <section className="panel pad setting">
      <div>
        <h2>Retention</h2>
        <p className="muted">Lines are never changed; older ones are removed within the hour.</p>
      </div>
      <select
        className="input"
        aria-label="Retention of the audit log"
        value={days}
        disabled={busy}
        onChange={(e) => void keep(Number(e.target.value))}
      >
        {options.map((k) => (
          <option key={k.days} value={k.days}>
            {k.label}
          </option>
        ))}
      </select>
    </section>
  );
}
