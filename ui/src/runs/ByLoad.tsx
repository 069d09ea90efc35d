import type { RunDetail, Summary } from '../api/types';
import { count, elapsed, latency, plain, rate } from '../design/format';
import { Num } from '../design/Num';

/** ByLoad splits the measurement by the load that users set; nothing when it never changed. */
export function ByLoad({ run, s }: { run: RunDetail; s: Summary }) {
  const parts = s.by_load ?? [];
  if (parts.length === 0) return null;
  const second = (at: string | null) => elapsed((Date.parse(at ?? '') - Date.parse(run.start_time ?? '')) / 1000);
  const open = run.scenario_config.workload.load_mode === 'QPS';
  return (
    <section className="panel table-wrap" tabIndex={0} aria-label="Figures by load, scrollable">
      <header>
        <h2 className="h3">By load</h2>
        <span className="muted note">
          The figures above combine all loads. Percentiles in this table come from histograms, exact to 0.54 %.
        </span>
      </header>
      <table className="table dense">
        <thead>
          <tr>
            <th scope="col" className="num">
              From
            </th>
            <th scope="col" className="num">
              To
            </th>
            <th scope="col">Load</th>
            <th scope="col" className="num">
              Operations
            </th>
            <th scope="col" className="num">
              Throughput
            </th>
            <th scope="col" className="num">
              P50
            </th>
            <th scope="col" className="num">
              P95
            </th>
            <th scope="col" className="num">
              P99
            </th>
            <th scope="col" className="num">
              Errors
            </th>
          </tr>
        </thead>
        <tbody>
          {parts.map((p) => (
            <tr key={p.from}>
              <td className="num">{second(p.from)}</td>
              <td className="num">{second(p.to)}</td>
              <td>{open ? plain(rate(p.load)) : `${p.load} connection${p.load === 1 ? '' : 's'}`}</td>
              <td className="num">
                <Num q={count(p.operations)} />
              </td>
              <td className="num">
                <Num q={rate(p.qps)} />
              </td>
              <td className="num">
                <Num q={latency(p.p50_ms)} />
              </td>
              <td className="num">
                <Num q={latency(p.p95_ms)} />
              </td>
              <td className="num">
                <Num q={latency(p.p99_ms)} />
              </td>
              <td className="num">
                <Num q={count(p.errors)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
