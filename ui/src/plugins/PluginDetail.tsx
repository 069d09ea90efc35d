import { useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { api } from '../api/client';
import { useMe, usePlugin } from '../api/queries';
import type { Plugin, PluginStatement, PluginUse } from '../api/types';
import { CopyButton, Term } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { ago, bytes, capitalize, dateTime, humanize, plain } from '../design/format';
import { Icon, Mark } from '../design/icons';
import { Empty, Failed, Notice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { dialectName, ownDDL } from './compare';
import { Parameters } from './Parameters';
import { refOf, titleOf } from './refs';
import { Versions } from './Versions';

const marks = { enabled: ['ok', 'dot'], disabled: ['', 'ring'], damaged: ['bad', 'cross'] } as const;

export function StateBadge({ p }: { p: Plugin }) {
  const [tone, shape] = marks[p.state];
  return (
    <span className={`badge ${tone}`}>
      <Mark shape={shape} />
      {capitalize(p.state)}
    </span>
  );
}

/** PluginDetail shows what a plugin declares, and its actions. */
export function PluginDetail({ p: row, versions }: { p: Plugin; versions: Plugin[] }) {
  const detail = usePlugin(row.sha256);
  // The list has all but the statements and is available at once.
  const p = { ...row, manifest: { ...row.manifest, statements: detail.data?.manifest.statements } };
  const m = p.manifest;
  return (
    <div className="stack">
      <section className="panel pad stack" aria-label={refOf(p)}>
        <div className="row">
          <h2>{titleOf(p)}</h2>
          <StateBadge p={p} />
          <span className="chip">{p.kind}</span>
          <OriginChip p={p} />
          <Actions p={p} />
        </div>
        {p.problem && <Notice tone="bad">{p.problem} Upload the same file again to mend it, or delete it.</Notice>}
        {m.description && <p className="muted">{m.description}</p>}
        <Facts p={p} />
      </section>
      {p.kind === 'workload' && (
        <section className="panel">
          <header>
            <h2 className="h3">Parameters</h2>
            <span className="muted note">the form that a template shows; try it</span>
          </header>
          <div className="body">
            <Parameters schema={m.parameters ?? {}} />
          </div>
        </section>
      )}
      <section className="panel">
        <header>
          <h2 className="h3">
            <Term tip="A run executes only the statements that are fixed before its load begins.">Statements</Term>
          </h2>
        </header>
        {detail.error ? (
          <Failed what="The statements could not be read." error={detail.error} retry={() => detail.refetch()} />
        ) : detail.data === undefined ? (
          <SkeletonRows rows={3} />
        ) : (
          <Statements p={p} list={m.statements ?? []} />
        )}
      </section>
      {m.tables && m.tables.length > 0 && <Tables tables={m.tables} />}
      {versions.length > 1 && detail.data && <Versions p={p} versions={versions} />}
      <Sandbox p={p} />
    </div>
  );
}

function OriginChip({ p }: { p: Plugin }) {
  if (p.origin === 'uploaded') return null;
  return p.origin === 'bundled' ? (
    <span className="chip" title="Bundled with Loadstone.">
      bundled
    </span>
  ) : (
    <span className="chip" title="Loaded with --plugin for the lifetime of this server process.">
      command line
    </span>
  );
}

function Facts({ p }: { p: Plugin }) {
  const m = p.manifest;
  return (
    <dl className="defs">
      <dt>Name and version</dt>
      <dd>
        <code>{refOf(p)}</code>
        {m.author && <span className="muted"> by {m.author}</span>}
      </dd>
      {p.origin === 'uploaded' && (
        <>
          <dt>Uploaded</dt>
          <dd title={dateTime(p.uploaded_at)}>
            {ago(p.uploaded_at)}
            {p.uploaded_by && ` by ${p.uploaded_by}`}
          </dd>
          <dt>Last enabled</dt>
          <dd title={p.enabled_at ? dateTime(p.enabled_at) : undefined}>
            {p.enabled_at ? `${ago(p.enabled_at)}${p.enabled_by ? ` by ${p.enabled_by}` : ''}` : 'never'}
          </dd>
        </>
      )}
      <dt>Used by</dt>
      <dd>
        <Uses p={p} />
      </dd>
      <dt>SHA-256</dt>
      <dd className="row">
        <code className="hash">{p.sha256}</code>
        <CopyButton text={p.sha256} label="Copy the SHA-256" />
      </dd>
      <dt>Size</dt>
      <dd>{plain(bytes(p.size_bytes))}</dd>
      <dt>
        <Term tip="The version of the contract between Loadstone and plugins.">ABI</Term>
      </dt>
      <dd>{p.abi}</dd>
      {m.driver && (
        <>
          <dt>Driver</dt>
          <dd>
            {m.driver}
            {m.dialect ? ` · dialect ${m.dialect}` : ''}
          </dd>
        </>
      )}
      {m.kinds && m.kinds.length > 0 && (
        <>
          <dt>Operation kinds</dt>
          <dd>{m.kinds.map((k) => capitalize(humanize(k))).join(', ')}</dd>
        </>
      )}
      {m.supports && (
        <>
          <dt>Table type</dt>
          <dd>
            {[
              m.supports.read_only ? 'read only under load' : 'reads and writes',
              m.supports.enforced_keys ? 'keys enforced' : 'keys not enforced',
              m.supports.indexes && 'secondary indexes',
              m.supports.clustering && 'clustering keys',
              m.supports.transactions && 'transactions',
              m.supports.generates_rows && 'generates sample rows',
            ]
              .filter(Boolean)
              .join(', ')}
          </dd>
        </>
      )}
      {m.kind === 'adapter' && (
        <>
          <dt>May send</dt>
          <dd>
            {m.sends ? (
              <details>
                <summary>
                  {sent(m.sends).reduce((n, [, forms]) => n + forms.length, 0)} forms of SQL, and nothing else
                </summary>
                {sent(m.sends).map(([what, forms]) => (
                  <div key={what} className="dialect">
                    <span className="muted">{what}</span>
                    <pre className="code">{forms.join('\n')}</pre>
                  </div>
                ))}
              </details>
            ) : (
              'read-only queries, DDL of the run’s own tables, and session settings'
            )}
          </dd>
        </>
      )}
    </dl>
  );
}

/** sent lists the statements an adapter may send, by purpose. */
const sent = (s: NonNullable<Plugin['manifest']['sends']>): [string, string[]][] =>
  (
    [
      ['Read-only queries', s.query ?? []],
      ['DDL', s.ddl ?? []],
      ['Session settings', s.session ?? []],
    ] as [string, string[]][]
  ).filter(([, forms]) => forms.length > 0);

function Uses({ p }: { p: Plugin }) {
  const templates = p.templates ?? [];
  const runs = p.live_runs ?? [];
  if (templates.length + runs.length === 0) return <span className="muted">no template</span>;
  const links = (list: PluginUse[], base: string) =>
    list.map((u) => (
      <Link key={u.id} href={`${base}/${encodeURIComponent(u.id)}`}>
        {u.name}
      </Link>
    ));
  return (
    <span className="row uses">
      {links(templates, '/templates')}
      {runs.length > 0 && <span className="muted">and live runs:</span>}
      {links(runs, '/runs')}
    </span>
  );
}

function Actions({ p }: { p: Plugin }) {
  const me = useMe();
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();
  if (p.origin !== 'uploaded') return null;
  if (me.data && me.data.role !== 'admin')
    return <span className="muted detail-actions">{p.enabled ? '' : 'Only an admin can enable it.'}</span>;
  const path = { name: p.sha256 };
  const refresh = () => qc.invalidateQueries({ queryKey: ['plugins'] });
  const act = (verb: 'enable' | 'disable') => async () => {
    await api.post(`/api/plugins/{name}/${verb}`, { path });
    await refresh();
    toast(`${refOf(p)} is ${verb}d.`, 'ok');
  };
  const enable = () =>
    ask({
      title: `Enable ${refOf(p)}?`,
      body:
        'All operators of this server can then use the plugin. A run executes the statements of the plugin ' +
        'on the databases of its template. Review the declarations on this page first.',
      verb: 'Enable plugin',
      danger: false,
      keep: 'Not yet',
      act: act('enable'),
    });
  const disable = () =>
    ask({
      title: `Disable ${refOf(p)}?`,
      body:
        'New runs cannot use the plugin. Live runs continue, and its file is ' +
        `kept.${p.templates?.length ? ' Templates that use it cannot run until you enable it again.' : ''}`,
      verb: 'Disable plugin',
      keep: 'Keep enabled',
      act: act('disable'),
    });
  const remove = () =>
    ask({
      title: `Delete ${refOf(p)}?`,
      body:
        'This deletes its file from the server. Finished runs keep their figures and the hash of the plugin. ' +
        'To restore the plugin, upload it again.',
      verb: 'Delete plugin',
      act: async () => {
        await api.remove('/api/plugins/{name}', { path });
        await refresh();
        toast(`${refOf(p)} was deleted.`, 'ok');
      },
    });
  return (
    <div className="row detail-actions">
      {p.state === 'enabled' && (
        <Link href={`/templates/new?${p.kind}=${encodeURIComponent(p.name)}`} className="btn">
          <Icon name="plus" /> New template with this
        </Link>
      )}
      {p.enabled ? (
        <button type="button" className="btn" onClick={disable}>
          Disable
        </button>
      ) : (
        <button type="button" className="btn primary" onClick={enable} disabled={p.state === 'damaged'}>
          Enable
        </button>
      )}
      <button type="button" className="btn danger" onClick={remove}>
        <Icon name="trash" /> Delete
      </button>
      {dialog}
    </div>
  );
}

function Statements({ p, list }: { p: Plugin; list: PluginStatement[] }) {
  if (list.length === 0)
    return (
      <Empty tight title={p.kind === 'adapter' ? 'SQL of the adapter' : 'No fixed statements'}>
        {p.kind === 'adapter'
          ? 'The adapter generates the SQL of its table type when a run prepares. The preflight lists the statements.'
          : 'The statements depend on the parameters and on the table. The preflight lists them.'}
      </Empty>
    );
  return (
    <div className="body stack">
      {p.kind === 'workload' && (p.exports ?? []).includes('ls_call') && (
        <span className="muted">
          These are what it declares. It can give others for other parameters or tables; preflight shows the exact list.
        </span>
      )}
      {list.map((s) => (
        <figure key={s.id} className="statement">
          <figcaption className="row">
            <code>{s.id}</code>
            <span className="muted">
              {capitalize(humanize(s.kind))}
              {s.table && ` on ${s.table}`}
            </span>
            {s.writes && <span className="badge warn">writes</span>}
          </figcaption>
          {(s.binds?.length ?? 0) > 0 && (
            <span className="muted binds">
              binds <code>{s.binds!.map((b) => `${b.name} ${b.type}`).join(', ')}</code>
            </span>
          )}
          {Object.entries(s.sql ?? {}).map(([dialect, sql]) => (
            <div key={dialect} className="dialect">
              <span className="muted">{dialectName(dialect)}</span>
              <pre className="code">{sql}</pre>
            </div>
          ))}
          {Object.keys(s.sql ?? {}).length === 0 && (
            <span className="muted binds">The adapter of the table type generates the SQL.</span>
          )}
        </figure>
      ))}
    </div>
  );
}

function Tables({ tables }: { tables: NonNullable<Plugin['manifest']['tables']> }) {
  return (
    <section className="panel">
      <header>
        <h2 className="h3">Tables</h2>
      </header>
      <div className="body stack tightly">
        {tables.map((t) => (
          <div key={t.name} className="declared-table">
            <code>
              {t.name} ({(t.columns ?? []).map((c) => `${c.name} ${c.type}`).join(', ')})
            </code>
            <span className="muted"> key {(t.key ?? []).join(', ') || 'none'}</span>
            {ownDDL(t).map(([what, sql]) => (
              <div key={what} className="dialect">
                <span className="muted">{what}</span>
                <pre className="code">{sql}</pre>
              </div>
            ))}
          </div>
        ))}
      </div>
    </section>
  );
}

function Sandbox({ p }: { p: Plugin }) {
  return (
    <section className="panel">
      <header>
        <h2 className="h3">Sandbox</h2>
        <span className="muted note">no file, no network, no clock; 32 MB of memory; its work per call is metered</span>
      </header>
      <div className="body stack">
        <Names label="Imports" tip="Host functions that the module may call." names={p.imports ?? []} />
        <Names label="Exports" tip="Functions of the module that the host calls." names={p.exports ?? []} />
      </div>
    </section>
  );
}

function Names({ label, tip, names }: { label: string; tip: string; names: string[] }) {
  return (
    <div className="field">
      <span className="label">
        <Term tip={tip}>{label}</Term>
      </span>
      <div className="row">
        {names.length === 0 && <span className="muted">none</span>}
        {names.map((n) => (
          <span key={n} className="chip mono">
            {n}
          </span>
        ))}
      </div>
    </div>
  );
}
