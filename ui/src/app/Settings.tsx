import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api } from '../api/client';
import { useInfo, useMe, useTokens } from '../api/queries';
import type { Token } from '../api/types';
import { Segments } from '../design/Controls';
import { Dialog, useConfirm } from '../design/Dialog';
import { ago, bytes, dateTime, plain } from '../design/format';
import { Icon } from '../design/icons';
import { ShownOnce } from '../design/ShownOnce';
import { Empty, Load, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Account } from './Account';
import { usePageTitle } from './location';
import { Notifications } from './Notifications';
import { Shares } from '../runs/HandOn';
import { Retention } from './Retention';
import { Users } from './Users';
import { type ThemeChoice, useTheme } from './theme';

const themes: { value: ThemeChoice; label: string }[] = [
  { value: 'system', label: 'As the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

const may = { read: 'read', write: 'read and change', admin: 'do everything' };

export function Settings() {
  usePageTitle('Settings');
  const tokens = useTokens();
  const info = useInfo();
  const qc = useQueryClient();
  const toast = useToast();
  const [theme, setTheme] = useTheme();
  const [creating, setCreating] = useState(false);
  const [dialog, ask] = useConfirm();
  const revoke = (t: Token) =>
    ask({
      title: `Revoke token “${t.name}”?`,
      body: 'Whatever uses it is refused from now on. This cannot be undone; make a new token instead.',
      verb: 'Revoke token',
      act: async () => {
        await api.remove('/api/auth/tokens/{id}', { path: { id: t.token_id } });
        await qc.invalidateQueries({ queryKey: ['tokens'] });
        toast(`Token “${t.name}” was revoked.`, 'ok');
      },
    });
  const signOut = async () => {
    await api.post('/api/auth/signout').catch(() => {});
    location.assign('/signin');
  };
  return (
    <>
      <header className="page-head">
        <h1>Settings</h1>
      </header>
      <div className="page narrow">
        <section className="panel pad setting">
          <div>
            <h2>Appearance</h2>
            <p className="muted">Kept in this browser.</p>
          </div>
          <Segments label="Theme" value={theme} options={themes} onChange={setTheme} />
        </section>
        <Account />
        <Users ask={ask} />
        <Notifications ask={ask} />
        <Retention ask={ask} />
        <Shares />
        <section className="panel">
          <header>
            <h2>API tokens</h2>
            <div className="end">
              <button type="button" className="btn small" onClick={() => setCreating(true)}>
                <Icon name="plus" size={14} /> New token
              </button>
            </div>
          </header>
          <p className="body muted">
            For the command line and CI: <code>loadstone run template.yaml --server URL --token …</code>, or an{' '}
            <code>Authorization: Bearer</code> header.
          </p>
          <Load
            from={tokens}
            what="The tokens could not be read."
            skeleton={<SkeletonRows rows={3} />}
            empty={(list) =>
              list.length === 0 && (
                <Empty
                  tight
                  title="No API token yet"
                  actions={
                    <button type="button" className="btn" onClick={() => setCreating(true)}>
                      New token
                    </button>
                  }
                >
                  Make one to run templates from CI.
                </Empty>
              )
            }
          >
            {(list) => (
              <div className="table-wrap">
                <table className="table">
                  <thead>
                    <tr>
                      <th>Name</th>
                      <th className="hide-phone">Made</th>
                      <th>Last used</th>
                      <th>Expires</th>
                      <th>
                        <span className="sr">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {list.map((t) => (
                      <tr key={t.token_id}>
                        <td>
                          <strong>{t.name}</strong>
                          <span className="second">may {may[t.scope]}</span>
                        </td>
                        <td className="hide-phone" title={dateTime(t.created_at)}>
                          {ago(t.created_at)}
                        </td>
                        <td title={dateTime(t.last_used_at)}>{ago(t.last_used_at)}</td>
                        <td>{t.expires_at ? dateTime(t.expires_at) : 'never'}</td>
                        <td className="num">
                          <button
                            type="button"
                            className="btn danger small"
                            onClick={() => revoke(t)}
                            aria-label={`Revoke token ${t.name}`}
                          >
                            Revoke
                          </button>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </Load>
        </section>
        <section className="panel">
          <header>
            <h2>This server</h2>
          </header>
          <div className="body">
            <Load from={info} what="The server's details could not be read." skeleton={<SkeletonRows rows={3} />}>
              {(i) => (
                <dl className="defs">
                  <dt>Version</dt>
                  <dd>
                    {i.version} · {i.go_version}
                  </dd>
                  <dt>Started</dt>
                  <dd>{dateTime(i.started_at)}</dd>
                  <dt>Control store</dt>
                  <dd>{i.control_store === 'embedded' ? 'built-in Postgres' : 'external Postgres'}</dd>
                  <dt>Free disk space</dt>
                  <dd title={`${i.data_dir_free_bytes} bytes`}>{plain(bytes(i.data_dir_free_bytes))}</dd>
                  <dt>Nodes</dt>
                  <dd>{i.nodes}</dd>
                  <dt>API</dt>
                  <dd>
                    <a href="/api/docs" target="_blank" rel="noreferrer">
                      Documentation
                    </a>{' '}
                    ·{' '}
                    <a href="/api/openapi.json" target="_blank" rel="noreferrer">
                      OpenAPI document
                    </a>{' '}
                    ·{' '}
                    <a href="/metrics" target="_blank" rel="noreferrer">
                      Prometheus metrics
                    </a>
                  </dd>
                </dl>
              )}
            </Load>
          </div>
        </section>
        <button type="button" className="btn signout-phone" onClick={() => void signOut()}>
          <Icon name="signout" /> Sign out
        </button>
      </div>
      {creating && <NewToken onClose={() => setCreating(false)} />}
      {dialog}
    </>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const viewer = useMe().data?.role === 'viewer';
  const qc = useQueryClient();
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [scope, setScope] = useState<Token['scope']>('write');
  const create = useMutation({
    mutationFn: () =>
      api.post('/api/auth/tokens', {
        body: {
          name: name.trim(),
          expires_in_days: Number(days),
          scope: viewer ? 'read' : scope,
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
          <span className="help">What it is for, so that you know later what you revoke.</span>
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
          <select
            id="token-scope"
            className="input"
            value={viewer ? 'read' : scope}
            disabled={viewer}
            onChange={(e) => setScope(e.target.value as Token['scope'])}
          >
            <option value="read">read only</option>
            <option value="write">read and change, but make no tokens and approve no plugins</option>
            <option value="admin">do everything, tokens and plugins too</option>
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
