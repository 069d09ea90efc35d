import { parseExactly } from './numbers';

/**
 * unsafe matches characters that are invisible or change how the text around them reads: controls, bidirectional marks,
 * zero-width and format characters, fillers, unpaired surrogates.
 */
const unsafe = /[\p{Cf}\p{Cs}\u034F\u115F\u1160\u17B4\u17B5\u2028\u2029\u3164\uFFA0]|(?![\n\t])\p{Cc}/u;
const unsafeRuns = new RegExp(`(?:${unsafe.source})+`, 'gu');

/** Joiners belong to emoji and to scripts that use them; elsewhere they hide. */
const scripts = ['Arabic', 'Syriac', 'Devanagari', 'Bengali', 'Gujarati', 'Kannada', 'Malayalam', 'Sinhala', 'Tamil'];
const joins =
  '[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\uFE0F' +
  `${[...scripts, 'Telugu'].map((s) => `\\p{Script=${s}}`).join('')}]`;
const joiner = new RegExp(`(?<=${joins})[\\u200C\\u200D](?=${joins})`, 'gu');

/** maxTextLength is the limit for untrusted text; statements and documents may be longer. */
export const maxTextLength = 4_000;
const maxDocumentLength = 100_000;
const documentKeys = /^(sql|ddl|query|source|statement|statements|session|fix|dsn|definition|plan|qr_svg)$/;

/**
 * safeText makes untrusted text safe to show: unsafe characters become �, so names that differ only by them look
 * different. Long text is cut.
 */
export function safeText(text: string, limit = maxTextLength): string {
  let out = text;
  if (unsafe.test(out)) {
    const emoji: string[] = [];
    out = out
      .replaceAll('\r\n', '\n')
      .replace(joiner, (j) => (emoji.push(j), '\uE000'))
      .replace(unsafeRuns, '\uFFFD')
      .replace(/\uE000/g, () => emoji.shift() ?? '\uE000');
  }
  if (out.length <= limit) return out;
  const cut = out.slice(0, limit).replace(/[\uD800-\uDBFF]$/, '');
  return `${cut}… (${(out.length - cut.length).toLocaleString('en-US')} more characters)`;
}

/** TextSpan is a run of characters that are all safe, or all hidden. */
interface TextSpan {
  text: string;
  isHidden: boolean;
}

/** textSpans splits a text; the joined spans equal the text. */
export function textSpans(text: string): TextSpan[] {
  if (!unsafe.test(text)) return [{ text, isHidden: false }];
  const joins = new Set([...text.matchAll(joiner)].map((m) => m.index));
  const out: TextSpan[] = [];
  let from = 0;
  const push = (to: number, isHidden: boolean) => {
    if (to > from) out.push({ text: text.slice(from, to), isHidden });
    from = to;
  };
  for (const { 0: hidden, index } of text.matchAll(unsafeRuns)) {
    const end = index + hidden.length;
    const ofALine = hidden === '\r' && (end === text.length || text[end] === '\n');
    if (ofALine || (hidden.length === 1 && joins.has(index))) continue;
    push(index, false);
    push(end, true);
  }
  push(text.length, false);
  return out;
}

/** codePoints names hidden characters: U+202E. */
export const codePoints = (text: string) =>
  [...new Set([...text].map((c) => `U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`))].join(', ');

/** Documents the user edits and sends back; they are kept unchanged. */
const editableKeys = new Set(['config', 'source', 'scenario_config', 'definition']);

function clean(value: unknown, limit: number, edits: boolean): unknown {
  if (typeof value === 'string') return safeText(value, limit);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = clean(value[i], limit, edits);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([k, v]: [string, unknown]): [string, unknown] => [
    safeText(k, maxTextLength),
    edits && editableKeys.has(k) ? v : clean(v, documentKeys.test(k) ? maxDocumentLength : limit, edits),
  ]);
  return Object.fromEntries(entries);
}

/**
 * parseResponse parses a response. With edits, editable documents stay as stored; with digits, numbers that JavaScript
 * cannot represent become strings.
 */
export function parseResponse(text: string, edits = false, digits = false): unknown {
  return clean(digits ? parseExactly(text) : JSON.parse(text), maxTextLength, edits);
}
