import { useEffect, useRef, useState } from 'react';
import type { Dispersion, FindMaxRepetition, FindMaxResult, FindMaxState, FindMaxStep } from '../api/types';
import { Term } from '../design/Controls';
import { axisText } from '../charts/plot';
import { capitalize, clock, count, exact, latency, percent, plain, type Quantity, rate } from '../design/format';
import { Icon } from '../design/icons';
import { Num } from '../design/Num';
import { terms } from '../design/terms';
import { answerAdvice, answerLevel, confirmation, levelLabel, levelText } from './searchAnswer';

type Unit = FindMaxState['unit'];

export const level = (s: FindMaxStep) => s.target_qps ?? s.total_target_connections;
const size = (unit: Unit, n: number): Quantity => (unit === 'rate' ? rate(n) : count(n));

const outcomes: Record<FindMaxStep['outcome'], { tone: string; label: string }> = {
  STABLE: { tone: 'ok', label: 'Holds' },
  DEGRADED: { tone: 'bad', label: 'Too slow' },
  ERROR_THRESHOLD: { tone: 'bad', label: 'Errors' },
  QUEUE_DETECTED: { tone: 'bad', label: 'Queues' },
  PLATEAU: { tone: 'warn', label: 'No gain' },
};

const stages: Record<FindMaxState['status'], string> = {
  STEPPING: 'Climbing',
  BISECTING: 'Narrowing down',
  CONFIRMING: 'Confirming the answer',
  RECOVERING: 'Recovering',
  OVERLOADING: 'Checking recovery after overload',
  DONE: 'Done',
};

/** FindMaxLive shows a running search: current level, bounds and all steps. */
export function FindMaxLive({ f }: { f: FindMaxState }) {
  const now = f.target_qps ?? f.target_workers;
  const steps = f.steps ?? [];
  const share = f.step_duration_seconds > 0 ? Math.min(1, f.step_elapsed_seconds / f.step_duration_seconds) : 0;
  const running = f.status !== 'DONE' && f.current_step > 0;
  return (
    <section className="panel find-max" aria-label="Find Max">
      <header>
        <h2 className="h3">
          <Term tip={terms.findMax}>Find Max</Term>
        </h2>
        <span className="badge">{f.current_step === 0 ? 'Waiting for the warm-up' : stages[f.status]}</span>
        <span className="muted note end">{bounds(f)}</span>
      </header>
      <div className="body stack">
        {running && (
          <div className="find-step">
            <span>
              {(f.repeat ?? 1) > 1 && `Search ${f.repetition} of ${f.repeat}, `}
              {(f.repeat ?? 1) > 1 ? 'step' : 'Step'} {f.current_step}: <strong>{levelText(f.unit, now)}</strong>
            </span>
            <span
              className="share wide"
              role="progressbar"
              aria-label="This step"
              aria-valuemin={0}
              aria-valuemax={100}
              aria-valuenow={Math.round(share * 100)}
            >
              <i style={{ width: `${share * 100}%`, background: 'var(--accent)' }} />
            </span>
            <span className="mono muted">
              {clock(f.step_elapsed_seconds)} / {clock(f.step_duration_seconds)}
            </span>
          </div>
        )}
        <Repetitions unit={f.unit} list={f.repetitions ?? []} answer={null} />
        <Ladder unit={f.unit} steps={steps} found={null} />
        <LevelCharts unit={f.unit} steps={steps} found={null} />
      </div>
    </section>
  );
}

/** remarks are what a reader should know besides the answer. */
function remarks(r: FindMaxResult): { label: string; title: string }[] {
  const list = [];
  const h = r.hysteresis;
  if (h)
    list.push({
      label: 'Hysteresis',
      title:
        `Right after ${levelText(r.unit, h.after)} the target did not sustain ${levelText(r.unit, h.fails_at)}` +
        (h.recovers_at > 0 ? `; it recovered at ${levelText(r.unit, h.recovers_at)}.` : '.'),
    });
  if (r.not_enough_operations)
    list.push({
      label: 'Not enough operations',
      title: 'Fewer than 1 000 operations finished in the step of the answer, so its percentiles are rough.',
    });
  if (r.late_steps > 0)
    list.push({
      label: `${r.late_steps} ${r.late_steps === 1 ? 'step' : 'steps'} repeated`,
      title: 'The generator was late in these steps, so they were repeated.',
    });
  return list;
}

function bounds(f: FindMaxState): string {
  const of = (n: number) => plain(size(f.unit, n));
  if (f.last_stable !== null && f.first_unstable !== null)
    return `between ${of(f.last_stable)} and ${levelText(f.unit, f.first_unstable)}`;
  if (f.first_unstable !== null) return `below ${levelText(f.unit, f.first_unstable)}`;
  return `goes up to ${levelText(f.unit, f.upper_bound)}`;
}

/** FindMaxAnswer is the answer of a finished search, how sure it is, and what to try next. */
export function FindMaxAnswer({ r }: { r: FindMaxResult }) {
  const found = answerLevel(r);
  const confirmed = confirmation(r)?.confirmed ?? false;
  const advice = answerAdvice(r);
  return (
    <section className="panel find-answer-panel" aria-label="Answer">
      <p className="find-hero">
        {found === null ? (
          'No answer'
        ) : (
          <>
            <span className="muted">sustains</span> <Num q={size(r.unit, found)} />{' '}
            {r.unit === 'connections' && (found === 1 ? 'connection' : 'connections')}
          </>
        )}
      </p>
      <div className="row">
        {found !== null && (
          <span className={`badge ${confirmed ? 'ok' : 'warn'}`} title="Steps at the level of the answer.">
            <Icon name={confirmed ? 'check' : 'alert'} size={12} />
            {capitalize(confirmation(r)!.text)}
          </span>
        )}
        {remarks(r).map((x) => (
          <span key={x.label} className="badge warn" title={x.title}>
            <Icon name="alert" size={12} />
            {x.label}
          </span>
        ))}
      </div>
      <p className="find-reason">
        {r.reason} {advice}
      </p>
    </section>
  );
}

/** FindMaxResultView is the evidence of a finished search: its levels, its steps, and the spread of its repetitions. */
export function FindMaxResultView({ r }: { r: FindMaxResult }) {
  const found = answerLevel(r);
  const steps = r.history ?? [];
  return (
    <section className="panel find-max" aria-label="Find Max">
      <div className="body stack">
        <LevelCharts unit={r.unit} steps={steps} found={found} />
        {r.spread && (
          <div className="find-answer">
            <SpreadFacts unit={r.unit} spread={r.spread} />
            <Repetitions unit={r.unit} list={r.repetitions ?? []} answer={found} />
          </div>
        )}
        <Ladder unit={r.unit} steps={steps} found={found} />
      </div>
    </section>
  );
}

/** SpreadFacts shows the spread of a repeated search. */
function SpreadFacts({ unit, spread: s }: { unit: Unit; spread: NonNullable<FindMaxResult['spread']> }) {
  const facts = (d: Dispersion, of: (n: number) => Quantity) => (
    <>
      <strong>{plain(of(d.median))}</strong> median, {plain(of(d.min))} to {plain(of(d.max))}
      {d.cv_pct !== null && (
        <>
          ,{' '}
          <Term tip="Standard deviation in percent of the mean. It shows how far one search can be trusted.">
            variation
          </Term>{' '}
          {plain(percent(d.cv_pct, 1))}
        </>
      )}
    </>
  );
  return (
    <dl>
      <div>
        <dt>Searches</dt>
        <dd>
          {s.finished} of {s.asked} finished, {s.found} with an answer
        </dd>
      </div>
      {s.level && (
        <div>
          <dt>Limit</dt>
          <dd>{facts(s.level, (n) => (unit === 'rate' ? rate(n) : count(n)))}</dd>
        </div>
      )}
      {s.qps && (
        <div>
          <dt>Throughput there</dt>
          <dd>{facts(s.qps, rate)}</dd>
        </div>
      )}
    </dl>
  );
}

/** Repetitions lists the result of each repetition. */
function Repetitions(props: { unit: Unit; list: FindMaxRepetition[]; answer: number | null }) {
  if (props.list.length === 0) return null;
  return (
    <div className="table-wrap" tabIndex={0} role="group" aria-label="Searches, scrollable">
      <table className="table dense" aria-label="Searches">
        <thead>
          <tr>
            <th className="num">Search</th>
            <th className="num">Limit</th>
            <th className="num">Throughput</th>
            <th className="num">P50</th>
            <th className="num">P95</th>
            <th className="num">P99</th>
            <th className="num">Steps</th>
          </tr>
        </thead>
        <tbody>
          {props.list.map((x) => (
            <tr
              key={x.repetition}
              className={x.level !== null && x.level === props.answer ? 'answer' : ''}
              title={x.reason}
            >
              <td className="num">{x.repetition}</td>
              <td className="num">
                {x.level === null ? 'none' : plain(size(props.unit, x.level))}
                {x.level !== null && !x.confirmed && <span className="muted"> not confirmed</span>}
              </td>
              <td className="num">
                <Num q={rate(x.qps)} />
              </td>
              {([x.p50_latency_ms, x.p95_latency_ms, x.p99_latency_ms] as const).map((ms, i) => (
                <td key={i} className="num">
                  <Num q={latency(ms)} />
                </td>
              ))}
              <td className="num">{x.steps}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Ladder lists the steps, newest last. */
function Ladder({ unit, steps, found }: { unit: Unit; steps: FindMaxStep[]; found: number | null }) {
  if (steps.length === 0)
    return <p className="muted">The first step sets the baseline. Its outcome appears when it ends.</p>;
  const maxLevel = Math.max(...steps.map(level), 1);
  const several = steps.some((s) => (s.repetition ?? 1) > 1);
  return (
    <div className="table-wrap" tabIndex={0} role="group" aria-label="Steps, scrollable">
      <table className="table dense ladder" aria-label="Steps">
        <thead>
          <tr>
            {several && <th className="num">Search</th>}
            <th className="num">Step</th>
            <th>Level</th>
            <th className="num">Throughput</th>
            <th className="num">P50</th>
            <th className="num">P95</th>
            <th className="num">
              <Term tip="How far the P95 of the slowest run worker is from that of the first step.">To baseline</Term>
            </th>
            <th className="num">P99</th>
            <th className="num">Errors</th>
            <th>Outcome</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((s, i) => {
            const first = (steps[i - 1]?.repetition ?? 1) !== (s.repetition ?? 1) || i === 0;
            const o = outcomes[s.outcome] ?? { tone: '', label: s.outcome };
            return (
              <tr key={s.step_number} className={found !== null && level(s) === found ? 'answer' : ''}>
                {several && <td className="num">{first ? (s.repetition ?? 1) : ''}</td>}
                <td className="num">{s.step_number}</td>
                <td>
                  <span className="rung" title={levelText(unit, level(s))}>
                    <i className={o.tone} style={{ width: `${(level(s) / maxLevel) * 100}%` }} />
                    <span>{plain(size(unit, level(s)))}</span>
                  </span>
                </td>
                <td className="num">
                  <Num q={rate(s.qps)} />
                </td>
                <td className="num">
                  <Num q={latency(s.p50_latency_ms)} />
                </td>
                <td className="num">
                  <Num q={latency(s.p95_latency_ms)} />
                </td>
                <td className="num">
                  {s.p95_vs_baseline_pct === null || first
                    ? '–'
                    : `${s.p95_vs_baseline_pct > 0 ? '+' : ''}${plain(percent(s.p95_vs_baseline_pct, 2))}`}
                </td>
                <td className="num">
                  <Num q={latency(s.p99_latency_ms)} />
                </td>
                <td className="num">{exact(s.error_count)}</td>
                <td title={s.stop_reason ?? ''}>
                  <span className={`badge ${o.tone}`}>{o.label}</span>
                  {s.stage === 'CONFIRMING' && <span className="muted"> repeated</span>}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function LevelCharts(props: { unit: Unit; steps: FindMaxStep[]; found: number | null }) {
  if (props.steps.length < 2) return null;
  return (
    <div className="level-charts">
      <LevelChart {...props} title="Throughput by level" value={(s) => s.qps} format={rate} />
      <LevelChart {...props} title="P95 by level" value={(s) => s.p95_latency_ms} format={latency} />
    </div>
  );
}

/** LevelChart draws a figure of each step over its level; the line connects the first measurement of each level. */
function LevelChart(props: {
  unit: Unit;
  steps: FindMaxStep[];
  found: number | null;
  title: string;
  value: (s: FindMaxStep) => number | null;
  format: (n: number) => Quantity;
}) {
  const host = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(520);
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(240, el.clientWidth)));
    resizeObserver.observe(el);
    return () => resizeObserver.disconnect();
  }, []);
  const height = 220;
  const pad = { left: 60, right: 16, top: 22, bottom: 28 };
  const points = props.steps.flatMap((s) => {
    const v = props.value(s);
    return v === null ? [] : [{ s, x: level(s), v }];
  });
  const maxLevel = Math.max(...points.map((p) => p.x), 1) * 1.04;
  const top = Math.max(...points.map((p) => p.v), 1e-9) * 1.08;
  const x = (n: number) => pad.left + (n / maxLevel) * (width - pad.left - pad.right);
  const y = (n: number) => height - pad.bottom - (n / top) * (height - pad.top - pad.bottom);
  const line = [...new Map([...points].reverse().map((p) => [p.x, p])).values()].sort((a, b) => a.x - b.x);
  const [gx, gy] = [spaced(maxLevel, Math.max(3, Math.floor(width / 90))), spaced(top, 4)];
  const toEnd = props.found !== null && x(props.found) > width * 0.6;
  return (
    <figure ref={host}>
      <figcaption>{props.title}</figcaption>
      <svg
        className="dist level"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`${props.title}; the figures are in the table of steps.`}
      >
        {gy.map((v) => (
          <g key={v}>
            <line className="grid" x1={pad.left} x2={width - pad.right} y1={y(v)} y2={y(v)} />
            <text x={pad.left - 8} y={y(v) + 4} textAnchor="end">
              {axisText(props.format(v))}
            </text>
          </g>
        ))}
        {gx.map((v) => (
          <text key={v} x={x(v)} y={height - 8} textAnchor="middle">
            {v === 0 ? '0' : plain(size(props.unit, v))}
          </text>
        ))}
        {props.found !== null && (
          <g className="limit">
            <line x1={x(props.found)} x2={x(props.found)} y1={pad.top - 6} y2={height - pad.bottom} />
            <text x={x(props.found) + (toEnd ? -6 : 6)} y={pad.top - 8} textAnchor={toEnd ? 'end' : 'start'}>
              {levelLabel(props.steps, props.found)} {plain(size(props.unit, props.found))}
            </text>
          </g>
        )}
        <polyline className="through" points={line.map((p) => `${x(p.x)},${y(p.v)}`).join(' ')} />
        {points.map((p) => (
          <circle key={p.s.step_number} className={outcomes[p.s.outcome]?.tone} cx={x(p.x)} cy={y(p.v)} r={4}>
            <title>
              {`Step ${p.s.step_number}, ${levelText(props.unit, p.x)}: ${plain(props.format(p.v))}, ` +
                `${(outcomes[p.s.outcome]?.label ?? p.s.outcome).toLowerCase()}`}
            </title>
          </circle>
        ))}
      </svg>
    </figure>
  );
}

/** spaced returns about so many round values from 0 to a bound. */
function spaced(to: number, about: number): number[] {
  const raw = to / about;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((m) => m * unit >= raw) ?? 10) * unit;
  return Array.from({ length: Math.floor(to / step) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}
