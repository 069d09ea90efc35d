import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from 'react';
import type uPlot from 'uplot';
import { useLocation } from 'wouter';
import { type Action, ActionsMenu, Term } from '../design/Controls';
import { capitalize, plain, type Quantity } from '../design/format';
import { CardBoundary } from '../design/CardBoundary';
import { Num } from '../design/Num';
import { Empty, Failed, Skeleton } from '../design/States';
import { csv, fileName, save, savePng } from './export';
import { useGroup } from './group';
import { keyStep, moveCursor, zoomAround } from './keys';
import { type Basis, basis, outsideWarmup, type Stats, stats } from './stats';
import { type Decor, growingAxisEnd, type Line, type LivePlotData, makePlot, stack, timeLabel } from './plot';
import { token } from './theme';

interface TipRow {
  label: string;
  color?: string;
  value: string;
}

export interface ChartProps {
  title: string;
  tip?: string;
  /** Prefix of downloaded file names. */
  file: string;
  x: number[];
  lines: Line[];
  format: (n: number) => Quantity;
  decor: Decor;
  /** Points of the measurement: the legend's figures cover these, as the tiles do. */
  counted?: boolean[];
  /** The measurement had several loads, so its figures mix them. */
  loads?: boolean;
  /** Last second to show when not zoomed; grows with the data. */
  until?: number;
  /** Seconds are still added: the axis ends a little later, so that the drawing stays in place for a while. */
  grows?: boolean;
  stacked?: boolean;
  /** Offers a logarithmic axis; the value is the default. */
  log?: boolean;
  canLog?: boolean;
  height?: number;
  state?: { pending: boolean; error: unknown; retry: () => void };
  empty?: string;
  emptyTitle?: string;
  legend?: boolean;
  /** Link to Explore with this chart's query. */
  explore?: string;
  footer?: ReactNode;
  note?: ReactNode;
  /** CSV content, when it is not one value per line. */
  table?: { header: string[]; rows: (i: number) => (number | null)[][] };
  yBounds?: () => [number, number] | null;
  paint?: (u: uPlot) => void;
  tooltip?: (u: uPlot, idx: number) => TipRow[];
  /** Click on a point without dragging, or Enter at the keyboard cursor. */
  onPick?: (u: uPlot, idx: number, keyed: boolean) => void;
  /** Enter at the keyboard cursor, where a click does nothing. */
  onEnter?: (idx: number) => void;
  /** What Enter opens, for screen readers. */
  opens?: string;
  /** Heights at a point that up and down move between, lowest first, in axis values. */
  stops?: (idx: number) => number[];
}

function nearestIndex(x: number[], t: number): number {
  let lo = 0;
  let hi = x.length - 1;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (x[mid]! < t) lo = mid + 1;
    else hi = mid;
  }
  return lo > 0 && t - x[lo - 1]! < x[lo]! - t ? lo - 1 : lo;
}

/** Chart draws a run over time: shared cursor and zoom, legend table, PNG and CSV. */
export function Chart(props: ChartProps) {
  return (
    <CardBoundary title={props.title}>
      <DrawnChart {...props} />
    </CardBoundary>
  );
}

function DrawnChart(props: ChartProps) {
  const { x, lines, format, decor } = props;
  const group = useGroup();
  const [, navigate] = useLocation();
  const host = useRef<HTMLDivElement>(null);
  const tipRef = useRef<HTMLDivElement>(null);
  const announcerRef = useRef<HTMLDivElement>(null);
  /** The keyboard cursor: a time of x, and the index of a height there. */
  const keyed = useRef<{ t: number; stop: number } | null>(null);
  const plot = useRef<uPlot | null>(null);
  /** Whether the chart is on screen, and whether data arrived while it was not. */
  const inSight = useRef(true);
  const behind = useRef(false);
  const titleId = useId();
  const keysId = useId();
  const [log, setLog] = useState(props.log ?? false);
  const [hidden, setHidden] = useState<Set<string>>(new Set());
  const height = props.height ?? 208;

  const dataEnd = x.length ? x[x.length - 1]! : 0;
  const from = group.zoom?.from ?? group.from;
  const whole = Math.max(props.grows ? growingAxisEnd(dataEnd) : dataEnd, props.until ?? 0, group.from + 5);
  const to = group.zoom?.to ?? whole;

  const live = useRef<LivePlotData>(null!);
  const timeAt = (t: number) => timeLabel(t, group.axis, group.start, true, to - from > 20 * 3600);
  const rowsAt = (u: uPlot, idx: number): TipRow[] =>
    props.tooltip
      ? props.tooltip(u, idx)
      : lines
          .filter((l) => !hidden.has(l.key))
          .map((l) => ({
            label: l.label,
            color: l.color,
            value: l.values[idx] == null ? '–' : plain(format(l.values[idx])),
          }));
  const showTip = (u: uPlot) => {
    const el = tipRef.current;
    if (!el) return;
    const idx = keyed.current ? nearestIndex(x, keyed.current.t) : u.cursor.idx;
    if (idx == null || !(keyed.current || u.over.matches(':hover'))) {
      el.style.display = 'none';
      return;
    }
    const rows = rowsAt(u, idx);
    const head = document.createElement('strong');
    head.textContent = timeAt(u.data[0][idx]!);
    const items = (props.stacked ? rows.toReversed() : rows).map((r) => {
      const row = document.createElement('div');
      const dot = document.createElement('i');
      if (r.color) dot.style.background = `var(${r.color})`;
      const name = document.createElement('span');
      name.textContent = r.label;
      const value = document.createElement('b');
      value.textContent = r.value;
      row.append(dot, name, value);
      return row;
    });
    el.replaceChildren(head, ...items);
    el.style.display = 'block';
    const left = u.cursor.left ?? 0;
    const flip = left > u.over.clientWidth / 2;
    const offset = u.over.offsetLeft + left;
    el.style.transform = flip ? `translate(calc(${offset - 12}px - 100%), 12px)` : `translate(${offset + 12}px, 12px)`;
  };
  live.current = {
    decor,
    range: () => [from, to],
    onSelect: (a, b) => group.setZoom({ from: Math.max(group.from, a), to: b }),
    onReset: () => group.setZoom(null),
    onCursor: showTip,
  };

  const drawn = useMemo(
    () => (props.stacked ? stack(lines, hidden) : lines.map((l) => l.values)),
    [lines, hidden, props.stacked],
  );
  const data = useMemo(() => [x, ...drawn] as uPlot.AlignedData, [x, drawn]);
  const dataRef = useRef(data);
  dataRef.current = data;
  const propsRef = useRef(props);
  propsRef.current = props;

  const ready = x.length > 0 && lines.length > 0;
  const shape = lines.map((l) => l.key + l.color).join() + [...hidden].join();

  // A plot is rebuilt when its shape changes; a tick only sets new data.
  useEffect(() => {
    const el = host.current;
    if (!el || !ready) return;
    const p = propsRef.current;
    const u = makePlot(
      el,
      {
        lines: p.lines,
        stacked: p.stacked ?? false,
        log,
        height,
        axis: group.axis,
        start: group.start,
        syncKey: group.syncKey,
        format: p.format,
        yBounds: p.yBounds && (() => propsRef.current.yBounds!()),
        paint: p.paint && ((plot: uPlot) => propsRef.current.paint!(plot)),
      },
      hidden,
      () => live.current,
      dataRef.current,
    );
    plot.current = u;
    let down = { x: 0, y: 0 };
    u.over.addEventListener('mousedown', (e) => (down = { x: e.clientX, y: e.clientY }));
    u.over.addEventListener('click', (e) => {
      const still = Math.abs(e.clientX - down.x) < 4 && Math.abs(e.clientY - down.y) < 4;
      if (still && u.cursor.idx != null) propsRef.current.onPick?.(u, u.cursor.idx, false);
    });
    const resizeObserver = new ResizeObserver(() => {
      if (el.clientWidth > 0 && el.clientWidth !== u.width) u.setSize({ width: el.clientWidth, height });
    });
    resizeObserver.observe(el);
    // An off-screen chart is drawn when it becomes visible.
    const visibility = new IntersectionObserver((entries) => {
      inSight.current = entries.at(-1)!.isIntersecting;
      if (!inSight.current || !behind.current) return;
      behind.current = false;
      u.setData(dataRef.current, true);
    });
    visibility.observe(el);
    return () => {
      resizeObserver.disconnect();
      visibility.disconnect();
      inSight.current = true;
      plot.current = null;
      u.destroy();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- shape and theme stand for what they are made of
  }, [ready, shape, log, height, group.axis, group.start, group.syncKey, group.theme]);

  /** point moves the chart's cursor to the keyboard cursor and announces it. */
  const point = (u: uPlot, speak: boolean) => {
    const k = keyed.current;
    if (!k) return;
    const idx = nearestIndex(x, k.t);
    const stops = props.stops?.(idx) ?? [];
    const height = stops[Math.min(k.stop, stops.length - 1)];
    u.setCursor({
      left: u.valToPos(x[idx]!, 'x'),
      top: height === undefined ? u.over.clientHeight / 2 : u.valToPos(height, 'y'),
    });
    showTip(u);
    if (!speak || !announcerRef.current) return;
    const announcement = rowsAt(u, idx).map((r) => `${r.label} ${r.value === '–' ? 'nothing' : r.value}`);
    announcerRef.current.textContent = `${timeAt(x[idx]!)}: ${announcement.join(', ')}`;
  };
  const leave = () => {
    if (!keyed.current) return;
    keyed.current = null;
    const u = plot.current;
    if (u) u.setCursor({ left: -10, top: -10 });
    if (announcerRef.current) announcerRef.current.textContent = '';
  };
  const onKey = (e: KeyboardEvent) => {
    const u = plot.current;
    if (!u || e.ctrlKey || e.metaKey || e.altKey || x.length === 0) return;
    const at = keyed.current?.t ?? null;
    const step = keyStep(e.key, e.shiftKey);
    const up = e.key === 'ArrowUp' ? 1 : e.key === 'ArrowDown' ? -1 : 0;
    if (step !== null) {
      const holds = (i: number) => lines.some((l) => !hidden.has(l.key) && l.values[i] != null);
      const idx = moveCursor(x, holds, [from, to], at, step);
      if (idx < 0) return;
      const stops = props.stops?.(idx).length ?? 0;
      keyed.current = { t: x[idx]!, stop: Math.max(0, Math.min(keyed.current?.stop ?? 0, stops - 1)) };
      point(u, true);
    } else if (up !== 0 && keyed.current && props.stops) {
      const last = props.stops(nearestIndex(x, keyed.current.t)).length - 1;
      keyed.current.stop = Math.max(0, Math.min(last, keyed.current.stop + up));
      point(u, true);
    } else if (e.key === 'Enter' && at !== null) {
      const idx = nearestIndex(x, at);
      if (props.onPick) props.onPick(u, idx, true);
      else props.onEnter?.(idx);
    } else if (e.key === '+' || e.key === '-') {
      group.setZoom(zoomAround([from, to], at ?? (from + to) / 2, [group.from, whole], e.key === '+'));
    } else if (e.key === '0') group.setZoom(null);
    else if (e.key === 'Escape' && at !== null) leave();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };

  useEffect(() => {
    const u = plot.current;
    if (!u) return;
    if (!inSight.current) {
      behind.current = true;
      return;
    }
    u.setData(data, true);
    // The cursor keeps its time while points move below it.
    point(u, false);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the cursor follows what is drawn, not what is rendered
  }, [data, from, to, decor]);

  const counted = useMemo(() => props.counted ?? outsideWarmup(x, decor.bands), [props.counted, x, decor.bands]);
  const of = useMemo(() => basis(x, counted, from, to), [x, counted, from, to]);
  const rows = useMemo(
    () =>
      lines.map((l) => ({
        line: l,
        stats: stats(l.values, x, from, to, of === 'measurement' ? counted : undefined),
      })),
    [lines, x, from, to, of, counted],
  );

  const toggle = (key: string, only: boolean) =>
    setHidden((h) => {
      if (only) {
        const others = lines.filter((l) => l.key !== key).map((l) => l.key);
        const isOnlyVisible = others.every((k) => h.has(k)) && !h.has(key);
        return isOnlyVisible ? new Set() : new Set(others);
      }
      const next = new Set(h);
      if (next.has(key)) next.delete(key);
      else if (next.size < lines.length - 1) next.add(key);
      return next;
    });

  const actions: (Action | null)[] = [
    {
      label: 'Save as PNG',
      icon: 'download',
      disabled: !ready,
      act: () => {
        const canvas = host.current?.querySelector('canvas');
        if (canvas)
          savePng(
            `${fileName(props.file, props.title)}.png`,
            canvas,
            {
              title: props.title,
              file: props.file,
              keys:
                props.legend === false
                  ? []
                  : lines.filter((l) => !hidden.has(l.key)).map((l) => ({ label: l.label, color: token(l.color) })),
            },
            {
              background: token('--surface'),
              ink: token('--text'),
              muted: token('--text-3'),
              font: token('--font'),
            },
          );
      },
    },
    {
      label: 'Save as CSV',
      icon: 'table',
      disabled: !ready,
      act: () => {
        const when = (t: number) => [t.toFixed(3), group.start ? new Date(group.start + t * 1000).toISOString() : ''];
        const { table } = props;
        const text = csv(
          ['elapsed_seconds', 'time', ...(table?.header ?? lines.map((l) => l.label))],
          table
            ? x.flatMap((t, i) => table.rows(i).map((r) => [...when(t), ...r]))
            : x.map((t, i) => [...when(t), ...lines.map((l) => l.values[i])]),
        );
        save(`${fileName(props.file, props.title)}.csv`, new Blob([text], { type: 'text/csv' }));
      },
    },
    ...(props.explore && !group.standalone
      ? [{ label: 'Open in Explore', icon: 'explore', act: () => navigate(props.explore!) }]
      : []),
    null,
    ...(props.canLog ? [{ label: 'Logarithmic axis', checked: log, act: () => setLog(!log) }] : []),
    ...(group.setAxis
      ? [
          {
            label: 'Wall-clock time',
            checked: group.axis === 'clock',
            act: () => group.setAxis?.(group.axis === 'clock' ? 'elapsed' : 'clock'),
          },
        ]
      : []),
    ...(group.zoom ? [{ label: 'Reset zoom', icon: 'zoomout', act: () => group.setZoom(null) }] : []),
  ];

  return (
    <section className="panel chart" aria-labelledby={titleId}>
      <header>
        <h2 className="h3" id={titleId}>
          {props.tip ? <Term tip={props.tip}>{props.title}</Term> : props.title}
        </h2>
        {props.note}
        <div className="end">
          {props.canLog && (
            <button
              type="button"
              className="btn quiet small"
              aria-pressed={log}
              title="Switch between a linear and a logarithmic axis"
              onClick={() => setLog(!log)}
            >
              {log ? 'log' : 'linear'}
            </button>
          )}
          <ActionsMenu small label={`More for ${props.title}`} actions={actions} />
        </div>
      </header>
      {ready ? (
        <>
          <div
            className="plot"
            role="application"
            aria-roledescription="chart over time"
            aria-label={capitalize(props.title)}
            aria-describedby={keysId}
            tabIndex={0}
            onKeyDown={(e) => onKey(e.nativeEvent)}
            onBlur={leave}
            onPointerMove={() => (keyed.current = null)}
          >
            <div ref={host} style={{ height }} aria-hidden="true" />
            <div ref={tipRef} className="chart-tip" aria-hidden="true" />
          </div>
          <div ref={announcerRef} className="sr" role="status" aria-live="polite" />
          <span id={keysId} hidden>
            Left and right move to the second before and after, Home and End to the first and last
            {props.stops && ', up and down between its cells'}
            {props.opens && `; Enter opens ${props.opens}`}; plus and minus zoom, 0 shows all.
          </span>
          {props.legend !== false && (
            <Legend
              rows={rows}
              of={of}
              zoomed={group.zoom !== null}
              hidden={hidden}
              format={format}
              loads={props.loads}
              onToggle={toggle}
            />
          )}
          {props.footer}
        </>
      ) : props.state?.pending ? (
        <div className="body" style={{ height: height + 40 }} aria-busy="true">
          <Skeleton height="100%" />
        </div>
      ) : props.state?.error ? (
        <Failed
          what="The history of this chart could not be read."
          error={props.state.error}
          retry={props.state.retry}
        />
      ) : (
        <div className="chart-empty" style={{ minHeight: height + 40 }}>
          <Empty tight title={props.emptyTitle ?? 'Nothing to draw yet'}>
            {props.empty ?? 'The curve starts with the first second of load.'}
          </Empty>
        </div>
      )}
    </section>
  );
}

function Legend(props: {
  rows: { line: Line; stats: Stats | null }[];
  of: Basis;
  zoomed: boolean;
  hidden: Set<string>;
  format: (n: number) => Quantity;
  loads?: boolean;
  onToggle: (key: string, only: boolean) => void;
}) {
  const overall = props.rows.some(({ line }) => line.overall != null);
  return (
    <div className="table-wrap">
      <table className="legend">
        <thead>
          <tr>
            <th>
              <span className="sr">Series</span>
              {props.of && (
                <span title="The period of these figures.">
                  {props.of === 'warm-up' ? 'warm-up only' : props.zoomed ? 'measurement, as zoomed' : 'measurement'}
                </span>
              )}
            </th>
            <th className="num">min</th>
            <th className="num">mean</th>
            <th className="num">max</th>
            <th className="num">last</th>
            {overall && (
              <th
                className="num"
                title={`Of all operations of the measurement together${props.loads ? ', under all of its loads' : ''}.`}
              >
                {props.loads ? 'all loads' : 'overall'}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {props.rows.map(({ line, stats: s }) => (
            <tr key={line.key} className={props.hidden.has(line.key) ? 'off' : ''}>
              <td>
                <button
                  type="button"
                  aria-pressed={!props.hidden.has(line.key)}
                  title="Click to hide or show. Double-click to show only this one."
                  onClick={() => props.onToggle(line.key, false)}
                  onDoubleClick={() => props.onToggle(line.key, true)}
                >
                  <i className={line.dash ? 'dashed' : ''} style={{ color: `var(${line.color})` }} />
                  {line.label}
                </button>
              </td>
              {(['min', 'mean', 'max', 'last'] as const).map((k) => (
                <td key={k} className="num">
                  {s ? <Num q={props.format(s[k])} /> : '–'}
                </td>
              ))}
              {overall && (
                <td className="num">{line.overall == null ? '–' : <Num q={props.format(line.overall)} />}</td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
