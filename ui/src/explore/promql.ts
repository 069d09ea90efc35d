// A tokenizer for PromQL and what the editor derives from it. Only the server parses.

import type { FieldError } from '../api/types';
import type { Completion, CompletionList, Piece } from '../editor/Editor';
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

/** tokens splits a text; joined, the tokens equal the text. */
export function tokens(text: string): Token[] {
  const all: Token[] = [];
  let bracket = false;
  for (let at = 0; at < text.length;) {
    let token: Token = { kind: 'sign', text: text[at]!, from: at };
    // Inside brackets a colon separates a subquery's range from its step.
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

/** colourPromql colours a text by line. */
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

/** nextToken skips spaces and comments. */
function nextToken(all: Token[], i: number): Token | undefined {
  for (let k = i + 1; k < all.length; k++) if (all[k]!.kind !== 'space' && all[k]!.kind !== 'comment') return all[k];
  return undefined;
}

/** isCall reports a function, an aggregation or a grouping. */
function isCall(all: Token[], i: number): boolean {
  const next = nextToken(all, i);
  if (next?.text === '(') return true;
  // sum by (kind) (…): the grouping may precede the operand.
  return all[i]!.text.toLowerCase() in aggregations && /^(?:by|without)$/i.test(next?.text ?? '');
}

type Place = 'expression' | 'matchers' | 'grouping' | 'range';

/** TokenContext is the innermost bracket around a token. */
interface TokenContext {
  place: Place;
  /** Index of the opening token. */
  opened: number;
}

/** tokenContexts tracks brackets; the last entry is the context at the end. */
function tokenContexts(all: Token[]): TokenContext[] {
  const stack: TokenContext[] = [{ place: 'expression', opened: -1 }];
  const out: TokenContext[] = [];
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

/** isMetric reports that a token is a selector's metric name. */
function isMetric(all: Token[], places: TokenContext[], i: number): boolean {
  const t = all[i]!;
  return t.kind === 'word' && places[i]!.place === 'expression' && !isWord.has(t.text.toLowerCase()) && !isCall(all, i);
}

/** withMatcher adds a matcher, such as run="…", to each selector. */
export function withMatcher(text: string, matcher: string): EditedText {
  const all = tokens(text);
  const places = tokenContexts(all);
  return applyEdits(
    text,
    all.flatMap((t, i) => {
      if (t.text === '{' && t.kind === 'sign') return [{ from: t.from + 1, to: t.from + 1, by: `${matcher},` }];
      if (!isMetric(all, places, i) || nextToken(all, i)?.text === '{') return [];
      const end = t.from + t.text.length;
      return [{ from: end, to: end, by: `{${matcher}}` }];
    }),
  );
}

/** EditedText is a changed text with a map back to the original offsets. */
export interface EditedText {
  text: string;
  before: (offset: number) => number;
}

interface Edit {
  from: number;
  to: number;
  by: string;
}

function applyEdits(text: string, edits: Edit[]): EditedText {
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

/** withVariables fills in the variables; the server rejects unknown ones. */
export function withVariables(text: string, values: Record<string, string>): EditedText {
  return applyEdits(
    text,
    tokens(text)
      .filter((t) => t.kind === 'variable' && t.text in values)
      .map((t) => ({ from: t.from, to: t.from + t.text.length, by: values[t.text]! })),
  );
}

/** quote writes a PromQL string. */
export function quote(text: string): string {
  const escaped = text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `"${escaped}"`;
}

const positionPattern = /(?:^|[\s:])(\d+):(\d+): (?:parse error: )?([\s\S]*)$/;

/** offsetOf converts a line and column, which the server counts in bytes, to a character offset. */
function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split('\n');
  const start = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  const bytes = new TextEncoder().encode(lines[line - 1] ?? '').slice(0, Math.max(0, column - 1));
  return start + new TextDecoder().decode(bytes).length;
}

/** errorAt maps a server error on the sent query to a position in the edited one; before maps offsets back. */
export function errorAt(message: string, sent: string, source: string, before: (o: number) => number): FieldError {
  const errorText = message.replace(/^invalid parameter "query": /, '');
  const m = positionPattern.exec(errorText);
  if (!m) return { field: 'query', message: errorText };
  const offset = Math.min(source.length, before(offsetOf(sent, Number(m[1]), Number(m[2]))));
  const above = source.slice(0, offset).split('\n');
  return { field: 'query', message: m[3]!, line: above.length, column: above.at(-1)!.length + 1 };
}

/** Names fetches names for completion. */
export interface Names {
  metrics: () => Promise<{ name: string; detail: string }[]>;
  /** Labels of the series a selector matches. */
  labels: (selector: string) => Promise<string[]>;
  values: (label: string, selector: string) => Promise<string[]>;
}

/** Caret describes what is at the caret. */
type Caret =
  | { at: 'nothing' }
  | { at: 'word'; from: number; word: string }
  | { at: 'range'; from: number; word: string }
  | { at: 'label'; from: number; word: string; selector: string; grouping: boolean }
  | { at: 'value'; from: number; word: string; selector: string; label: string; quote: string; closed: boolean };

const wordEnd = /[\w:$]*$/;

/** caretAt analyses what is being typed. */
export function caretAt(text: string, caret: number): Caret {
  const all = tokens(text.slice(0, caret));
  const places = tokenContexts(all);
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

/** matcherBefore returns the label whose value starts at token i, as in kind="…. */
function matcherBefore(all: Token[], i: number): string | undefined {
  const some = all.slice(0, i).filter((t) => t.kind !== 'space' && t.kind !== 'comment');
  while (some.length && /^[=!~]$/.test(some.at(-1)!.text)) some.pop();
  return some.at(-1)?.kind === 'word' ? some.at(-1)!.text : undefined;
}

/** selectorOf returns the selector opened by a token, with its complete matchers before end. */
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

const maxCompletions = 60;

/** matchingCompletions contain the word; those that begin with it come first. */
function matchingCompletions(all: Completion[], word: string): Completion[] {
  const prefix = word.toLowerCase();
  const rank = (o: Completion) => (o.label.toLowerCase().startsWith(prefix) ? 0 : 1);
  return all
    .filter((o) => o.label.toLowerCase().includes(prefix))
    .map((o, i) => ({ o, i }))
    .sort((a, b) => rank(a.o) - rank(b.o) || a.i - b.i)
    .map(({ o }) => o)
    .slice(0, maxCompletions);
}

const namedCompletions = (names: Record<string, string>, detail: string): Completion[] =>
  Object.entries(names).map(([name, takes]) => ({ text: `${name}(`, label: name, detail: `${detail} of (${takes})` }));

const fixed: Completion[] = [
  ...namedCompletions(aggregations, 'aggregation'),
  ...namedCompletions(functions, 'function'),
  ...words.map((w) => ({ text: groupings.includes(w) ? `${w} (` : w, label: w, detail: '' })),
];

/** promqlCompletions returns the completions at a caret. */
export async function promqlCompletions(
  text: string,
  caret: number,
  explicit: boolean,
  names: Names,
): Promise<CompletionList> {
  const c = caretAt(text, caret);
  if (c.at === 'nothing') return { from: caret, offers: [] };
  let all: Completion[] = [];
  switch (c.at) {
    case 'word': {
      if (!explicit && c.word === '') break;
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
  const offers = matchingCompletions(all, c.word);
  // A fully typed word needs no completion.
  const done = offers.length === 1 && offers[0]!.text === c.word;
  return { from: c.from, offers: done ? [] : offers };
}
