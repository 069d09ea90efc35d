import { parseExactly } from './numbers';

/**
 * What would change how the text around it reads, or what nobody sees: controls, bidirectional
 * marks, zero-width and other format characters, fillers, halves of pairs.
 */
const unsafe = /[\p{Cf}\p{Cs}\u034F\u115F\u1160\u17B4\u17B5\u2028\u2029\u3164\uFFA0]|(?![\n\t])\p{Cc}/u;
const each = new RegExp(`(?:${unsafe.source})+`, 'gu');

/** Joiners belong to emoji and to scripts whose letters join; between others they hide. */
const scripts = ['Arabic', 'Syriac', 'Devanagari', 'Bengali', 'Gujarati', 'Kannada', 'Malayalam', 'Sinhala', 'Tamil'];
const joins =
  '[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\uFE0F' +
  `${[...scripts, 'Telugu'].map((s) => `\\p{Script=${s}}`).join('')}]`;
const joiner = new RegExp(`(?<=${joins})[\\u200C\\u200D](?=${joins})`, 'gu');

/** The most characters of a text of others; statements and their like may be longer. */
export const mostShown = 4_000;
const mostWhole = 100_000;
const whole = /^(sql|ddl|query|source|statement|statements|session|fix|dsn|definition|plan|qr_svg)$/;

/**
 * A text of others, of a database, a plugin, another user, as the page may show it: what is in unsafe
 * is shown as �, so that two names that differ only by it do not look the same; what is too long is cut.
 */
export function harmless(text: string, most = mostShown): string {
  let out = text;
  if (unsafe.test(out)) {
    const kept: string[] = [];
    out = out
      .replaceAll('\r\n', '\n')
      .replace(joiner, (j) => (kept.push(j), '\uE000'))
      .replace(each, '\uFFFD')
      .replace(/\uE000/g, () => kept.shift() ?? '\uE000');
  }
  if (out.length <= most) return out;
  const cut = out.slice(0, most).replace(/[\uD800-\uDBFF]$/, '');
  return `${cut}… (${(out.length - cut.length).toLocaleString('en-US')} more characters)`;
}

/** A stretch of a text: one that can be shown as it is, or one that nobody sees or that would turn what is around. */
export interface Stretch {
  text: string;
  unseen: boolean;
}

/** Cuts a text into stretches; joined, they are the text again. What harmless leaves as it is can be shown. */
export function stretches(text: string): Stretch[] {
  if (!unsafe.test(text)) return [{ text, unseen: false }];
  const joins = new Set([...text.matchAll(joiner)].map((m) => m.index));
  const out: Stretch[] = [];
  let from = 0;
  const push = (to: number, unseen: boolean) => {
    if (to > from) out.push({ text: text.slice(from, to), unseen });
    from = to;
  };
  for (const { 0: odd, index } of text.matchAll(each)) {
    const end = index + odd.length;
    const ofALine = odd === '\r' && (end === text.length || text[end] === '\n');
    if (ofALine || (odd.length === 1 && joins.has(index))) continue;
    push(index, false);
    push(end, true);
  }
  push(text.length, false);
  return out;
}

/** The names of the characters of a stretch that nobody sees: U+202E. */
export const codePoints = (text: string) =>
  [...new Set([...text].map((c) => `U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`))].join(', ');

/** What its user edits and sends back: it is kept as it is. */
const edited = new Set(['config', 'source', 'scenario_config', 'definition']);

function clean(value: unknown, most: number, edits: boolean): unknown {
  if (typeof value === 'string') return harmless(value, most);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = clean(value[i], most, edits);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([k, v]: [string, unknown]): [string, unknown] => [
    harmless(k, mostShown),
    edits && edited.has(k) ? v : clean(v, whole.test(k) ? mostWhole : most, edits),
  ]);
  return Object.fromEntries(entries);
}

/**
 * Reads an answer of the server. With edits, the documents in it that its user may change are as they are stored. With
 * digits, numbers that JavaScript cannot hold are texts.
 */
export function read(text: string, edits = false, digits = false): unknown {
  return clean(digits ? parseExactly(text) : JSON.parse(text), mostShown, edits);
}
