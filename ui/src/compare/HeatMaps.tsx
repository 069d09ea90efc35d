import { useMemo } from 'react';
import type { Point } from '../api/types';
import { fixedColumns, HistogramHeatMap } from '../charts/HistogramHeatMap';
import { type Cell, cells, firstTick } from '../charts/histogram';
import { latency } from '../design/format';
import { Empty } from '../design/States';

const noDecor = { bands: [], markers: [] };

interface Curve {
  points: Point[] | null;
  span: number;
  /** Start of the measurement, Unix milliseconds. */
  start: number | null;
}

/** heatOf returns a run's measurement by seconds, as heat map columns. */
export function heatOf(c: Curve): { x: number[]; columns: Cell[][] } {
  const rows = (c.points ?? []).filter((p) => p.phase === 'MEASUREMENT' && p.histogram && c.start !== null);
  return {
    x: rows.map((p) => (Date.parse(p.timestamp) - c.start!) / 1000),
    columns: rows.map((p) => cells(p.histogram)),
  };
}

/** sharedScale is one scale for several heat maps: equal colours are equal counts. */
export function sharedScale(list: Cell[][][]): { maxCount: number; bounds: [number, number] } | null {
  let [lo, hi, maxCount] = [Number.POSITIVE_INFINITY, 0, 0];
  for (const columns of list)
    for (const column of columns)
      for (const c of column) {
        lo = Math.min(lo, c.from);
        hi = Math.max(hi, c.to);
        maxCount = Math.max(maxCount, c.count);
      }
  return hi > 0 ? { maxCount, bounds: [firstTick(lo), hi] } : null;
}

/** HeatMaps draws the runs' heat maps with one scale over measurement time. */
export function HeatMaps(props: { curves: Curve[]; label: (i: number) => string; hidden: (i: number) => boolean }) {
  const { curves, label, hidden } = props;
  const stamp = curves.map((c) => `${c.points?.length ?? 0}/${c.start}`).join();
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the stamp stands for the points
  const heats = useMemo(() => curves.map(heatOf), [stamp]);
  const shown = heats.map((h, i) => ({ ...h, i })).filter(({ i }) => !hidden(i));
  const drawn = shown.map((h) => h.columns);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- which are drawn follows from these
  const scale = useMemo(() => sharedScale(drawn), [heats, shown.map((h) => h.i).join()]);
  const until = Math.max(0, ...shown.map((h) => h.x.at(-1) ?? 0));
  const coarse = curves.some((c) => c.span > 1);
  return (
    <>
      {shown.map((h) => (
        <HistogramHeatMap
          key={h.i}
          title={`Heat map of ${label(h.i)}`}
          tip="Number of operations by latency in each second of the measurement. All runs share one colour scale."
          file="comparison"
          decor={noDecor}
          until={until}
          x={h.x}
          columns={fixedColumns(h.columns)}
          edge={(i) => (i > 0 && h.x[i]! - h.x[i - 1]! < 1.5 ? h.x[i - 1]! : h.x[i]! - 1)}
          format={latency}
          counted="operations"
          unit="ops"
          scale={scale}
          emptyTitle={coarse ? 'Select a shorter period' : 'Nothing to draw'}
          empty={
            coarse
              ? 'Heat maps need single seconds. They are available for runs of at most an hour.'
              : 'The run has no distributions by second.'
          }
        />
      ))}
      {shown.length === 0 && (
        <section className="panel">
          <Empty tight title="All runs are hidden">
            Press a letter in the table above to show a run.
          </Empty>
        </section>
      )}
    </>
  );
}
