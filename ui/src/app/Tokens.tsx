import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api } from '../api/client';
import { useMe } from '../api/queries';
import type { Token } from '../api/types';
import type { OwnedToken } from '../api/schema';
import { type CardColumn, CardTable } from '../design/CardTable';
import { Segments } from '../design/Controls';
import { Dialog, type Question } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { ShownOnce } from '../design/ShownOnce';
import { Empty, Load, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';

type Scope = Token['scope'];

/** scopeText says what a token of each scope may do, mid-sentence. */
export const scopeText: Record<Scope, string> = {
  read: 'read',
  run: 'read, and start and stop runs',
  metrics: 'read metrics only',
  write: 'read and change',
  admin: 'full access',
};

const scopes: { value: Scope; label: string }[] = [
  { value: 'read', label: 'read only' },
  { value: 'run', label: 'read, and start and stop runs, as CI does' },
  { value: 'metrics', label: 'read metrics only, for Prometheus and Grafana' },
  { value: 'write', label: 'read and change, except tokens and plugins' },
  { value: 'admin', label: 'full access, including tokens and plugins' },
];

const day = 86_400_000;

/** endsSoon is the tone of an expiry: '' when it is over two weeks away, or never. */
export function endsSoon(expires: string | null | undefined, now = Date.now()): string {
  if (!expires) return '';
  const left = Date.parse(expires) - now;
  if (left >= 14 * day) return '';
  if (left <= 0) return 'expired';
  const days = Math.floor(left / day);
  const hours = Math.floor(left / (day / 24));
  if (days === 0) return hours === 0 ? 'expires within the hour' : `expires in ${hours} h`;
  return days === 1 ? 'expires in 1 day' : `expires in ${days} days`;
}

/** Expires shows a token's expiry, highlighted when it is soon. */
function Expires({ at }: { at: string | null | undefined }) {
  const soon = endsSoon(at);
  return (
    <>
      {at ? dateTime(at) : 'never'}
      {soon !== '' && (
        <span className="second">
          <span className="badge warn">{soon}</span>
        </span>
      )}
    </>
  );
}

/** tokenTimes are the columns created, used and expires. */
export const tokenTimes: CardColumn<Pick<Token, 'created_at' | 'last_used_at' | 'expires_at'>>[] = [
  { head: 'Created', cell: (t) => ago(t.created_at), title: (t) => dateTime(t.created_at), phone: 'out' },
  {
    head: 'Last used',
    cell: (t) => (t.last_used_at ? ago(t.last_used_at) : 'never'),
    title: (t) => dateTime(t.last_used_at),
  },
  { head: 'Expires', cell: (t) => <Expires at={t.expires_at} /> },
];

/** The name column with the token's owner. */
const named: CardColumn<OwnedToken> = {
  head: 'Token',
  cell: (t) => (
    <>
      <span className="wrap-anywhere">{t.name}</span>
      <span className="second">may {scopeText[t.scope]}</span>
    </>
  ),
};

const kinds: { value: 'api' | 'session'; label: string }[] = [
  { value: 'api', label: 'API tokens' },
  { value: 'session', label: 'Sessions' },
];

/** AllTokens lets admins see and end the tokens and sessions of all users. */
export function AllTokens({ ask }: { ask: (q: Question) => void }) {
  const admin = useMe().data?.role === 'admin';
  const [kind, setKind] = useState<'api' | 'session'>('api');
  const list = useQuery({
    queryKey: ['everybodys', kind],
    enabled: admin,
    queryFn: ({ signal }) => api.get('/api/v1/tokens', { query: { kind }, signal }),
  });
  const qc = useQueryClient();
  const toast = useToast();
  if (!admin) return null;
  const session = kind === 'session';
  const end = (t: OwnedToken) =>
    ask({
      title: session ? `End this session of ${t.user_name}?` : `Revoke token “${t.name}” of ${t.user_name}?`,
      body: session
        ? 'The browser has to sign in again. To block the user, disable it under Users.'
        : 'Every program that uses this token loses access. You cannot undo this.',
      verb: session ? 'End session' : 'Revoke token',
      danger: true,
      act: async () => {
        await api.remove('/api/v1/tokens/{id}', { path: { id: t.token_id } });
        await Promise.all(['everybodys', 'tokens', 'sessions'].map((k) => qc.invalidateQueries({ queryKey: [k] })));
        toast(session ? `A session of ${t.user_name} was ended.` : `Token “${t.name}” was revoked.`, 'ok');
      },
    });
  return (
    <section className="panel" aria-label="Tokens and sessions of all users">
      <header>
        <h2>Tokens and sessions of all users</h2>
        <div className="end">
          <Segments label="Which" value={kind} options={kinds} onChange={setKind} />
        </div>
      </header>
      <Load
        from={list}
        what="The tokens could not be loaded."
        skeleton={<SkeletonRows rows={3} />}
        empty={(l) =>
          l.tokens.length === 0 && (
            <Empty tight title={session ? 'No sessions' : 'No API tokens yet'}>
              {session ? 'Browser sessions appear here.' : 'Tokens of all users appear here.'}
            </Empty>
          )
        }
      >
        {(l) => (
          <>
            <CardTable
              label="Tokens"
              rows={l.tokens}
              id={(t) => t.token_id}
              columns={[
                {
                  head: 'User',
                  cell: (t) => (
                    <>
                      <strong className="wrap-anywhere">{t.user_name}</strong>
                      <span className="second">{t.locked_out ? 'disabled' : t.user_role}</span>
                    </>
                  ),
                },
                ...(session ? [] : [named]),
                ...(session ? [{ ...tokenTimes[0]!, head: 'Signed in' }, ...tokenTimes.slice(1)] : tokenTimes),
              ]}
              acts={(t) => (
                <button
                  type="button"
                  className="btn danger small"
                  onClick={() => end(t)}
                  aria-label={
                    session
                      ? `End the session of ${t.user_name} of ${dateTime(t.created_at)}`
                      : `Revoke token ${t.name} of ${t.user_name}`
                  }
                >
                  {session ? 'End' : 'Revoke'}
                </button>
              )}
            />
            {l.total > l.tokens.length && (
              <p className="body muted">
                The newest {l.tokens.length} of {l.total}.
              </p>
            )}
          </>
        )}
      </Load>
    </section>
  );
}

/** NewToken creates an API token and shows it once. */
export function NewToken({ onClose }: { onClose: () => void }) {
  const viewer = useMe().data?.role === 'viewer';
  const qc = useQueryClient();
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [scope, setScope] = useState<Scope>(viewer ? 'read' : 'run');
  const create = useMutation({
    mutationFn: () =>
      api.post('/api/auth/tokens', {
        body: {
          name: name.trim(),
          expires_in_days: Number(days),
          scope,
        },
      }),
    onSuccess: () => qc.invalidateQueries({ queryKey: ['tokens'] }),
  });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    create.mutate();
  };
  if (create.data)
    return (
      <ShownOnce title={`Token “${name.trim()}”`} text={create.data.secret} copy="Copy the token" onClose={onClose} />
    );
  return (
    <Dialog title="New API token" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {create.error && <ProblemNotice error={create.error} />}
        <div className="field">
          <label className="label" htmlFor="token-name">
            Name
          </label>
          <input
            id="token-name"
            className="input"
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="ci"
            required
            maxLength={100}
          />
          <span className="help">Describe the use, so that you know later which token to revoke.</span>
        </div>
        <div className="field">
          <label className="label" htmlFor="token-days">
            Valid for
          </label>
          <select id="token-days" className="input" value={days} onChange={(e) => setDays(e.target.value)}>
            <option value="7">7 days</option>
            <option value="90">90 days</option>
            <option value="365">1 year</option>
          </select>
        </div>
        <div className="field">
          <label className="label" htmlFor="token-scope">
            It may
          </label>
          <select id="token-scope" className="input" value={scope} onChange={(e) => setScope(e.target.value as Scope)}>
            {scopes
              .filter((s) => !viewer || s.value === 'read' || s.value === 'metrics')
              .map((s) => (
                <option key={s.value} value={s.value}>
                  {s.label}
                </option>
              ))}
          </select>
        </div>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={create.isPending || name.trim() === ''}>
            Create token
          </button>
        </div>
      </form>
    </Dialog>
  );
}
