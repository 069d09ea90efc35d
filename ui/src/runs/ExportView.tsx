import type { ReactNode } from 'react';
import { useArtifacts } from '../api/queries';
import type { RunDetail, Summary } from '../api/types';
import { csv, fileName, save } from '../charts/export';
import { Term } from '../design/Controls';
import { bytes, count, duration, exact, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Empty } from '../design/States';
import { terms } from '../design/terms';
import { reportUrl, ShareLinks } from './ShareLinks';
import { SnowflakeExport } from './SnowflakeExport';
import { type Columns, names, resolution } from './series';

function Offer(props: { title: string; what: ReactNode; action: ReactNode }) {
  return (
    <div className="offer">
      <div className="grow">
        <h2 className="h3">{props.title}</h2>
        <p className="muted">{props.what}</p>
      </div>
      {props.action}
    </div>
  );
}

export function ExportView({ run, s, c }: { run: RunDetail; s: Summary; c: Columns }) {
  const base = `/api/runs/${encodeURIComponent(run.run_id)}`;
  const parts = useArtifacts(run);
  const bytesTotal = parts.reduce((n, a) => n + a.artifact_size_bytes, 0);
  const file = fileName(run.test_name, run.run_id.slice(0, 8));

  const step = resolution(c);
  const seconds = () => {
    const samples = c.rows.filter((r) => r !== null);
    const kinds = names({ samples }, (r) => r.byKind);
    const text = csv(
      [
        'time',
        'elapsed_seconds',
        'seconds',
        'phase',
        'qps',
        ...kinds.map((k) => `qps_${k.toLowerCase()}`),
        'p50_ms',
        'p95_ms',
        'p99_ms',
        'errors_per_sec',
        'active_connections',
        'target_connections',
        'cpu_pct',
      ],
      samples.map((r) => [
        new Date(r.at).toISOString(),
        r.t.toFixed(3),
        r.span,
        r.phase,
        r.qps,
        ...kinds.map((k) => r.byKind[k] ?? 0),
        r.p50,
        r.p95,
        r.p99,
        r.errors,
        r.active,
        r.target,
        r.cpu,
      ]),
    );
    save(`${file}-seconds.csv`, new Blob([text], { type: 'text/csv' }));
  };

  return (
    <div className="stack">
      <section className="panel offers">
        <Offer
          title="Report, HTML"
          what={
            'Verdict, figures and charts in one file that opens without a server or a network, to send, ' +
            'attach or archive.'
          }
          action={
            <a className="btn primary" href={reportUrl(run.run_id)} download>
              <Icon name="file" /> Download report
            </a>
          }
        />
        <Offer
          title="Executions, Parquet"
          what={
            <>
              All {exact(s.accounting.recorded)} executions as one zip: {parts.length}{' '}
              {parts.length === 1 ? 'part' : 'parts'}, {plain(bytes(bytesTotal))}.
            </>
          }
          action={
            parts.length > 0 ? (
              <a className="btn primary" href={`${base}/executions`} download={`${file}-executions.zip`}>
                <Icon name="download" /> Download zip
              </a>
            ) : (
              <button type="button" className="btn" disabled>
                <Icon name="download" /> Download zip
              </button>
            )
          }
        />
        <Offer
          title="Executions, CSV"
          what="The same executions as one table for a spreadsheet or a script. Much larger than the ZIP."
          action={
            parts.length > 0 ? (
              <a className="btn" href={`${base}/executions?format=csv`} download={`${file}-executions.csv`}>
                <Icon name="table" /> Download CSV
              </a>
            ) : (
              <button type="button" className="btn" disabled>
                <Icon name="table" /> Download CSV
              </button>
            )
          }
        />
        <Offer
          title="Seconds, CSV"
          what={
            `The data of the charts: ${exact(c.rows.filter(Boolean).length)} rows, one for ` +
            (step > 1
              ? `every ${duration(step)}; a part that is selected in a chart has one for each second.`
              : 'each second.')
          }
          action={
            <button type="button" className="btn" onClick={seconds} disabled={c.rows.length === 0}>
              <Icon name="table" /> Save CSV
            </button>
          }
        />
        <Offer
          title="Summary, JSON"
          what="The exact figures, thresholds, accounting, plugins and environment, as the command line writes them."
          action={
            <a className="btn" href={`${base}/summary`} download={`${file}-summary.json`}>
              <Icon name="file" /> Download JSON
            </a>
          }
        />
      </section>
      <ShareLinks run={run.run_id} />
      <SnowflakeExport run={run} />
      <section className="panel">
        <header>
          <h2 className="h3">
            <Term tip={terms.artifact}>Parts</Term>
          </h2>
        </header>
        {parts.length === 0 ? (
          <Empty tight title="This run has no recorded parts">
            It ended before its first execution was recorded.
          </Empty>
        ) : (
          <div className="table-wrap" tabIndex={0} role="group" aria-label="Files, scrollable">
            <table className="table dense">
              <thead>
                <tr>
                  <th>File</th>
                  <th>Worker</th>
                  <th className="num">Executions</th>
                  <th className="num">Size</th>
                  <th className="num">
                    <Term tip="Size divided by executions.">Each</Term>
                  </th>
                  <th>SHA-256</th>
                </tr>
              </thead>
              <tbody>
                {parts.map((a) => (
                  <tr key={a.name}>
                    <td>
                      {a.kind === 'binds' ? (
                        // No download: values are shown on request.
                        <span className="mono">{a.name}</span>
                      ) : (
                        <a
                          className="mono"
                          href={`${base}/executions?part=${encodeURIComponent(a.name)}`}
                          download={a.name}
                        >
                          {a.name}
                        </a>
                      )}
                    </td>
                    <td className="mono">{a.worker_id}</td>
                    <td className="num">{exact(a.row_count)}</td>
                    <td className="num">{plain(bytes(a.artifact_size_bytes))}</td>
                    <td className="num">
                      {a.row_count ? plain(count(Math.round((a.artifact_size_bytes / a.row_count) * 10) / 10)) : '–'} B
                    </td>
                    <td>
                      <code title={a.artifact_checksum}>{a.artifact_checksum.slice(0, 12)}…</code>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  );
}
