import type { Outage, RunDetail, ServerIdentity, Summary } from '../api/types';
import { capitalize, count, dateTime, duration, elapsed, humanize, plain } from '../design/format';
import { outageCounts, outageTitle, phaseNames } from './outages';

/** Outages tells when the target was down, and what that did to the load; nothing without an outage. */
export function Outages({ run, s }: { run: RunDetail; s: Summary }) {
  return (s.outages ?? []).map((o) => <OutageCard key={o.number} run={run} o={o} />);
}

function OutageCard({ run, o }: { run: RunDetail; o: Outage }) {
  const second = (at: string | null) =>
    at ? elapsed((Date.parse(at) - Date.parse(run.start_time ?? '')) / 1000) : 'none';
  const phases = Object.entries(phaseNames).flatMap(([phase, words]) => {
    const classes = Object.entries(o.errors?.[phase] ?? {});
    if (classes.length === 0) return [];
    return [`${words} ${classes.map(([c, n]) => `${plain(count(n))} ${humanize(c)}`).join(', ')}`];
  });
  const kinds = (o.by_kind ?? []).length > 1 ? o.by_kind! : [];
  return (
    <section className="panel" aria-label={`Outage ${o.number}`}>
      <header>
        <h2 className="h3">{outageTitle(o)}</h2>
      </header>
      <div className="stack">
        <p>
          {outageCounts(o)} {o.warmup && 'It began in the warm-up. '}
          Last success at {second(o.last_success_before)}, first failure: {second(o.first_failure)}, first success after
          it: {second(o.first_success_after)}, last failure: {second(o.last_failure)}.
        </p>
        {phases.length > 0 && <p className="muted">Errors: {phases.join('; ')}.</p>}
        {kinds.length > 0 && (
          <p className="muted">
            Down for each kind:{' '}
            {kinds
              .map((k) => {
                const end = k.to_the_end ? ' (to the end)' : '';
                return `${capitalize(humanize(k.kind))} ${duration(k.down_seconds)}${end}`;
              })
              .join(', ')}
            .
          </p>
        )}
        {o.server_before && <p className="muted">Before: {server(o.server_before)}.</p>}
        {o.server_after && <p className="muted">After: {server(o.server_after)}.</p>}
      </div>
    </section>
  );
}

function server(s: ServerIdentity): string {
  // Reports and share links have neither its address nor its start.
  const parts = [s.address ? `${s.role} at ${s.address}` : s.role, `version ${s.version}`];
  if (s.started_at) parts.push(`started ${dateTime(s.started_at)}`);
  if (s.timeline) parts.push(`timeline ${s.timeline}`);
  if (s.system_identifier) parts.push(`system ${s.system_identifier}`);
  return parts.join(', ');
}
