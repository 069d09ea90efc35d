import { codePoints, textSpans } from '../api/safeText';

/**
 * VisibleText shows a text in storage order with a mark for each hidden or direction-changing character. The edited
 * text below it is unchanged.
 */
export function VisibleText({ text }: { text: string }) {
  return textSpans(text).map((s, i) =>
    s.isHidden ? <i key={i} className="unseen" data-code={codePoints(s.text)} /> : s.text,
  );
}
