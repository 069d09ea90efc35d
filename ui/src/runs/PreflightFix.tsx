import { CopyButton } from '../design/Controls';
import { capitalize } from '../design/format';
import { serverText } from '../design/sentences';
import { splitFix } from './permission';

/** PreflightFix shows a preflight check's fix; its SQL can be copied. */
export function PreflightFix({ text: fix }: { text: string }) {
  const text = serverText(fix);
  if (text.includes('\n')) return <pre className="muted">{text}</pre>;
  const { before, sql, after } = splitFix(text);
  if (!sql) return <span className="muted"> {capitalize(text)}.</span>;
  return (
    <span className="muted">
      {before && ` ${capitalize(before)}`}
      <span className="fix">
        <code>{sql}</code>
        <CopyButton text={sql} label="Copy the statement" />
      </span>
      {after && `${after}.`}
    </span>
  );
}
