// What of a template nobody sees: it is edited as it is stored, so that it is said where it stands.
import { codePoints, harmless, stretches } from '../api/harmless';
import type { Sketch } from '../api/types';
import type { Finding } from './findings';

const odd = (text: string) =>
  stretches(text)
    .filter((s) => s.unseen)
    .map((s) => s.text)
    .join('');

const isGroup = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);

/** The texts of a document with characters that nobody sees, or that turn the text around them: warnings. */
export function unseenTexts(config: Sketch): Finding[] {
  const found: Finding[] = [];
  const look = (text: string, field: string) => {
    const chars = odd(text);
    if (chars)
      found.push({
        field: harmless(field),
        message: `has characters that nobody sees, or that turn the text around: ${codePoints(chars)}`,
        hint: 'take them out, unless they belong there',
        warning: true,
      });
  };
  const walk = (v: unknown, field: string) => {
    if (typeof v === 'string') look(v, field);
    else if (Array.isArray(v)) v.forEach((o, i) => walk(o, `${field}[${i}]`));
    else if (isGroup(v))
      for (const [k, o] of Object.entries(v)) {
        const within = field ? `${field}.${k}` : k;
        look(k, within);
        walk(o, within);
      }
  };
  walk(config, '');
  return found;
}

/** A text, or all texts and names of a document, without such characters. */
export function withoutUnseen<T>(v: T): T {
  const clean = (o: unknown): unknown => {
    if (typeof o === 'string')
      return stretches(o)
        .map((s) => (s.unseen ? '' : s.text))
        .join('');
    if (Array.isArray(o)) return o.map(clean);
    if (isGroup(o)) return Object.fromEntries(Object.entries(o).map(([k, x]) => [clean(k) as string, clean(x)]));
    return o;
  };
  return clean(v) as T;
}
