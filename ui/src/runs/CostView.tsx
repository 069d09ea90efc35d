import type { Cost } from '../api/types';
import { Term } from '../design/Controls';
import { exact, money, significant } from '../design/format';
import { Num } from '../design/Num';
import { SimulatedBadge } from '../design/Status';

/** CostView shows the warehouse cost of the measurement. */
export function CostView({ c, simulated, emulated }: { c: Cost; simulated: boolean; emulated?: boolean }) {
  const known = c.credits_per_hour > 0;
  const generation =
    c.warehouse_generation && c.warehouse_type === 'STANDARD' ? ` of generation ${c.warehouse_generation}` : '';
  return (
    <section className="panel">
      <header>
        <h2 className="h3">
          <Term tip="The cost of the warehouse during the measurement, by the server's price list.">Cost</Term>
        </h2>
        {simulated && <SimulatedBadge of={{ emulated }} />}
      </header>
      <div className="body stack">
        {known && (
          <div className="percentile-row">
            <div>
              <span className="muted">a million operations</span>
              <Num q={money(c.price_per_million_operations, c.currency)} />
            </div>
            <div>
              <span className="muted">measurement</span>
              <Num q={money(c.price, c.currency)} />
            </div>
            <div>
              <span className="muted">credits</span>
              <Num q={{ value: significant(c.credits), unit: '', exact: exact(c.credits) }} />
            </div>
            <div>
              <span className="muted">whole run</span>
              <Num q={money(c.run_price, c.currency)} />
            </div>
            <div>
              <span className="muted">
                <Term tip="The time that the warehouse was active: preparation, load, enrichment and idle time.">
                  until it suspended
                </Term>
              </span>
              <Num q={money(c.caused_price, c.currency)} />
            </div>
          </div>
        )}
        <p className="muted">
          {known &&
            `${c.warehouse}, ${c.warehouse_type.toLowerCase()} ` +
              `${c.warehouse_size}${generation}: ` +
              `${Number.isInteger(c.clusters) ? c.clusters : significant(c.clusters)} ` +
              `${c.clusters === 1 ? 'cluster' : 'clusters'} at ${significant(c.credits_per_hour)} credits an ` +
              `hour, ${significant(c.credit_price)} ${c.currency} each (${c.price_list}). `}
          {(c.notes ?? []).join(' ')}
        </p>
      </div>
    </section>
  );
}
