import { timeOfDay } from './format';

/** pageWording replaces command-line instructions by the page's controls. */
const pageWording: [RegExp, string][] = [
  // The field repeats the sentence; the page asks with a dialog.
  [/\.? (?:target|matrix\.targets\[\d+\])\.allow_writes: is not set; .*$/s, '. “Run again” asks whether it may.'],
  [
    /allow it with --allow-writes, or target\.allow_writes: true/gi,
    'allow it when “Start run” asks, or with “Writes to existing tables” in the template',
  ],
];

/** lostRange matches lost executions between two timestamps. */
const lostRange = /\b(executions from )(\d{4}-[\d:.T-]+Z)( to )(\d{4}-[\d:.T-]+Z)/g;

/** serverText adapts a server sentence for the page: page controls and local times. */
export function serverText(text: string): string {
  let out = text.replace(lostRange, (_, a: string, from: string, b: string, to: string) =>
    [a, timeOfDay(from), b, timeOfDay(to)].join(''),
  );
  for (const [what, instead] of pageWording) out = out.replace(what, instead);
  return out;
}

/** withPeriod ends a text with a period; a multi-line database message stays unchanged. */
const withPeriod = (text: string) =>
  text === '' || text.includes('\n') || /[.!?…:]["”’)]*$/.test(text) ? text : `${text}.`;

/** plainStart matches a first word that may be capitalized; field names, commands and addresses keep their case. */
const plainStart = /^(?!loadstone\b)[a-z][a-z’'-]*(?=[\s,;]|[.!?]?$|[.!?]\s)/;

/** asSentence capitalizes and ends a text: server messages are written to follow a colon, too. */
export function asSentence(text = ''): string {
  const t = text.trim();
  return withPeriod(plainStart.test(t) && !t.includes('\n') ? t[0]!.toUpperCase() + t.slice(1) : t);
}

interface ProblemParts {
  message: string;
  hint?: string;
}

/** problemText is the message and the hint as two sentences. */
export const problemText = (p: ProblemParts) => `${asSentence(p.message)} ${asSentence(p.hint)}`.trim();

/** fieldProblemText is problemText after a field name, so its first word is not capitalized. */
export const fieldProblemText = (p: ProblemParts) => `${withPeriod(p.message.trim())} ${asSentence(p.hint)}`.trim();

/** retryText says when a request that was refused for now can be repeated. */
export function retryText(retryAt: number, now: number): string {
  const left = Math.ceil((retryAt - now) / 1000);
  return left > 0 ? `You can try again in ${left} s.` : 'You can try again now.';
}
