import { CopyButton } from '../design/Controls';
import { sentence } from '../design/format';
import { said } from '../design/said';
import { statementIn } from './grant';

/** What a check of the preflight says to do. SQL in it can be copied. */
export function Fix({ text: told }: { text: string }) {
  const text = said(told);
  if (text.includes('\n')) return <pre className="muted">{text}</pre>;
  const { before, sql, after } = statementIn(text);
  if (!sql) return <span className="muted"> {sentence(text)}.</span>;
  return (
    <span className="muted">
      {before && ` ${sentence(before)}`}
      <span className="fix">
        <code>{sql}</code>
        <CopyButton text={sql} label="Copy the statement" />
      </span>
      {after && `${after}.`}
    </span>
  );
}
