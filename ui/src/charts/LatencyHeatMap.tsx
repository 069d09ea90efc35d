import { useMemo } from 'react';
import { latency } from '../design/format';
import { terms } from '../design/terms';
import type { Columns } from '../runs/series';
import { lineValues } from '../runs/track';
import type { ChartProps } from './Chart';
import { HistogramHeatMap } from './HistogramHeatMap';
import { type Cell, cells } from './histogram';

type Rest = Pick<ChartProps, 'file' | 'decor' | 'until' | 'grows' | 'state' | 'empty' | 'emptyTitle' | 'explore'>;

/** LatencyHeatMap draws latency over time: columns are seconds, rows are buckets of the live histogram. */
export function LatencyHeatMap({
  c,
  onCell,
  ...rest
}: { c: Columns; onCell?: (from: number, to: number, cell: Cell) => void } & Rest) {
  const columns = useMemo(() => ({ at: (i: number) => cells(c.rows[i]?.histogram), cacheKey: c.cacheKey }), [c]);
  const middle = lineValues(c, 'p50', (s) => s.p50);
  const edge = (i: number) => {
    const t = c.t[i]!;
    const span = c.rows[i]?.span ?? 1;
    if (span > 1) return t - span;
    const before = i > 0 && c.rows[i - 1]?.span === 1 ? c.t[i - 1]! : t - 1;
    return Math.max(t - 1.5, before);
  };
  return (
    <HistogramHeatMap
      {...rest}
      title="Latency heat map"
      tip={terms.heatmap}
      x={c.t}
      columns={columns}
      edge={edge}
      onCell={onCell && ((i, cell) => onCell(edge(i), c.t[i]!, cell))}
      format={latency}
      counted="operations"
      unit="ops"
      middle={middle}
      top={2e-3}
    />
  );
}
