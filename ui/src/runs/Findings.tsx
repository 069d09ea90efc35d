import type { Finding, RunDetail, ServerTime, Summary } from '../api/types';
import { useGroup } from '../charts/group';
import { count, elapsed, latency, percent, plain } from '../design/format';
import { serverText } from '../design/sentences';
import { interval, shareText, timeParts } from './serverTime';
import './why.css';

/** WhySummary is what the summary of a run says of why it was slow, as a report has it. */
export function WhySummary({ run, s }: { run: RunDetail; s: Summary }) {
  return (
    <div className="stack why">
      <Findings run={run} list={s.findings ?? []} />
      {s.server_time && s.server_time.in_flight_seconds > 0 && <Time t={s.server_time} />}
    </div>
  );
}

/** Findings are the causes of slowness, those first that cost most; each marks its interval. */
export function Findings({ run, list }: { run: RunDetail; list: Finding[] }) {
  const { zoom, setZoom } = useGroup();
  return (
    <ol className="findings" aria-label="Findings, those first that cost most">
      {list.map((f, i) => {
        const of = interval(f, run.start_time);
        const marked = !!of && zoom?.from === of.from && zoom?.to === of.to;
        return (
          <li key={`${f.rule} ${i}`} className={`panel ${f.level}`}>
            <header>
              <h3>{f.title}</h3>
              {f.share !== null && <strong className="num">{shareText(f)}</strong>}
            </header>
            <p>{serverText(f.text)}</p>
            {f.who?.statement && (
              <p className="muted">
                Its statement: <code>{f.who.statement}</code>
              </p>
            )}
            {f.try && <p className="muted">Try: {serverText(f.try)}</p>}
            {of && f.level === 'finding' && (
              <button
                type="button"
                className="btn small"
                aria-pressed={marked}
                onClick={() => setZoom(marked ? null : of)}
              >
                {marked ? 'Show the whole run' : `Show ${elapsed(of.from)} to ${elapsed(of.to)} in every chart`}
              </button>
            )}
          </li>
        );
      })}
    </ol>
  );
}

/** Time says where the client's time went. */
export function Time({ t }: { t: ServerTime }) {
  return (
    <section className="panel">
      <header>
        <h2 className="h3">Where the client’s time went</h2>
        <span className="muted note">
          {plain(percent(t.remainder_pct))} not explained; {plain(count(t.looks))} looks of {plain(latency(t.look_ms))}
        </span>
      </header>
      <div className="body stack tightly">
        {timeParts(t).map((p) => (
          <div key={p.label} className="bar-row">
            <span>{p.label}</span>
            <span className="share wide">
              <i style={{ width: `${Math.max(0, Math.min(100, p.pct))}%`, background: `var(${p.color})` }} />
            </span>
            <span className="num">{plain(percent(p.pct))}</span>
          </div>
        ))}
      </div>
    </section>
  );
}
