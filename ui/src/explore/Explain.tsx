import { bytes, count, duration, percent, plain } from '../design/format';
import type { Leaf, Stats } from './ask';

interface Row {
  expr: string;
  pieces: number;
  segments: number;
  hits: number;
  series: number;
  samples: number;
  bytes: number;
  slowest: number;
}

/** What each leaf took over all requests; requests of one query have the same leaves, but for the run. */
export function rowsOf(stats: Stats[]): Row[] {
  const rows: Row[] = [];
  for (const s of stats)
    s.leaves.forEach((leaf: Leaf, i) => {
      const row = (rows[i] ??= {
        expr: leaf.expr,
        pieces: 0,
        segments: 0,
        hits: 0,
        series: 0,
        samples: 0,
        bytes: 0,
        slowest: 0,
      });
      for (const p of leaf.pieces) {
        row.pieces++;
        row.segments += p.segments;
        row.hits += p.hits;
        row.series += p.series;
        row.samples += p.samples;
        row.bytes += p.bytes;
        row.slowest = Math.max(row.slowest, p.took_ms);
      }
    });
  return rows;
}

/** How the query was answered: its leaves, and what evaluating each beside its series took. */
export function Explain({ stats, tookMs }: { stats: Stats[]; tookMs: number }) {
  const rows = rowsOf(stats);
  const sum = (of: (r: Row) => number) => rows.reduce((n, r) => n + of(r), 0);
  const server = stats.reduce((n, s) => Math.max(n, s.timings.execTotalTime), 0);
  const [segments, hits] = [sum((r) => r.segments), sum((r) => r.hits)];
  return (
    <div className="body stack explain">
      <p className="note">
        The expression was taken apart into {rows.length} {rows.length === 1 ? 'leaf' : 'leaves'}, which were evaluated
        beside their series; the rest was evaluated over what they came to.{' '}
        {segments > 0 && (
          <>
            {plain(percent((hits / segments) * 100))} of {plain(count(segments))} segments were in memory.{' '}
          </>
        )}
        The server took {duration(server)}
        {stats.length > 1 && ` for the slowest of ${stats.length} queries`}; with the way here it was{' '}
        {duration(tookMs / 1000)}.
      </p>
      <div className="table-wrap">
        <table className="table">
          <thead>
            <tr>
              <th>Leaf</th>
              <th className="num">Pieces of work</th>
              <th className="num">Segments</th>
              <th className="num">In memory</th>
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
                <td className="num">{plain(count(r.pieces))}</td>
                <td className="num">{plain(count(r.segments))}</td>
                <td className="num">{plain(count(r.hits))}</td>
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
