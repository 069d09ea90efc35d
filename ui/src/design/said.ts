import { timeOfDay } from './format';

/** What the server says for the command line, and what the page has in its place. */
const controls: [RegExp, string][] = [
  // The field repeats the sentence; the page has a button that asks.
  [/\.? (?:target|matrix\.targets\[\d+\])\.allow_writes: is not set; .*$/s, '. “Run again” asks whether it may.'],
  [
    /allow it with --allow-writes, or target\.allow_writes: true/gi,
    'allow it when “Start run” asks, or with “Tables of others” in the template',
  ],
  [
    /Give its certificate with sslrootcert=\S+, or use sslmode=require to/g,
    'Paste its certificate under “Certificates”, or choose “require” under TLS to',
  ],
  [/, or give a CSV file with --feed FILE\.csv/g, ', or give a CSV file under “Operations from” in the template'],
];

/** "1 other run(s) were" and "3 worker(s)" become "1 other run was" and "3 workers". */
const counted = /(?<![\w.,])(\d[\d,.]*)((?: [\w-]+){0,2}?) ([\w-]+)\(s\)(?: (were|are|have)\b)?/g;
const singular: Record<string, string> = { were: 'was', are: 'is', have: 'has' };

/** What a run has lost, between moments as the server writes them. */
const lost = /\b(executions from )(\d{4}-[\d:.T-]+Z)( to )(\d{4}-[\d:.T-]+Z)/g;

/**
 * A sentence of the server's as the page says it: with the page's own controls, moments of the run by the reader's
 * clock, and nouns in their number.
 */
export function said(text: string): string {
  let out = text.replace(lost, (_, a: string, from: string, b: string, to: string) =>
    [a, timeOfDay(from), b, timeOfDay(to)].join(''),
  );
  for (const [what, instead] of controls) out = out.replace(what, instead);
  return out.replace(counted, (_, n: string, before: string, noun: string, verb?: string) => {
    const tail = verb ? ` ${n === '1' ? singular[verb] : verb}` : '';
    return `${n}${before} ${noun}${n === '1' ? '' : 's'}${tail}`;
  });
}

/** A text with an end: a sentence of a database that has lines stays as it came. */
const ended = (text: string) =>
  text === '' || text.includes('\n') || /[.!?…:]["”’)]*$/.test(text) ? text : `${text}.`;

/** What begins a sentence as it is: names of fields, commands and addresses keep their letters. */
const ordinary = /^(?!loadstone\b)[a-z][a-z’'-]*(?=[\s,;]|[.!?]?$|[.!?]\s)/;

/** A text as a sentence, wherever it comes from: "it may have been deleted" is written to follow a colon, too. */
export function stated(text = ''): string {
  const t = text.trim();
  return ended(ordinary.test(t) && !t.includes('\n') ? t[0]!.toUpperCase() + t.slice(1) : t);
}

interface Refusal {
  message: string;
  hint?: string;
}

/** What is wrong and what to do about it, in two sentences. */
export const told = (p: Refusal) => `${stated(p.message)} ${stated(p.hint)}`.trim();

/** The same behind the name of a field, which the first one goes on from. */
export const toldOf = (p: Refusal) => `${ended(p.message.trim())} ${stated(p.hint)}`.trim();
