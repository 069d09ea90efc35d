// State labels, generated statements and diagram layout of the streams page.
import { duration } from '../design/format';
import type { FieldError, StreamCatalog, StreamQuery } from '../api/types';
import type { Mark } from '../design/icons';

type Shape = Parameters<typeof Mark>[0]['shape'];

interface StateLabel {
  label: string;
  tone: '' | 'ok' | 'warn' | 'bad';
  shape: Shape;
  what: string;
}

export const states: Record<StreamQuery['state'], StateLabel> = {
  PENDING: { label: 'Pending', tone: '', shape: 'ring', what: 'The query was accepted and has not started.' },
  DEPLOYING: { label: 'Deploying', tone: 'warn', shape: 'half', what: 'Its fragments are starting.' },
  RUNNING: { label: 'Running', tone: 'ok', shape: 'dot', what: 'All fragments are running.' },
  STOPPING: {
    label: 'Stopping',
    tone: 'warn',
    shape: 'half',
    what: 'The query was dropped. Its fragments are stopping.',
  },
  STOPPING_STUCK: {
    label: 'Stuck',
    tone: 'warn',
    shape: 'triangle',
    what: 'The query was dropped, but a worker has not confirmed it. Its name stays reserved until then.',
  },
  STOPPED: { label: 'Stopped', tone: '', shape: 'square', what: 'No fragment is running.' },
  TERMINATED: { label: 'Ended', tone: '', shape: 'square', what: 'Its sources have ended.' },
  TERMINATING: {
    label: 'Failing',
    tone: 'bad',
    shape: 'half',
    what: 'The query failed. Its other fragments are stopping.',
  },
  FAILED: {
    label: 'Failed',
    tone: 'bad',
    shape: 'cross',
    what: 'The query failed. It stays listed until you drop it.',
  },
  SUSPENDED: {
    label: 'Suspended',
    tone: 'bad',
    shape: 'square',
    what: 'Its owner lost the permission to run it. An operator with that permission can resume it.',
  },
};

/** hasEnded reports that no part of the query runs. */
export const hasEnded = (q: StreamQuery): boolean => ['STOPPED', 'TERMINATED', 'FAILED', 'SUSPENDED'].includes(q.state);

/** liveCounts are a running query's rates and lag; null after its end. */
export const liveCounts = (q: StreamQuery): StreamQuery['live'] => (hasEnded(q) ? null : q.live);

/** lagOf says how far the newest row is behind the clock. */
export function lagOf(q: StreamQuery): string {
  const ms = liveCounts(q)?.lag_ms;
  return ms == null ? '–' : ms < 1000 ? 'under 1 s' : duration(Math.round(ms / 1000));
}

/** lossCounts lists lost and quarantined rows by reason. */
export function lossCounts(q: StreamQuery): [string, number][] {
  const l = q.live;
  if (!l) return [];
  const all: [string, number][] = [
    ['late', l.late],
    ['in the future', l.ahead],
    ['without a time', l.timeless],
    ['malformed', l.malformed],
    ['dropped', l.dropped],
    ['divided by zero', l.division_by_zero],
    ['overflowed', l.overflow],
    ['with a failed cast', l.cast],
  ];
  return all.filter(([, n]) => n > 0);
}

/** splitFailure separates a failure from its hint. */
export function splitFailure(failure: string): [what: string, hint: string] {
  const [what, hint] = failure.split(/\s*\n\s*hint: /);
  return [what!, hint ? `${hint[0]!.toUpperCase()}${hint.slice(1)}${/[.!?]$/.test(hint) ? '' : '.'}` : ''];
}

/** summary is one line about all queries. */
export function summary(c: StreamCatalog): string {
  if (c.queries.length === 0) return 'No continuous queries.';
  const running = c.queries.filter((q) => q.state === 'RUNNING').length;
  const failed = c.queries.filter((q) => q.state === 'FAILED').length;
  const stuck = c.queries.filter((q) => q.state === 'STOPPING_STUCK').length;
  const waits = c.queries.filter((q) => q.trouble).length;
  const also = [
    failed && `${failed} failed`,
    stuck && `${stuck} stuck`,
    waits && (waits === 1 ? '1 sink accepts no rows' : `${waits} sinks accept no rows`),
  ].filter(Boolean);
  return `${[`${running} of ${c.queries.length} queries run`, ...also].join(', ')}.`;
}

/** quotedName quotes a name where SQL requires it. */
export const quotedName = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;

/** schemaOf writes the columns of a source or sink as in CREATE. */
export const schemaOf = (columns: StreamCatalog['sinks'][number]['columns']): string =>
  columns.map((c) => `${c.name} ${c.type}${c.not_null ? ' NOT NULL' : ''}`).join(', ');

// ---- requests

const token =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:\\[\s\S]|''|[^'\\])*'?|"(?:""|[^"])*"?|`[^`]*`?|;|[^;'"`/-]+|[\s\S]/g;

/** statementsOf returns the range of each statement, without its semicolon. */
export function statementsOf(text: string): { from: number; to: number }[] {
  const found: { from: number; to: number }[] = [];
  let from = 0;
  const add = (to: number) => {
    const part = text.slice(from, to);
    const bare = part.replace(/^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)+/, '');
    if (bare.trim() !== '') found.push({ from: to - bare.length, to: to - (bare.length - bare.trimEnd().length) });
  };
  for (const m of text.matchAll(token))
    if (m[0] === ';') {
      add(m.index);
      from = m.index + 1;
    }
  add(text.length);
  return found;
}

/** ShiftedRequest is a request made from a text, and the shift of one of its lines. */
interface ShiftedRequest {
  sql: string;
  line: number;
  shift: number;
}

const blank = (text: string) => text.replace(/[^\n]/g, ' ');

/**
 * explainRequest is EXPLAIN of a text's last query; null without one. The rest is blanked, so lines and columns stay. A
 * sink created by the same text does not exist yet: the query is explained without it.
 */
export function explainRequest(text: string, sinks: string[]): ShiftedRequest | null {
  const explain = 'EXPLAIN ';
  for (const { from, to } of statementsOf(text).reverse()) {
    const statement = text.slice(from, to);
    const head = /^(?:EXPLAIN\s+)?(?:CREATE\s+QUERY\s+(?:(?:"(?:[^"]|"")*"|`[^`]*`|\w+)\s+)?AS\s+)?(?=SELECT\b)/i.exec(
      statement,
    );
    if (!head) continue;
    let body = statement.slice(head[0].length);
    const into = /\bINTO\s+(?:"((?:[^"]|"")*)"|`([^`]*)`|(\w+))\s*$/i.exec(body);
    const sink = into?.[1] ?? into?.[2] ?? into?.[3];
    if (into && !sinks.some((s) => s.toLowerCase() === sink!.toLowerCase()) && creates(text, sink!))
      body = body.slice(0, into.index);
    const before = blank(text.slice(0, from + head[0].length));
    const lastLine = before.slice(before.lastIndexOf('\n') + 1);
    const line = before.split('\n').length;
    // With enough space before it on its line, nothing moves.
    if (lastLine.length >= explain.length)
      return { sql: before.slice(0, -explain.length) + explain + body, line, shift: 0 };
    return { sql: before + explain + body, line, shift: explain.length };
  }
  return null;
}

const creates = (text: string, sink: string) =>
  statementsOf(text).some(({ from, to }) => {
    const m = /^CREATE\s+SINK\s+(?:"([^"]*)"|`([^`]*)`|(\w+))/i.exec(text.slice(from, to));
    return m && (m[1] ?? m[2] ?? m[3])!.toLowerCase() === sink.toLowerCase();
  });

/** shiftErrors maps errors of the sent request back to the text. */
export const shiftErrors = (fields: FieldError[], request: ShiftedRequest): FieldError[] =>
  fields.map((f) =>
    f.line === request.line && f.column && f.column > request.shift ? { ...f, column: f.column - request.shift } : f,
  );

// ---- diagrams

interface Box {
  id: string;
  column: number;
  row: number;
  title: string;
  lines: string[];
  tone?: StateLabel['tone'];
  shape?: Shape;
  problem?: string;
}

export interface FlowDiagram {
  boxes: Box[];
  arrows: { from: string; to: string; label?: string }[];
}

const verbs = /^(Scan|Filter|Project|Aggregate|Join|Lag)\b\s*/;

/** planDiagram draws an EXPLAIN plan: the last step is first, its inputs are indented below. */
export function planDiagram(lines: string[]): FlowDiagram {
  const steps = lines.filter((l) => !l.startsWith('Fragment'));
  const depth = (l: string) => /^ */.exec(l)![0].length / 2;
  const deepest = Math.max(0, ...steps.map(depth));
  const boxes: Box[] = [];
  const arrows: FlowDiagram['arrows'] = [];
  const above: string[] = [];
  let row = 0;
  steps.forEach((l, i) => {
    const d = depth(l);
    const [text, verb] = [l.trim(), verbs.exec(l.trim())?.[1]];
    const id = `s${i}`;
    // A second input of a step has its own row.
    if (i > 0 && d <= depth(steps[i - 1]!)) row++;
    boxes.push({
      id,
      column: deepest - d,
      row,
      title: verb ?? text,
      lines: verb ? [text.slice(verb.length).trim()].filter(Boolean) : [],
    });
    if (d > 0) arrows.push({ from: id, to: above[d - 1]! });
    above[d] = id;
  });
  return { boxes, arrows };
}

/** queryDiagram draws a running query: sources, fragments and sink. */
export function queryDiagram(q: StreamQuery, c: StreamCatalog, rate: (n: number) => string, lag: string): FlowDiagram {
  const boxes: Box[] = [];
  const arrows: FlowDiagram['arrows'] = [];
  const place = (host: string) => (host && host !== 'server' ? [`on ${host}`] : []);
  const fragments = q.fragments.length > 0 ? q.fragments : [];
  const sink = c.sinks.find((s) => s.name.toLowerCase() === q.sink.toLowerCase());
  const quotedName = (host: string) => fragments.findIndex((f) => f.host_name === host);
  const last = Math.max(quotedName(sink?.placement || 'server'), 0);
  const two = fragments.length > 1;
  let row = 0;
  for (const s of c.sources)
    for (const p of s.physical.filter((p) => q.sources.includes(p.id))) {
      const id = `p${p.id}`;
      boxes.push({ id, column: 0, row: row++, title: s.name, lines: [`${p.type} ${p.id}`, ...place(p.placement)] });
      if (fragments.length > 0) arrows.push({ from: id, to: `f${Math.max(quotedName(p.placement || 'server'), 0)}` });
      else arrows.push({ from: id, to: 'sink' });
    }
  let extraHeight = 0;
  fragments.forEach((f, i) => {
    const s = fragmentWords[f.state];
    const end = i === last;
    boxes.push({
      id: `f${i}`,
      column: two && end ? 2 : 1,
      row: two && end ? 0 : extraHeight++,
      title: `Fragment on ${f.host_name}`,
      lines: [s.label + (f.attempts > 1 ? `, attempt ${f.attempts}` : ''), ...(end && liveCounts(q) ? [lag] : [])],
      tone: s.tone,
      shape: s.shape,
      problem: f.failure,
    });
    const sent = f.live ? { label: rate(f.live.out_per_second) } : {};
    if (two && !end) arrows.push({ from: `f${i}`, to: `f${last}`, ...sent });
  });
  const column = two ? 3 : 2;
  boxes.push({ id: 'sink', column, row: 0, title: q.sink, lines: [sink?.type ?? '', ...place(sink?.placement ?? '')] });
  if (fragments.length > 0) arrows.push({ from: `f${last}`, to: 'sink' });
  const flow = liveCounts(q);
  if (flow) {
    const into = arrows.find((a) => a.from.startsWith('p'));
    if (into) into.label = rate(flow.in_per_second);
    arrows.at(-1)!.label = rate(flow.out_per_second);
  }
  return { boxes, arrows };
}

const fragmentWords: Record<StreamQuery['fragments'][number]['state'], StateLabel> = {
  REGISTERED: { label: 'not started', tone: '', shape: 'ring', what: '' },
  STARTED: { label: 'starting', tone: 'warn', shape: 'half', what: '' },
  RUNNING: { label: 'running', tone: 'ok', shape: 'dot', what: '' },
  STOPPED: { label: 'stopped', tone: '', shape: 'square', what: '' },
  TERMINATED: { label: 'ended', tone: '', shape: 'square', what: '' },
  FAILED: { label: 'failed', tone: 'bad', shape: 'cross', what: '' },
};
