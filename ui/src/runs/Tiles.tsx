import type { ReactNode } from 'react';
import { hasRates, isTerminal, type Payload, type RunDetail, type Summary } from '../api/types';
import { Sparkline } from '../charts/Sparkline';
import { Term } from '../design/Controls';
import { count, duration, errorRate, latency, missing, percent, plain, type Quantity, rate } from '../design/format';
import { Num } from '../design/Num';
import { VerdictBadge } from '../design/Status';
import { terms } from '../design/terms';
import { lastLoadChange, loadFigures } from './loadFigures';
import { hasOperations, isTooShort } from './validity';
import { loadChanges } from './marks';
import { rateOf } from './rates';
import { answerLevel, levelText } from './searchAnswer';
import type { Columns } from './series';
import { allSilent, workerCounts } from './unresponsive';

function Tile(props: { label: string; tip: string; q: Quantity; note?: ReactNode; side?: ReactNode; tone?: string }) {
  return (
    <div className={`tile ${props.tone ?? ''}`}>
      <div className="tile-label">
        <Term tip={props.tip}>{props.label}</Term>
      </div>
      <div className="tile-value">
        <Num q={props.q} />
        {props.side}
      </div>
      <div className="tile-note">{props.note}</div>
    </div>
  );
}

/** errorNote is the share of errors, or the dropped operations of an open loop. */
function errorNote(share: number | null, dropped: number, retries: number | undefined): string {
  const note = dropped > 0 ? `${plain(count(dropped))} dropped` : `${plain(errorRate(share))} of operations`;
  return note + retriesText(retries);
}

/** throughputNote says what the throughput covers. */
function throughputNote(s: Summary, changed: boolean): string {
  if (hasRates(s) && (s.by_load?.length ?? 0) > 0) return `over ${s.by_load!.length} loads, listed below`;
  if (s.qps === null)
    return s.record_partial ? `record incomplete · ${plain(count(s.operations))} operations` : 'no measured time';
  if (s.covered_seconds) return `over the ${duration(s.covered_seconds)} covered by the record`;
  return s.target_qps
    ? `${plain(percent((100 * s.qps) / s.target_qps))} of ${plain(rate(s.target_qps))}${changed ? ' on average' : ''}`
    : `${plain(count(s.operations))} operations`;
}

/** Tiles shows a run's figures: of the last second while live, exact ones afterwards. */
export function Tiles({ run, live, c }: { run: RunDetail; live: Payload | null; c: Columns }) {
  const s = isTerminal(run.status) ? run.summary : null;
  const spark = <Sparkline values={c.rows.slice(-60).map((r) => r?.qps ?? null)} />;
  if (s) {
    const l = s.latency_ms;
    const ran = hasOperations(run, s, c.t.length);
    const measured = ran && s.validity !== 'NONE';
    if (ran && s.find_max) return <AnswerTiles run={run} s={s} r={s.find_max} />;
    // The measurement was seen live, but nothing of it is recorded.
    const unrecorded = measured && s.operations === 0 && run.total_ops > 0;
    return (
      <div className="tiles">
        <Tile
          label="Throughput"
          tip={terms.throughput}
          q={measured ? rateOf(s, s.qps) : missing}
          side={spark}
          note={
            unrecorded
              ? `${plain(count(run.total_ops))} operations seen live, none stored`
              : measured
                ? throughputNote(s, loadChanges(run).length > 0)
                : 'no measurement'
          }
        />
        <Tile label="P50" tip={terms.p50} q={latency(l?.p50)} note={l && `avg ${plain(latency(l.avg))}`} />
        <Tile
          label="P95"
          tip={terms.p95}
          q={latency(l?.p95)}
          note={l && (s.service_ms ? `service ${plain(latency(s.service_ms.p95))}` : `P90 ${plain(latency(l.p90))}`)}
        />
        <Tile label="P99" tip={terms.p99} q={latency(l?.p99)} note={l && `max ${plain(latency(l.max))}`} />
        <Tile
          label="Errors"
          tip={terms.errors}
          q={
            measured && (unrecorded || s.operations > 0)
              ? count(unrecorded ? run.error_count : s.errors.count)
              : missing
          }
          note={
            unrecorded
              ? 'seen live'
              : measured
                ? s.operations === 0
                  ? 'no operations'
                  : errorNote(s.errors.rate, s.accounting.dropped - (s.accounting.warmup_dropped ?? 0), s.retries)
                : ''
          }
          tone={s.errors.count > 0 ? 'bad' : ''}
        />
        <GeneratorTile run={run} s={s} ran={ran} />
      </div>
    );
  }
  const last = c.rows.at(-1) ?? null;
  const qps = live ? live.ops.current_per_sec : last?.qps;
  const l = live?.latency ?? (last ? { p50: last.p50, p95: last.p95, p99: last.p99 } : null);
  const t = live?.latency_total;
  const active = live !== null && live.phase !== 'PREPARING';
  // Nothing is known of this second: zero would be a figure.
  const counted = active ? workerCounts(live) : { expected: 0, silent: 0 };
  const nothing = active && allSilent(live);
  const cpu = live?.custom_metrics?.resources?.cpu_pct;
  const changed = live ? lastLoadChange(run, live.timing) : null;
  const now = changed === null ? null : loadFigures(c, changed);
  const total = (of: 'p50' | 'p95' | 'p99') => {
    const v = changed === null ? t?.[of] : now?.[of];
    return v === null || v === undefined ? '' : `${plain(latency(v))} ${changed === null ? 'so far' : 'at this load'}`;
  };
  return (
    <div className="tiles">
      <Tile
        label="Throughput"
        tip={terms.throughput}
        q={(active || last) && !nothing ? rate(qps) : missing}
        side={spark}
        note={
          !active
            ? ''
            : nothing
              ? 'no run worker reports'
              : counted.silent > 0
                ? `${counted.silent} of ${counted.expected} workers silent; last figures used`
                : live.target_qps
                  ? `target ${plain(rate(live.target_qps))}`
                  : now
                    ? `avg ${plain(rate(now.qps))} at this load`
                    : `${plain(count(live.ops.total))} operations`
        }
      />
      <Tile label="P50" tip={terms.p50} q={latency(l?.p50)} note={total('p50')} />
      <Tile label="P95" tip={terms.p95} q={latency(l?.p95)} note={total('p95')} />
      <Tile label="P99" tip={terms.p99} q={latency(l?.p99)} note={total('p99')} />
      <Tile
        label="Errors"
        tip={terms.errors}
        q={active || !live ? count(live ? live.errors.count : run.error_count) : missing}
        note={active ? errorNote(live.errors.rate, live.errors.dropped, live.errors.retries) : ''}
        tone={(live?.errors.count ?? 0) > 0 ? 'bad' : ''}
      />
      <div className="tile">
        <div className="tile-label">
          <Term tip={terms.generator}>Generator</Term>
        </div>
        <div className="tile-value badge-value">
          {active && live.ops.total > 0 ? <VerdictBadge verdict={live.validity.verdict} of={live} /> : '–'}
        </div>
        <div className="tile-note">
          {active && cpu !== undefined && cpu !== null ? `CPU ${plain(percent(cpu))}` : ''}
        </div>
      </div>
    </div>
  );
}

/** AnswerTiles are the figures of a search at the level of its answer, not over all its steps. */
function AnswerTiles({ run, s, r }: { run: RunDetail; s: Summary; r: NonNullable<Summary['find_max']> }) {
  const found = answerLevel(r);
  const at = found === null ? 'no answer' : `at ${levelText(r.unit, found)}`;
  const of = <T,>(v: T) => (found === null ? null : v);
  return (
    <div className="tiles">
      <Tile label="Throughput" tip={terms.throughput} q={rate(of(r.qps))} note={at} />
      <Tile label="P50" tip={terms.p50} q={latency(of(r.p50_latency_ms))} note={at} />
      <Tile label="P95" tip={terms.p95} q={latency(of(r.p95_latency_ms))} note={at} />
      <Tile label="P99" tip={terms.p99} q={latency(of(r.p99_latency_ms))} note={at} />
      <Tile
        label="Errors"
        tip={terms.errors}
        q={errorRate(of(r.error_rate))}
        note={`${plain(count(s.errors.count))} in all steps`}
        tone={(of(r.error_rate) ?? 0) > 0 ? 'bad' : ''}
      />
      <GeneratorTile run={run} s={s} ran />
    </div>
  );
}

function GeneratorTile({ run, s, ran }: { run: RunDetail; s: Summary; ran: boolean }) {
  return (
    <div className="tile">
      <div className="tile-label">
        <Term tip={terms.generator}>Generator</Term>
      </div>
      <div className="tile-value badge-value">
        {ran ? (
          <VerdictBadge
            verdict={s.validity}
            of={s}
            short={isTooShort({ ...run, measured_seconds: s.duration_seconds })}
          />
        ) : (
          '–'
        )}
      </div>
      <div className="tile-note">
        {plain(count(s.environment.cpus))} CPUs{s.environment.target_is_local ? ' · local target' : ''}
      </div>
    </div>
  );
}

/** retriesText says how often failed operations were retried. */
function retriesText(retries: number | undefined): string {
  return retries ? ` · ${plain(count(retries))} retries` : '';
}
