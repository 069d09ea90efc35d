import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem } from '../api/client';
import { useConnections } from '../api/queries';
import type { Connection } from '../api/types';
import { accessText } from '../app/AccessFields';
import { usePageTitle, useParam } from '../app/location';
import { ActionsMenu, SearchBox } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { ago, capitalize, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { CheckResult, ConnectionForm } from './ConnectionForm';
import { shortDsn } from './dsn';
import { lastAnswerText, nameList } from './usage';

export function ConnectionsPage() {
  usePageTitle('Connections');
  const list = useConnections();
  const [editing, setEditing] = useState<Connection | 'new' | null>(null);
  const search = useSearch();
  const [text, setText] = useParam('search');
  const matches = (c: Connection) =>
    `${c.name} ${c.description ?? ''} ${c.driver}`.toLowerCase().includes(text.trim().toLowerCase());
  const [, navigate] = useLocation();
  useEffect(() => {
    if (new URLSearchParams(search).has('new')) {
      setEditing('new');
      navigate('/connections', { replace: true });
    }
  }, [search, navigate]);
  return (
    <>
      <header className="page-head">
        <h1>Connections</h1>
        <span className="sub hide-phone">
          Databases that runs can use. Passwords are stored encrypted and never shown again.
        </span>
        <div className="actions">
          <OperatorOnly>
            <button type="button" className="btn primary" onClick={() => setEditing('new')}>
              <Icon name="plus" /> New connection
            </button>
          </OperatorOnly>
        </div>
      </header>
      <div className="page narrow">
        <Load
          from={list}
          what="The connections could not be read."
          skeleton={
            <div className="panel">
              <SkeletonRows rows={4} />
            </div>
          }
          empty={(d) =>
            d.length === 0 && (
              <div className="panel">
                <Empty
                  icon="connections"
                  title="No connection yet"
                  actions={
                    <button type="button" className="btn primary" onClick={() => setEditing('new')}>
                      New connection
                    </button>
                  }
                >
                  A connection holds the address and credentials of a database. Templates refer to it by name.
                </Empty>
              </div>
            )
          }
        >
          {(d) => (
            <div className="stack">
              {(d.length > 5 || text) && (
                <div className="toolbar">
                  <SearchBox value={text} placeholder="Search connections" onChange={setText} />
                </div>
              )}
              {d.filter(matches).map((c) => (
                <Card key={c.connection_id} c={c} onEdit={() => setEditing(c)} />
              ))}
              {!d.some(matches) && (
                <div className="panel">
                  <Empty
                    icon="search"
                    title="No connection matches"
                    actions={
                      <button type="button" className="btn" onClick={() => setText('')}>
                        Clear the search
                      </button>
                    }
                  >
                    No connection contains “{text}”.
                  </Empty>
                </div>
              )}
            </div>
          )}
        </Load>
      </div>
      {editing && <ConnectionForm existing={editing === 'new' ? null : editing} onClose={() => setEditing(null)} />}
    </>
  );
}

function Card({ c, onEdit }: { c: Connection; onEdit: () => void }) {
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  const test = useMutation({
    mutationFn: () => api.post('/api/connections/{id}/test', { path: { id: c.connection_id } }),
    onSuccess: () => qc.invalidateQueries({ queryKey: ['connection-use', c.connection_id] }),
  });
  const remove = () =>
    ask({
      title: `Delete connection “${c.name}”?`,
      body:
        'This deletes its address and password. Templates that use it can no longer run. The ' +
        'database itself does not change.',
      verb: 'Delete connection',
      act: async () => {
        try {
          await api.remove('/api/connections/{id}', {
            path: { id: c.connection_id },
            query: { version: c.version },
          });
        } catch (err) {
          // Refetch: the connection may have changed, or may be in use now.
          if (asProblem(err).status === 409) await qc.invalidateQueries({ queryKey: ['connections'] });
          throw err;
        }
        await qc.invalidateQueries({ queryKey: ['connections'] });
        toast(`Connection “${c.name}” was deleted.`, 'ok');
      },
    });
  return (
    <section className="panel card" aria-label={c.name}>
      <div className="card-head">
        <Icon name="connections" size={20} />
        <div className="grow">
          <div className="row">
            <h2>{c.name}</h2>
            <span className="chip">{c.driver}</span>
            {c.production && (
              <span className="chip bad" title="To start a run on this connection, you type its name.">
                production
              </span>
            )}
            {c.builtin && (
              <span className="chip" title="Part of the server. It cannot be changed or deleted.">
                built in
              </span>
            )}
          </div>
          <code className="muted dsn">{shortDsn(c.dsn)}</code>
          {(c.access.owner || c.access.restricted) && <p className="muted">{capitalize(accessText(c.access))}.</p>}
          {c.description && <p className="muted">{c.description}</p>}
          <ConnectionUsage c={c} />
        </div>
        <div className="row nowrap">
          <OperatorOnly>
            <button type="button" className="btn" onClick={() => test.mutate()} disabled={test.isPending}>
              {test.isPending ? 'Testing…' : 'Test'}
            </button>
          </OperatorOnly>
          {!c.builtin && (
            <ActionsMenu
              label={`Actions for ${c.name}`}
              actions={[
                { label: 'Edit', icon: 'edit', needs: 'operator', act: onEdit },
                null,
                { label: 'Delete connection', icon: 'trash', danger: true, needs: 'operator', act: remove },
              ]}
            />
          )}
        </div>
      </div>
      {test.data && <CheckResult check={test.data} />}
      {test.error && <ProblemNotice error={test.error} />}
      {dialog}
    </section>
  );
}

/** ConnectionUsage shows what uses a connection and when its database last answered. */
function ConnectionUsage({ c }: { c: Connection }) {
  const use = useQuery({
    queryKey: ['connection-use', c.connection_id, c.version],
    queryFn: ({ signal }) => api.get('/api/connections/{id}/use', { path: { id: c.connection_id }, signal }),
  });
  const u = use.data;
  if (!u) return use.error ? <p className="muted">Its uses could not be loaded.</p> : <p className="muted">&nbsp;</p>;
  return (
    <>
      <p className="muted used-by">
        {u.templates.length === 0 && u.runs === 0 && u.sinks.length === 0 && !u.results && 'Not used yet.'}
        {u.results && 'Servers export the results of all users to it, so only admins can change its address. '}
        {u.templates.length > 0 && 'Used by '}
        {u.templates.slice(0, maxTemplatesListed).map((t, i) => (
          <span key={t.template_id}>
            {i > 0 && ', '}
            <Link href={`/templates/${encodeURIComponent(t.template_id)}`} className="wrap-anywhere">
              {t.name}
            </Link>
          </span>
        ))}
        {u.templates.length > maxTemplatesListed && ` and ${u.templates.length - maxTemplatesListed} more templates`}
        {u.templates.length > 0 && '. '}
        {u.sinks.length > 0 && (
          <>
            <Link href="/streams?show=sinks">{u.sinks.length === 1 ? 'The sink' : 'The sinks'}</Link>{' '}
            <span className="wrap-anywhere">{nameList(u.sinks, maxTemplatesListed)}</span>{' '}
            {u.sinks.length === 1 ? 'writes' : 'write'} to it.{' '}
          </>
        )}
        {u.runs > 0 && u.last_run && (
          <>
            {u.runs === 1 ? 'One run' : `${u.runs} runs`}, the last{' '}
            <Link href={`/runs/${encodeURIComponent(u.last_run.run_id)}`}>{ago(u.last_run.created_at)}</Link>.
          </>
        )}
      </p>
      <p className="muted" title={u.worked ? dateTime(u.worked.at) : undefined}>
        {lastAnswerText(u.worked)}
      </p>
    </>
  );
}

const maxTemplatesListed = 5;
