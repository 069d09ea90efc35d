import { usePlugins } from '../api/queries';
import type { Plugin } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { CopyButton, Term } from '../design/Controls';
import { bytes, plain, sentence, words } from '../design/format';
import { Empty, Load, SkeletonRows } from '../design/States';
import { terms } from '../design/terms';
import { describe, type Schema } from '../templates/schema';

export function PluginsPage() {
  usePageTitle('Plugins');
  const plugins = usePlugins();
  const [selected, select] = useParam('plugin');
  return (
    <>
      <header className="page-head">
        <h1>Plugins</h1>
        <span className="sub hide-phone">
          WebAssembly modules that decide what is executed, and on which kind of table.
        </span>
      </header>
      <div className="page">
        <Load
          from={plugins}
          what="The plugins could not be read."
          skeleton={
            <div className="panel">
              <SkeletonRows rows={4} />
            </div>
          }
          empty={(d) =>
            d.length === 0 && (
              <div className="panel">
                <Empty icon="plugins" title="No plugin is installed">
                  The bundled ones are part of the binary; a server without them was built without “make plugins”.
                </Empty>
              </div>
            )
          }
        >
          {(d) => {
            const shown = d.find((p) => p.name === selected) ?? d[0]!;
            return (
              <div className="split">
                <div className="panel picker">
                  {(['workload', 'adapter'] as const).map((kind) => (
                    <div key={kind}>
                      <h3>
                        <Term tip={kind === 'workload' ? terms.workload : terms.adapter}>
                          {kind === 'workload' ? 'Workloads' : 'Adapters'}
                        </Term>
                      </h3>
                      {d
                        .filter((p) => p.kind === kind)
                        .map((p) => (
                          <button
                            key={p.sha256}
                            type="button"
                            data-row
                            className={`pick${p === shown ? ' on' : ''}`}
                            aria-pressed={p === shown}
                            onClick={() => select(p.name)}
                          >
                            <strong>{p.manifest.title || p.name}</strong>
                            <span className="muted">
                              {p.name} {p.version}
                            </span>
                          </button>
                        ))}
                    </div>
                  ))}
                </div>
                <PluginDetail key={shown.sha256} p={shown} />
              </div>
            );
          }}
        </Load>
      </div>
    </>
  );
}

function PluginDetail({ p }: { p: Plugin }) {
  const m = p.manifest;
  const params = describe((m.parameters ?? {}) as Schema);
  return (
    <div className="stack">
      <section className="panel pad stack">
        <div className="row">
          <h2>{m.title || p.name}</h2>
          <span className="chip">{p.kind}</span>
          {p.bundled && <span className="chip">bundled</span>}
          <span className={`badge ${p.enabled ? 'ok' : ''}`}>{p.enabled ? 'Enabled' : 'Disabled'}</span>
        </div>
        {m.description && <p className="muted">{m.description}</p>}
        <dl className="defs">
          <dt>Name and version</dt>
          <dd>
            <code>
              {p.name}@{p.version}
            </code>
            {m.author && <span className="muted"> by {m.author}</span>}
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
              <dd>{m.kinds.map((k) => sentence(words(k))).join(', ')}</dd>
            </>
          )}
        </dl>
      </section>
      <section className="panel">
        <header>
          <h3>Parameters</h3>
        </header>
        {params.length === 0 ? (
          <Empty tight title="It takes no parameters">
            The workload.params of a template stay empty.
          </Empty>
        ) : (
          <div className="table-wrap">
            <table className="table">
              <thead>
                <tr>
                  <th>Parameter</th>
                  <th>Type</th>
                  <th>Default</th>
                  <th>What it does</th>
                </tr>
              </thead>
              <tbody>
                {params.map((f) => (
                  <tr key={f.path}>
                    <td>
                      <code>{f.path}</code>
                    </td>
                    <td className="muted">{f.type}</td>
                    <td>
                      <code>{f.fallback}</code>
                    </td>
                    <td className="message">{f.description}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {m.tables && m.tables.length > 0 && (
        <section className="panel">
          <header>
            <h3>Tables</h3>
          </header>
          <div className="body stack tightly">
            {m.tables.map((t) => (
              <div key={t.name}>
                <code>
                  {t.name} ({t.columns.map((c) => `${c.name} ${c.type}`).join(', ')})
                </code>
                <span className="muted"> key {t.key.join(', ')}</span>
              </div>
            ))}
          </div>
        </section>
      )}
      {m.statements && m.statements.length > 0 && (
        <section className="panel">
          <header>
            <h3>Statements</h3>
          </header>
          <div className="body stack tightly">
            {m.statements.map((s) => (
              <div key={s.id} className="stack tightly">
                <div className="row">
                  <code>{s.id}</code> <span className="muted">{sentence(words(s.kind))}</span>
                </div>
                {s.sql && <pre className="code">{Object.values(s.sql)[0]}</pre>}
              </div>
            ))}
          </div>
        </section>
      )}
      <section className="panel">
        <header>
          <h3>
            <Term tip="All that the module may call in its host; it has no file system, network or clock of its own.">
              Imports
            </Term>
          </h3>
          <span className="muted note">{(p.imports ?? []).length}</span>
        </header>
        <div className="body row">
          {(p.imports ?? []).length === 0 && <span className="muted">none</span>}
          {(p.imports ?? []).map((i) => (
            <span key={i} className="chip mono">
              {i}
            </span>
          ))}
        </div>
      </section>
      <section className="panel">
        <header>
          <h3>Exports</h3>
        </header>
        <div className="body row">
          {(p.exports ?? []).map((i) => (
            <span key={i} className="chip mono">
              {i}
            </span>
          ))}
        </div>
      </section>
      <p className="muted">The statements that a run may execute are fixed before its load begins, and shown on its page.</p>
    </div>
  );
}
