import { useState } from 'react';
import { usePlugin } from '../api/queries';
import type { Plugin } from '../api/types';
import { Empty, Load, SkeletonRows } from '../design/States';
import { type Difference, differences } from './compare';
import { refOf } from './refs';

/** Versions compares a plugin's versions, highest first. */
export function Versions({ p, versions }: { p: Plugin; versions: Plugin[] }) {
  const at = versions.findIndex((v) => v.sha256 === p.sha256);
  const others = versions.toSpliced(at, 1);
  // By default compare with the previous version.
  const [chosen, choose] = useState((versions[at + 1] ?? others[0]!).sha256);
  const other = usePlugin(chosen);
  const isOlder = versions.findIndex((v) => v.sha256 === chosen) > at;
  return (
    <section className="panel">
      <header>
        <h2 className="h3">Compared with another version</h2>
        <select
          className="input auto"
          aria-label="Version to compare with"
          value={chosen}
          onChange={(e) => choose(e.target.value)}
        >
          {others.map((o) => (
            <option key={o.sha256} value={o.sha256}>
              {refOf(o)}, {o.state}
            </option>
          ))}
        </select>
      </header>
      <div className="body">
        <Load from={other} what="The other version could not be read." skeleton={<SkeletonRows rows={3} />}>
          {(o) => (isOlder ? <Differences from={o} to={p} /> : <Differences from={p} to={o} />)}
        </Load>
      </div>
    </section>
  );
}

const sign: Record<Difference['change'], string> = { added: '+', removed: '−', changed: '±' };

function Differences({ from, to }: { from: Plugin; to: Plugin }) {
  const list = differences(from, to);
  if (list.length === 0)
    return (
      <Empty tight title="No differences">
        Parameters, statements, tables and imports are equal; the code may differ.
      </Empty>
    );
  return (
    <div className="stack tightly">
      <p className="muted">
        From {from.version} to {to.version}:
      </p>
      {list.map((d) => (
        <div key={`${d.what} ${d.name}`} className={`version-diff ${d.change}`}>
          <div>
            <b aria-hidden="true">{sign[d.change]}</b> {d.what} <code>{d.name}</code> {d.change}
          </div>
          {d.before && <pre className="code">{d.before}</pre>}
          {d.after && <pre className="code">{d.after}</pre>}
        </div>
      ))}
    </div>
  );
}
