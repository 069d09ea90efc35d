import { isTerminal, type RunDetail } from '../api/types';
import { serverText } from '../design/sentences';
import { Notice } from '../design/States';
import type { RunState } from './live';
import type { Columns } from './series';
import { causeInterval, causesSummary, coverageText, intervalText } from './validity';

/** maxCausesListed: further causes are counted. */
const maxCausesListed = 8;

/** ValidityNotice shows validity causes with their times, live and afterwards. */
export function ValidityNotice({ run, live, c }: { run: RunDetail; live: RunState['live']; c: Columns }) {
  const s = live ? null : isTerminal(run.status) ? run.summary : null;
  const validity = live ? live.validity : s?.validity_detail;
  const causes = validity?.causes ?? [];
  const coverage = s && coverageText(run, s, causes, c.t.at(-1) ?? null);
  // A run that ended before its measurement has no figures to doubt, but its record may be lost.
  if ((validity?.verdict !== 'DEGRADED' && !coverage) || causes.length === 0) return null;
  return (
    <Notice tone="warn">
      <strong>{causesSummary(causes)}</strong> {coverage}
      <ul>
        {causes.slice(0, maxCausesListed).map((x) => (
          <li key={x.cause + x.from + x.detail}>
            {serverText(x.detail)}
            <span className="muted"> {intervalText(causeInterval(x, live?.timing.start_time ?? run.start_time))}</span>
          </li>
        ))}
        {causes.length > maxCausesListed && <li>and {causes.length - maxCausesListed} more</li>}
      </ul>
    </Notice>
  );
}
