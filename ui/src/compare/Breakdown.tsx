import { useQueries } from '@tanstack/react-query';
import { api, asProblem } from '../api/client';
import type { ComparedPart, PartComparison, RunDetail } from '../api/types';
import { useParam } from '../app/location';
import { Segments, Term } from '../design/Controls';
import { capitalize, count, exact, humanize, plain } from '../design/format';
import { Mark } from '../design/icons';
import { Num } from '../design/Num';
import { Empty, Notice, SkeletonRows } from '../design/States';
import { VerdictLabel, verdicts } from './Comparison';
import { color, difference, formatOf, interval, letter, partMetrics } from './model';
import { asSentence } from '../design/sentences';

/** Breakdown compares each kind and statement with the baseline's. */
export function Breakdown(props: {
  ids: string[];
  runs: (RunDetail | undefined)[];
  label: (i: number) => string;
  tolerance: number;
}) {
  const { ids, runs, tolerance } = props;
  const [chosen, setChosen] = useParam('with', 'B');
  const [by, setBy] = useParam('parts', 'kinds');
  const measured = (i: number) => Boolean(runs[i]?.summary?.operations);
  const parts = useQueries({
    queries: ids.slice(1).map((id, k) => ({
      queryKey: ['compare-parts', ids[0], id, tolerance],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.get('/api/v1/compare/parts', { query: { a: [ids[0]!], b: [id], tolerance_pct: tolerance }, signal }),
      enabled: measured(0) && measured(k + 1),
      retry: false,
      staleTime: Number.POSITIVE_INFINITY,
    })),
  });
  const at = Math.max(
    1,
    ids.findIndex((_, i) => letter(i) === chosen),
  );
  const of = parts[at - 1];
  const list = by === 'statements' ? of?.data?.statements : of?.data?.kinds;
  const waits = of && of.isPending && of.fetchStatus !== 'idle';
  return (
    <section className="panel" aria-labelledby="by-part">
      <header>
        <h2 className="h3" id="by-part">
          By kind and statement
        </h2>
        <div className="end row">
          <Segments
            label="Broken down by"
            value={by === 'statements' ? 'statements' : 'kinds'}
            options={[
              { value: 'kinds', label: 'Kinds' },
              { value: 'statements', label: 'Statements' },
            ]}
            onChange={setBy}
          />
          {ids.length > 2 && (
            <Segments
              label="Compared with A"
              value={letter(at)}
              options={ids.slice(1).map((_, i) => ({ value: letter(i + 1), label: letter(i + 1) }))}
              onChange={setChosen}
            />
          )}
        </div>
      </header>
      {of?.error ? (
        <div className="body">
          <Notice tone="warn">
            <strong>The breakdown is unavailable.</strong> {asProblem(of.error).message}{' '}
            {asSentence(asProblem(of.error).hint)}{' '}
            <button type="button" className="btn small" onClick={() => void of.refetch()}>
              Try again
            </button>
          </Notice>
        </div>
      ) : waits ? (
        <SkeletonRows rows={4} />
      ) : !list?.length ? (
        <Empty tight title="No breakdown">
          The breakdown needs the final figures of both runs. A run that ended before its measurement has none.
        </Empty>
      ) : (
        <BreakdownTable list={list} other={at} notes={of?.data?.notes} label={props.label} />
      )}
    </section>
  );
}

function BreakdownTable(props: {
  list: ComparedPart[];
  other: number;
  notes: PartComparison['notes'] | undefined;
  label: (i: number) => string;
}) {
  const { list, other, notes, label } = props;
  const ran = (n: number, i: number) => (n > 0 ? `${letter(i)} ${plain(count(n))}` : `none in ${letter(i)}`);
  return (
    <>
      <div className="table-wrap" tabIndex={0} role="region" aria-label="By kind and statement, scrollable">
        <table className="table compare-figures">
          <thead>
            <tr>
              <th>
                <Term tip={`The baseline ${label(0)} and ${label(other)}, part by part.`}>Part</Term>
              </th>
              <th>Verdict</th>
              {partMetrics.map((m) => (
                <th key={m.name} className="num">
                  {m.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {list.map((p) => (
              <tr key={`${p.kind}/${p.statement_id}/${p.in_transaction}`}>
                <td>
                  <span className="row nowrap">
                    <i className="swatch" style={{ background: `var(--k-${p.kind.toLowerCase()})` }} />
                    {p.statement_id ? <code>{p.statement_id}</code> : capitalize(humanize(p.kind))}
                    {p.in_transaction && <span className="muted">in transactions</span>}
                  </span>
                  <span className="second" title={`${exact(p.a_operations)} and ${exact(p.b_operations)} operations`}>
                    {ran(p.a_operations, 0)}, {ran(p.b_operations, other)}
                  </span>
                </td>
                <td>
                  {p.metrics.length > 0 ? (
                    <VerdictLabel verdict={p.verdict} />
                  ) : (
                    <span className="badge warn">in one run only</span>
                  )}
                </td>
                {partMetrics.map(({ name }) => {
                  const m = p.metrics.find((x) => x.name === name);
                  if (!m)
                    return (
                      <td key={name} className="num">
                        –
                      </td>
                    );
                  return (
                    <td key={name} className="num" title={m.reason}>
                      {([0, other] as const).map((i) => (
                        <span key={i} className="from-to">
                          <span style={{ color: `var(${color(i)})` }}>{letter(i)}</span>{' '}
                          <Num q={formatOf(name)(i === 0 ? m.a : m.b)} />
                        </span>
                      ))}
                      {m.difference !== null && (
                        <span className={`second delta ${m.verdict}`}>
                          <span>
                            <Mark shape={verdicts[m.verdict].shape} /> {difference(m)}
                          </span>
                          <span className="ci">{interval(m)}</span>
                        </span>
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(notes ?? []).map((n) => (
        <p key={n} className="body muted">
          {n}
        </p>
      ))}
    </>
  );
}
