import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api } from '../api/client';
import { useInfo, useMe, useTokens } from '../api/queries';
import type { Token } from '../api/types';
import { CardTable } from '../design/CardTable';
import { Segments } from '../design/Controls';
import { type Question, useConfirm } from '../design/Dialog';
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
  { value: 'system', label: 'System' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

/** pages are the settings by address, with the role that sees them. */
const pages = [
  { page: 'account', title: 'Account', admin: false },
  { page: 'tokens', title: 'API tokens', admin: false },
  { page: 'users', title: 'Users', admin: true },
  { page: 'notifications', title: 'Notifications', admin: false },
  { page: 'links', title: 'Share links', admin: false },
  { page: 'prices', title: 'Prices', admin: false },
  { page: 'retention', title: 'Retention', admin: true },
  { page: 'server', title: 'Server', admin: false },
] as const;

/** Settings is one page of the settings; without a name the first one. */
export function Settings({ page }: { page: string }) {
  const admin = useMe().data?.role === 'admin';
  const shown = pages.filter((p) => admin || !p.admin);
  const here = shown.find((p) => p.page === page) ?? pages[0];
  usePageTitle(`${here.title} · Settings`);
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  const handleSignOut = () => void signOut().catch((err: unknown) => toast(signOutError(err), 'bad'));
  return (
    <>
      <header className="page-head">
        <h1>Settings</h1>
      </header>
      <div className="page narrow">
        <nav className="settings-nav" aria-label="Settings">
          {shown.map((p) => (
            <Link
              key={p.page}
              href={`/settings/${p.page}`}
              className={p.page === here.page ? 'on' : ''}
              aria-current={p.page === here.page ? 'page' : undefined}
            >
              {p.title}
            </Link>
          ))}
        </nav>
        {here.page === 'account' && (
          <>
            <Appearance />
            <Account />
            <button type="button" className="btn signout-phone" onClick={handleSignOut}>
              <Icon name="signout" /> Sign out
            </button>
          </>
        )}
        {here.page === 'tokens' && (
          <>
            <OwnTokens ask={ask} />
            <AllTokens ask={ask} />
          </>
        )}
        {here.page === 'users' && <Users ask={ask} />}
        {here.page === 'notifications' && <Notifications ask={ask} />}
        {here.page === 'links' && <ShareLinks />}
        {here.page === 'prices' && <PriceList ask={ask} />}
        {here.page === 'retention' && <Retention ask={ask} />}
        {here.page === 'server' && <Server />}
      </div>
      {dialog}
    </>
  );
}

function Appearance() {
  const [theme, setTheme] = useTheme();
  return (
    <section className="panel pad setting">
      <div>
        <h2>Appearance</h2>
        <p className="muted">Saved in this browser.</p>
      </div>
      <Segments label="Theme" value={theme} options={themes} onChange={setTheme} />
    </section>
  );
}

function OwnTokens({ ask }: { ask: (q: Question) => void }) {
  const tokens = useTokens();
  const qc = useQueryClient();
  const toast = useToast();
  const [creating, setCreating] = useState(false);
  const revoke = (t: Token) =>
    ask({
      title: `Revoke token “${t.name}”?`,
      body: 'Every program that uses this token loses access. You cannot undo this; create a new token if needed.',
      verb: 'Revoke token',
      act: async () => {
        await api.remove('/api/auth/tokens/{id}', { path: { id: t.token_id } });
        await qc.invalidateQueries({ queryKey: ['tokens'] });
        toast(`Token “${t.name}” was revoked.`, 'ok');
      },
    });
  return (
    <>
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
                title="No API tokens yet"
                actions={
                  <button type="button" className="btn" onClick={() => setCreating(true)}>
                    New token
                  </button>
                }
              >
                Create a token to start runs from CI.
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
      {creating && <NewToken onClose={() => setCreating(false)} />}
    </>
  );
}

function Server() {
  const info = useInfo();
  return (
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
  );
}
