import { bytes, count, duration, percent, plain } from '../design/format';
import type { Stats } from './promqlClient';

interface Row {
  expr: string;
  function: string;
  nodes: Set<string>;
  pieces: number;
  again: number;
  segments: number;
  hits: number;
  disk: number;
  fetched: number;
  fetchedBytes: number;
  series: number;
  samples: number;
  bytes: number;
  slowest: number;
}

const empty = () => ({
  nodes: new Set<string>(),
  pieces: 0,
  again: 0,
  segments: 0,
  hits: 0,
  disk: 0,
  fetched: 0,
  fetchedBytes: 0,
  series: 0,
  samples: 0,
  bytes: 0,
  slowest: 0,
});

/** rowsOf sums what each leaf took over all requests; the requests of a query have the same leaves, but for the run. */
export function rowsOf(stats: Pick<Stats, 'leaves'>[]): Row[] {
  const rows: Row[] = [];
  for (const s of stats)
    s.leaves.forEach((leaf, i) => {
      const row = (rows[i] ??= { expr: leaf.expr, function: leaf.function, ...empty() });
      for (const p of leaf.pieces) {
        row.nodes.add(p.node_id);
        row.pieces++;
        row.again += p.attempt > 1 ? 1 : 0;
        row.segments += p.segments;
        row.hits += p.hits;
        row.disk += p.disk_hits;
        row.fetched += p.fetched;
        row.fetchedBytes += p.fetched_bytes;
        row.series += p.series;
        row.samples += p.samples;
        row.bytes += p.bytes;
        row.slowest = Math.max(row.slowest, p.took_ms);
      }
    });
  return rows;
}

const stages = [
  ['plan_ms', 'parsing and planning'],
  ['segments_ms', 'finding the segments'],
  ['leaves_ms', 'evaluating the leaves'],
  ['merge_ms', 'merging and final evaluation'],
] as const;

/** Explain shows how a query was executed: stages, leaves and their cost. */
export function Explain({ stats, tookMs }: { stats: Stats[]; tookMs: number }) {
  const rows = rowsOf(stats);
  const sum = (of: (r: Row) => number) => rows.reduce((n, r) => n + of(r), 0);
  const nodes = new Set(rows.flatMap((r) => [...r.nodes]));
  const slowest = stats.reduce((a, b) => (b.timings.execTotalTime > a.timings.execTotalTime ? b : a));
  const [segments, hits, again] = [sum((r) => r.segments), sum((r) => r.hits), sum((r) => r.again)];
  return (
    <div className="body stack explain">
      <p className="note">
        The expression was taken apart into {rows.length} {rows.length === 1 ? 'leaf' : 'leaves'}, evaluated on{' '}
        {nodes.size} {nodes.size === 1 ? 'node' : 'nodes'}; the rest was evaluated over what they came to.{' '}
        {segments > 0 && (
          <>
            {plain(percent((hits / segments) * 100))} of {plain(count(segments))} segments were in memory.{' '}
          </>
        )}
        {again > 0 && <>{again} pieces of work were reassigned to another node. </>}
        The server took {duration(slowest.timings.execTotalTime)}
        {stats.length > 1 && ` for the slowest of ${stats.length} queries`}; including the network{' '}
        {duration(tookMs / 1000)}.
      </p>
      <p className="note muted">
        {stages.map(([key, what]) => `${what} ${duration(slowest.stages[key] / 1000)}`).join(' · ')} · the first piece
        was there after {duration(slowest.stages.first_piece_ms / 1000)}
        {stats.length === 1 && (
          <>
            {' '}
            · query <code>{slowest.query_id}</code>
          </>
        )}
      </p>
      <div className="table-wrap" tabIndex={0} role="group" aria-label="The leaves, scrollable">
        <table className="table">
          <thead>
            <tr>
              <th>Leaf</th>
              <th>On a node</th>
              <th className="num">Nodes</th>
              <th className="num">Pieces</th>
              <th className="num">Segments</th>
              <th className="num">In memory</th>
              <th className="num">On disk</th>
              <th className="num">Brought</th>
              <th className="num">Series</th>
              <th className="num">Samples</th>
              <th className="num">Answer</th>
              <th className="num">Slowest piece</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((r, i) => (
              <tr key={i}>
                <td>
                  <code>{r.expr}</code>
                </td>
                <td>{r.function ? <code>{r.function}()</code> : 'read'}</td>
                <td className="num" title={[...r.nodes].join('\n')}>
                  {r.nodes.size}
                </td>
                <td className="num">{plain(count(r.pieces))}</td>
                <td className="num">{plain(count(r.segments))}</td>
                <td className="num">{plain(count(r.hits))}</td>
                <td className="num">{plain(count(r.disk))}</td>
                <td className="num">{r.fetched ? `${r.fetched}, ${plain(bytes(r.fetchedBytes))}` : '0'}</td>
                <td className="num">{plain(count(r.series))}</td>
                <td className="num">{plain(count(r.samples))}</td>
                <td className="num">{plain(bytes(r.bytes))}</td>
                <td className="num">{duration(r.slowest / 1000)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
