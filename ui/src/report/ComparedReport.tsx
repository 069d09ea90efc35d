import { Comparison, useComparison } from '../compare/Comparison';
import { dateTime } from '../design/format';
import type { ComparisonContent } from './content';

/** ComparedReport is the report of a comparison, with the page's components. */
export function ComparedReport({ c }: { c: ComparisonContent }) {
  const ids = c.compared.map((x) => x.run.run_id);
  const labels = c.compared.map(() => null);
  const state = useComparison(ids, labels, c.tolerance_pct);
  return (
    <>
      <header className="page-head">
        <h1>Comparison</h1>
        <span className="sub">{ids.length} runs</span>
      </header>
      <main className="page run report">
        <p className="muted report-made">
          Made on {dateTime(c.made_at)} by Loadstone {c.version}.
          {c.left_out.length > 0 && ` To limit its size it omits ${c.left_out.join(', ')}.`}
        </p>
        <Comparison ids={ids} labels={labels} state={state} tolerance={c.tolerance_pct} standalone />
      </main>
    </>
  );
}
