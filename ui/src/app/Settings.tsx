import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { useInfo, useTokens } from '../api/queries';
import type { Token } from '../api/types';
import { CardTable } from '../design/CardTable';
import { Segments } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { bytes, dateTime, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { Account } from './Account';
import { usePageTitle } from './location';
import { Notifications } from './Notifications';
import { ShareLinks } from '../runs/ShareLinks';
import { PriceList } from './PriceList';
import { Retention } from './Retention';
import { signOut, signOutError } from './signOut';
import { Users } from './Users';
import { type ThemeChoice, useTheme } from './theme';
import { AllTokens, NewToken, scopeText, tokenTimes } from './Tokens';

const themes: { value: ThemeChoice; label: string }[] = [
  { value: 'system', label: 'As the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

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
  const handleSignOut = () => void signOut().catch((err: unknown) => toast(signOutError(err), 'bad'));
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
        <AllTokens ask={ask} />
        <Notifications ask={ask} />
        <Retention ask={ask} />
        <PriceList ask={ask} />
        <ShareLinks />
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
              <CardTable
                label="Your tokens"
                rows={list}
                id={(t) => t.token_id}
                columns={[
                  {
                    head: 'Name',
                    cell: (t) => (
                      <>
                        <strong className="wrap-anywhere">{t.name}</strong>
                        <span className="second">may {scopeText[t.scope]}</span>
                      </>
                    ),
                  },
                  ...tokenTimes,
                ]}
                acts={(t) => (
                  <button
                    type="button"
                    className="btn danger small"
                    onClick={() => revoke(t)}
                    aria-label={`Revoke token ${t.name}`}
                  >
                    Revoke
                  </button>
                )}
              />
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
        <button type="button" className="btn signout-phone" onClick={handleSignOut}>
          <Icon name="signout" /> Sign out
        </button>
      </div>
      {creating && <NewToken onClose={() => setCreating(false)} />}
      {dialog}
    </>
  );
}
