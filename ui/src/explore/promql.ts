// What the page knows of PromQL: its tokens, and what follows from them. The server alone parses and judges.

import type { FieldError } from '../api/types';
import type { Offer, Offered, Piece } from '../editor/Editor';
import { aggregations, functions, groupings, ranges, variables, words } from './functions';

type Kind = 'space' | 'comment' | 'string' | 'number' | 'word' | 'variable' | 'sign';

export interface Token {
  kind: Kind;
  text: string;
  from: number;
}

const shapes: [RegExp, Kind][] = [
  [/\s+/y, 'space'],
  [/#[^\n]*/y, 'comment'],
  [/"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`[^`]*`?/y, 'string'],
  [/\$\w*/y, 'variable'],
  [/0[xX][\da-fA-F]+|(?:\d+(?:ms|[smhdwy]))+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y, 'number'],
  [/[A-Za-z_:][\w:]*/y, 'word'],
];

/** Cuts a text into tokens. Joined, they are the text again. */
export function tokens(text: string): Token[] {
  const all: Token[] = [];
  let bracket = false;
  for (let at = 0; at < text.length;) {
    let token: Token = { kind: 'sign', text: text[at]!, from: at };
    // Within brackets a colon divides the range of a subquery from its step.
    for (const [shape, kind] of bracket && text[at] === ':' ? [] : shapes) {
      shape.lastIndex = at;
      const m = shape.exec(text)?.[0];
      if (!m) continue;
      token = { kind, text: m, from: at };
      break;
    }
    if (token.text === '[' || token.text === ']') bracket = token.text === '[';
    all.push(token);
    at += token.text.length;
  }
  return all;
}

const isWord = new Set(words);

/** Colours a text, line by line. */
export function colourPromql(text: string): Piece[][] {
  const lines: Piece[][] = [[]];
  const all = tokens(text);
  for (const [i, t] of all.entries()) {
    const calls = t.kind === 'word' && (isCall(all, i) || isWord.has(t.text.toLowerCase()));
    const kind = calls || t.kind === 'variable' ? 'key' : /^(?:comment|string|number)$/.test(t.kind) ? t.kind : '';
    for (const [k, part] of t.text.split('\n').entries()) {
      if (k > 0) lines.push([]);
      const line = lines.at(-1)!;
      const last = line.at(-1);
      if (part === '') continue;
      if (last && last.kind === kind) last.text += part;
      else line.push({ text: part, kind });
    }
  }
  return lines;
}

/** The next token that is neither space nor comment. */
function after(all: Token[], i: number): Token | undefined {
  for (let k = i + 1; k < all.length; k++) if (all[k]!.kind !== 'space' && all[k]!.kind !== 'comment') return all[k];
  return undefined;
}

/** Whether a word is that of a function, an aggregation or a grouping. */
function isCall(all: Token[], i: number): boolean {
  const next = after(all, i);
  if (next?.text === '(') return true;
  // sum by (kind) (…): the grouping may stand before what is aggregated.
  return all[i]!.text.toLowerCase() in aggregations && /^(?:by|without)$/i.test(next?.text ?? '');
}

type Place = 'expression' | 'matchers' | 'grouping' | 'range';

/** What surrounds each token: the innermost bracket, and where it was opened. */
interface Around {
  place: Place;
  /** The token that opened it. */
  opened: number;
}

/** Follows the brackets of a text; the last entry is what surrounds its end. */
function around(all: Token[]): Around[] {
  const stack: Around[] = [{ place: 'expression', opened: -1 }];
  const out: Around[] = [];
  let before: Token | undefined;
  for (const [i, t] of all.entries()) {
    out.push(stack.at(-1)!);
    if (t.kind === 'space' || t.kind === 'comment') continue;
    if (t.kind === 'sign') {
      if (t.text === '{') stack.push({ place: 'matchers', opened: i });
      else if (t.text === '[') stack.push({ place: 'range', opened: i });
      else if (t.text === '(') {
        const grouped = before?.kind === 'word' && groupings.includes(before.text.toLowerCase());
        stack.push({ place: grouped ? 'grouping' : 'expression', opened: i });
      } else if (/[})\]]/.test(t.text) && stack.length > 1) stack.pop();
    }
    before = t;
  }
  out.push(stack.at(-1)!);
  return out;
}

/** Whether a token names the metric of a selector. */
function isMetric(all: Token[], places: Around[], i: number): boolean {
  const t = all[i]!;
  return t.kind === 'word' && places[i]!.place === 'expression' && !isWord.has(t.text.toLowerCase()) && !isCall(all, i);
}

/** The text with one more matcher, such as run="…", in each of its selectors. */
export function withMatcher(text: string, matcher: string): Changed {
  const all = tokens(text);
  const places = around(all);
  return change(
    text,
    all.flatMap((t, i) => {
      if (t.text === '{' && t.kind === 'sign') return [{ from: t.from + 1, to: t.from + 1, by: `${matcher},` }];
      if (!isMetric(all, places, i) || after(all, i)?.text === '{') return [];
      const end = t.from + t.text.length;
      return [{ from: end, to: end, by: `{${matcher}}` }];
    }),
  );
}

/** A text that was changed, and where its characters were before. */
export interface Changed {
  text: string;
  before: (offset: number) => number;
}

interface Edit {
  from: number;
  to: number;
  by: string;
}

function change(text: string, edits: Edit[]): Changed {
  let out = '';
  let at = 0;
  const moved: { from: number; to: number; was: Edit }[] = [];
  for (const e of edits) {
    out += text.slice(at, e.from);
    moved.push({ from: out.length, to: out.length + e.by.length, was: e });
    out += e.by;
    at = e.to;
  }
  return {
    text: out + text.slice(at),
    before: (offset) => {
      const last = moved.findLast((m) => m.from <= offset);
      if (!last) return offset;
      return offset < last.to ? last.was.from : last.was.to + offset - last.to;
    },
  };
}

/** The text with its variables filled in; others are left for the server to refuse. */
export function withVariables(text: string, values: Record<string, string>): Changed {
  return change(
    text,
    tokens(text)
      .filter((t) => t.kind === 'variable' && t.text in values)
      .map((t) => ({ from: t.from, to: t.from + t.text.length, by: values[t.text]! })),
  );
}

/** A text in quotes, as PromQL reads it. */
export function quote(text: string): string {
  const escaped = text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `"${escaped}"`;
}

const placed = /(?:^|[\s:])(\d+):(\d+): (?:parse error: )?([\s\S]*)$/;

/** The offset in characters of a line and a column, which the server counts in bytes. */
function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  const start = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  const bytes = new TextEncoder().encode(lines[line - 1] ?? '').slice(0, Math.max(0, column - 1));
  return start + new TextDecoder().decode(bytes).length;
}

/**
 * What the server said of a text, at its place in the text that was written. asked is what was sent, before leads from
 * a place in it to the one in what was written.
 */
export function errorAt(message: string, asked: string, written: string, before: (o: number) => number): FieldError {
  const said = message.replace(/^invalid parameter "query": /, '');
  const m = placed.exec(said);
  if (!m) return { field: 'query', message: said };
  const offset = Math.min(written.length, before(offsetOf(asked, Number(m[1]), Number(m[2]))));
  const above = written.slice(0, offset).split('\n');
  return { field: 'query', message: m[3]!, line: above.length, column: above.at(-1)!.length + 1 };
}

/** What completion asks for: names that the server knows. */
export interface Names {
  metrics: () => Promise<{ name: string; detail: string }[]>;
  /** Of series that a selector selects. */
  labels: (selector: string) => Promise<string[]>;
  values: (label: string, selector: string) => Promise<string[]>;
}

/** Where a caret stands. */
export type Caret =
  | { at: 'nothing' }
  | { at: 'word'; from: number; word: string }
  | { at: 'range'; from: number; word: string }
  | { at: 'label'; from: number; word: string; selector: string; grouping: boolean }
  | { at: 'value'; from: number; word: string; selector: string; label: string; quote: string; closed: boolean };

const wordEnd = /[\w:$]*$/;

/** Says what is being written at a caret. */
export function caretAt(text: string, caret: number): Caret {
  const all = tokens(text.slice(0, caret));
  const places = around(all);
  const last = all.at(-1);
  if (last?.kind === 'comment') return { at: 'nothing' };
  const here = places.at(-1)!;
  const open = last?.kind === 'string' && !closed(last.text);
  const word = open ? '' : wordEnd.exec(text.slice(0, caret))![0];
  const from = caret - word.length;
  if (open) {
    if (here.place !== 'matchers') return { at: 'nothing' };
    const label = matcherBefore(all, all.length - 1);
    if (!label) return { at: 'nothing' };
    return {
      at: 'value',
      from: last.from + 1,
      word: last.text.slice(1),
      selector: selectorOf(all, here.opened, all.length - 1),
      label,
      quote: last.text[0]!,
      closed: text[caret] === last.text[0],
    };
  }
  switch (here.place) {
    case 'range':
      return { at: 'range', from, word };
    case 'grouping':
      return { at: 'label', from, word, selector: '', grouping: true };
    case 'matchers': {
      const sign = all.slice(here.opened).findLast((t) => t.kind === 'sign');
      if (sign && !/[{,]/.test(sign.text)) return { at: 'nothing' };
      return { at: 'label', from, word, selector: selectorOf(all, here.opened, all.length - 1), grouping: false };
    }
  }
  return /^\d/.test(word) ? { at: 'nothing' } : { at: 'word', from, word };
}

function closed(text: string): boolean {
  return text.length > 1 && text.at(-1) === text[0] && (text[0] === '`' || !/(?:^|[^\\])(?:\\\\)*\\.$/.test(text));
}

/** The label whose value begins with the token i, as in kind="…. */
function matcherBefore(all: Token[], i: number): string | undefined {
  const some = all.slice(0, i).filter((t) => t.kind !== 'space' && t.kind !== 'comment');
  while (some.length && /^[=!~]$/.test(some.at(-1)!.text)) some.pop();
  return some.at(-1)?.kind === 'word' ? some.at(-1)!.text : undefined;
}

/** The selector whose braces were opened by a token, with the matchers that are whole before the token end. */
function selectorOf(all: Token[], opened: number, end: number): string {
  const before = all.slice(0, opened).findLast((t) => t.kind !== 'space' && t.kind !== 'comment');
  const metric = before?.kind === 'word' ? before.text : '';
  let whole = '';
  let part = '';
  for (const t of all.slice(opened + 1, end)) {
    if (t.text === ',' && t.kind === 'sign') [whole, part] = [`${whole}${part},`, ''];
    else part += t.text;
  }
  return metric || whole ? `${metric}{${whole}}` : '';
}

const most = 60;

/** Those that have the word in them, such as begin with it first. */
function fitting(all: Offer[], word: string): Offer[] {
  const asked = word.toLowerCase();
  const rank = (o: Offer) => (o.label.toLowerCase().startsWith(asked) ? 0 : 1);
  return all
    .filter((o) => o.label.toLowerCase().includes(asked))
    .map((o, i) => ({ o, i }))
    .sort((a, b) => rank(a.o) - rank(b.o) || a.i - b.i)
    .map(({ o }) => o)
    .slice(0, most);
}

const called = (names: Record<string, string>, detail: string): Offer[] =>
  Object.entries(names).map(([name, takes]) => ({ text: `${name}(`, label: name, detail: `${detail} of (${takes})` }));

const fixed: Offer[] = [
  ...called(aggregations, 'aggregation'),
  ...called(functions, 'function'),
  ...words.map((w) => ({ text: groupings.includes(w) ? `${w} (` : w, label: w, detail: '' })),
];

/** What may stand at a caret. */
export async function offersAt(text: string, caret: number, asked: boolean, names: Names): Promise<Offered> {
  const c = caretAt(text, caret);
  if (c.at === 'nothing') return { from: caret, offers: [] };
  let all: Offer[] = [];
  switch (c.at) {
    case 'word': {
      if (!asked && c.word === '') break;
      const metrics = await names.metrics();
      all = [...metrics.map((m) => ({ text: m.name, label: m.name, detail: m.detail })), ...fixed];
      break;
    }
    case 'range':
      all = ranges.map((r) => ({ text: r, label: r, detail: variables[r] ?? '' }));
      break;
    case 'label': {
      const labels = (await names.labels(c.selector)).filter((l) => l !== '__name__');
      all = labels.map((l) => ({ text: c.grouping ? l : `${l}="`, label: l, detail: 'label' }));
      break;
    }
    case 'value': {
      const values = await names.values(c.label, c.selector);
      const text = (v: string) => {
        const escaped = c.quote === '`' ? v : quote(v).slice(1, -1);
        return c.closed ? escaped : escaped + c.quote;
      };
      all = values.map((v) => ({ text: text(v), label: v, detail: c.label }));
    }
  }
  const offers = fitting(all, c.word);
  // What is written out already need not be offered.
  const done = offers.length === 1 && offers[0]!.text === c.word;
  return { from: c.from, offers: done ? [] : offers };
}
