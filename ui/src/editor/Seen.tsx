import { codePoints, stretches } from '../api/harmless';

/**
 * A stretch of a text that is being edited, in the order in which it is stored: a mark stands where a character is that
 * nobody sees, or that would turn around what follows. The text below it that is written stays as it is.
 */
export function Seen({ text }: { text: string }) {
  return stretches(text).map((s, i) =>
    s.unseen ? <i key={i} className="unseen" data-code={codePoints(s.text)} /> : s.text,
  );
}
