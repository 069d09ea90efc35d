import { type ReactNode, useEffect, useState } from 'react';
import { asProblem, type Problem } from '../api/client';
import { Icon } from './icons';
import { asSentence, fieldProblemText, problemText, retryText } from './sentences';

export function Skeleton({ width = '100%', height = 14 }: { width?: number | string; height?: number | string }) {
  return <span className="skeleton" style={{ width, height }} />;
}

/** SkeletonRows is the placeholder of a loading table. */
export function SkeletonRows({ rows = 6, height = 18 }: { rows?: number; height?: number }) {
  return (
    <div className="stack" style={{ padding: 16, gap: 18 }} aria-busy="true">
      {Array.from({ length: rows }, (_, i) => (
        <Skeleton key={i} height={height} width={`${96 - ((i * 7) % 24)}%`} />
      ))}
    </div>
  );
}

export function Empty(props: {
  icon?: string;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  tight?: boolean;
}) {
  return (
    <div className={`state${props.tight ? ' tight' : ''}`}>
      {props.icon && <Icon name={props.icon} size={28} />}
      <h2 className="h3">{props.title}</h2>
      {props.children && <p>{props.children}</p>}
      {props.actions && <div className="row">{props.actions}</div>}
    </div>
  );
}

export function Failed({ what, error, retry }: { what: string; error: unknown; retry?: () => unknown }) {
  const p = asProblem(error);
  return (
    <div className="state" role="alert">
      <Icon name="alert" size={28} />
      <h2 className="h3">{what}</h2>
      <p>{problemText(p)}</p>
      {retry && (
        <div className="row">
          <button type="button" className="btn" onClick={() => void retry()}>
            <Icon name="refresh" /> Try again
          </button>
        </div>
      )}
    </div>
  );
}

export type Tone = 'ok' | 'warn' | 'bad' | 'plain';

const toneIcon: Record<Tone, string> = { ok: 'check', warn: 'warn', bad: 'alert', plain: 'info' };

export function Notice({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <div className={`notice ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
      <Icon name={toneIcon[tone]} />
      <div className="grow">{children}</div>
    </div>
  );
}

/** RetryHint counts down to when a request that was refused for now can be repeated. */
export function RetryHint({ problem }: { problem: Problem }) {
  const [now, setNow] = useState(Date.now());
  const waiting = problem.retryAt > now;
  useEffect(() => {
    setNow(Date.now());
    if (problem.retryAt <= Date.now()) return;
    const t = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(t);
  }, [problem, waiting]);
  if (problem.status !== 429 || !problem.retryAt) return null;
  return <span className="retry-hint">{retryText(problem.retryAt, now)}</span>;
}

/** ProblemNotice shows an error: the sentence, the hint and the fields. */
export function ProblemNotice({ error }: { error: unknown }) {
  const p = asProblem(error);
  // The error of a single field may equal the message.
  const fields = p.fields.filter((f) => f.message !== p.message);
  return (
    <Notice tone="bad">
      <strong>{asSentence(p.message)}</strong> {asSentence(p.hint)} <RetryHint problem={p} />
      {fields.length > 0 && (
        <ul>
          {fields.map((f) => (
            <li key={f.field + f.message}>
              <code>{f.field}</code>: {fieldProblemText(f)}
            </li>
          ))}
        </ul>
      )}
    </Notice>
  );
}

interface QueryLike<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** Load handles the four states of fetched data: loading, failed, empty, ready. */
export function Load<T>(props: {
  from: QueryLike<T>;
  what: string;
  skeleton: ReactNode;
  empty?: (data: T) => ReactNode | null | false;
  children: (data: T) => ReactNode;
}) {
  const { from } = props;
  if (from.data !== undefined) return props.empty?.(from.data) || props.children(from.data);
  if (from.error) return <Failed what={props.what} error={from.error} retry={() => from.refetch()} />;
  return props.skeleton;
}
