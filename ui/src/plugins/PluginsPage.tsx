import { useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { usePlugins } from '../api/queries';
import type { Plugin } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { Term } from '../design/Controls';
import { ago, bytes, plain } from '../design/format';
import { Empty, Load, SkeletonRows } from '../design/States';
import { terms } from '../design/terms';
import { PluginDetail, StateBadge } from './PluginDetail';
import { UploadZone, useUpload } from './PluginUpload';
import { findPlugin, type Kind, refOf, titleOf } from './refs';

const kinds: { kind: Kind; title: string; tip: string }[] = [
  { kind: 'workload', title: 'Workloads', tip: terms.workload },
  { kind: 'adapter', title: 'Adapters', tip: terms.adapter },
];

export function PluginsPage() {
  usePageTitle('Plugins');
  const qc = useQueryClient();
  const plugins = usePlugins();
  const [selected, setSelected] = useParam('plugin');
  const detail = useRef<HTMLDivElement>(null);
  const select = (ref: string) => {
    setSelected(ref);
    // On a phone the plugin is below the list.
    if (matchMedia('(max-width: 820px)').matches) requestAnimationFrame(() => detail.current?.scrollIntoView());
  };
  const upload = useUpload((p) => {
    // The uploaded plugin is shown at once; the list follows.
    qc.setQueryData<Plugin[]>(['plugins'], (d) => (d ? [...d.filter((o) => o.sha256 !== p.sha256), p] : d));
    void qc.invalidateQueries({ queryKey: ['plugins'] });
    setSelected(refOf(p));
  });
  return (
    <>
      <header className="page-head">
        <h1>Plugins</h1>
        <span className="sub hide-phone">
          WebAssembly modules: workloads define operations, adapters define table types.
        </span>
      </header>
      <UploadZone upload={upload}>
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
            const shown = findPlugin(d, null, selected) ?? d[0]!;
            const versions = d.filter((p) => p.kind === shown.kind && p.name === shown.name);
            return (
              <div className="split plugins">
                <nav className="panel picker" aria-label="Installed plugins">
                  {kinds.map(({ kind, title, tip }) => (
                    <Group
                      key={kind}
                      title={title}
                      tip={tip}
                      list={d.filter((p) => p.kind === kind)}
                      shown={shown}
                      select={select}
                    />
                  ))}
                </nav>
                <div ref={detail} className="detail">
                  <PluginDetail key={shown.sha256} p={shown} versions={versions} />
                </div>
              </div>
            );
          }}
        </Load>
      </UploadZone>
    </>
  );
}

function Group(props: { title: string; tip: string; list: Plugin[]; shown: Plugin; select: (ref: string) => void }) {
  if (props.list.length === 0) return null;
  return (
    <div>
      <h2 className="h3">
        <Term tip={props.tip}>{props.title}</Term>
      </h2>
      {props.list.map((p) => (
        <button
          key={p.sha256}
          type="button"
          data-row
          className={`pick${p === props.shown ? ' on' : ''}`}
          aria-pressed={p === props.shown}
          onClick={() => props.select(refOf(p))}
        >
          <span className="row nowrap">
            <strong className="grow clip">{titleOf(p)}</strong>
            {p.state !== 'enabled' && <StateBadge p={p} />}
          </span>
          <span className="muted">
            {p.name} {p.version} · {plain(bytes(p.size_bytes))}
          </span>
          <span className="muted">{pluginSummary(p)}</span>
        </button>
      ))}
    </div>
  );
}

/** pluginSummary says in one line where a plugin comes from and who uses it. */
function pluginSummary(p: Plugin): string {
  const n = p.templates?.length ?? 0;
  const origin =
    p.origin === 'bundled'
      ? 'bundled'
      : p.origin === 'command_line'
        ? 'command line'
        : `${p.uploaded_by ? `by ${p.uploaded_by} ` : ''}${ago(p.uploaded_at)}`;
  return [origin, n > 0 && `used by ${n} ${n === 1 ? 'template' : 'templates'}`].filter(Boolean).join(' · ');
}
