// Warnings about hidden characters in a template, which is edited as stored.
import { codePoints, safeText, textSpans } from '../api/safeText';
import type { ScenarioDraft } from '../api/types';
import type { Finding } from './findings';

const hiddenNames = (text: string) =>
  textSpans(text)
    .filter((s) => s.isHidden)
    .map((s) => s.text)
    .join('');

const isGroup = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);

/** hiddenCharacterWarnings finds texts with invisible or direction-changing characters. */
export function hiddenCharacterWarnings(config: ScenarioDraft): Finding[] {
  const found: Finding[] = [];
  const look = (text: string, field: string) => {
    const chars = hiddenNames(text);
    if (chars)
      found.push({
        field: safeText(field),
        message: `contains invisible characters: ${codePoints(chars)}`,
        hint: 'remove them unless they are intended',
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

/** removeHiddenCharacters cleans a text, or all texts and keys of a document. */
export function removeHiddenCharacters<T>(v: T): T {
  const clean = (o: unknown): unknown => {
    if (typeof o === 'string')
      return textSpans(o)
        .map((s) => (s.isHidden ? '' : s.text))
        .join('');
    if (Array.isArray(o)) return o.map(clean);
    if (isGroup(o)) return Object.fromEntries(Object.entries(o).map(([k, x]) => [clean(k) as string, clean(x)]));
    return o;
  };
  return clean(v) as T;
}
