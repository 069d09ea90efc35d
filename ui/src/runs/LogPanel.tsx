import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { LogEntry, LogLevel } from '../api/types';
import { fileName, save } from '../charts/export';
import { ActionsMenu, Segments } from '../design/Controls';
import { count, plain, timeOfDay } from '../design/format';
import { Mark } from '../design/icons';
import { serverText } from '../design/sentences';
import { Empty, Failed, SkeletonRows } from '../design/States';
import { filterByLevel } from './logs';

const levels = [
  { value: 'INFO', label: 'All' },
  { value: 'WARNING', label: 'Warnings' },
  { value: 'ERROR', label: 'Errors' },
] as const;

/** recentLines is the limit while following, maxLines the overall limit: an open page must not grow. */
const recentLines = 200;
const maxLines = 1500;

const shapes = { INFO: 'ring', WARNING: 'triangle', ERROR: 'cross', CRITICAL: 'cross' } as const;

/** LogPanel shows a run's log. It renders when lines arrive, not every second. */
export const LogPanel = memo(function LogPanel(props: {
  logs: LogEntry[];
  state: { pending: boolean; error: unknown; retry: () => void };
  dropped: number;
  follow: boolean;
  file: string;
  tall?: boolean;
}) {
  const [level, setLevel] = useState<LogLevel>('INFO');
  const [following, setFollowing] = useState(props.follow);
  const box = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => filterByLevel(level, props.logs), [level, props.logs]);
  const newest = lines.at(-1)?.seq;
  const [earlier, setEarlier] = useState(!props.follow);
  const visible = lines.slice(earlier && !following ? -maxLines : -recentLines);
  const before = Math.min(lines.length, maxLines) - visible.length;

  const lastTop = useRef(0);
  const toEnd = () => {
    const el = box.current;
    if (!el) return;
    el.scrollTop = el.scrollHeight;
    lastTop.current = el.scrollTop;
  };

  // Scroll before the paint, so that a new line is never seen cut.
  useLayoutEffect(() => {
    if (following) toEnd();
  }, [following, newest, lines.length]);

  // Earlier lines are inserted above: keep the scroll position.
  const fromEnd = useRef<number | null>(null);
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || fromEnd.current === null) return;
    el.scrollTop = el.scrollHeight - fromEnd.current;
    lastTop.current = el.scrollTop;
    fromEnd.current = null;
  }, [visible.length]);

  // Loading fonts and resizing rewrap lines without a new line.
  const filled = lines.length > 0;
  useEffect(() => {
    const el = box.current;
    if (!el || !following || !filled) return;
    const o = new ResizeObserver(toEnd);
    o.observe(el);
    if (el.firstElementChild) o.observe(el.firstElementChild);
    return () => o.disconnect();
  }, [following, filled]);

  return (
    <section className="panel log-panel" aria-label="Log">
      <header>
        <h2 className="h3">Log</h2>
        {props.dropped > 0 && <span className="badge warn">{plain(count(props.dropped))} lines were dropped</span>}
        <div className="end">
          <Segments label="Level" value={level === 'CRITICAL' ? 'ERROR' : level} options={levels} onChange={setLevel} />
          {props.follow && (
            <label className="row follow">
              <input type="checkbox" checked={following} onChange={(e) => setFollowing(e.target.checked)} /> Follow
            </label>
          )}
          <ActionsMenu
            small
            label="More for the log"
            actions={[
              {
                label: 'Save as text',
                icon: 'download',
                disabled: lines.length === 0,
                act: () =>
                  save(
                    `${fileName(props.file, 'log')}.txt`,
                    new Blob(
                      [lines.map((l) => `${l.timestamp} ${l.level} ${l.worker_id ?? '-'} ${l.message}`).join('\n')],
                      { type: 'text/plain' },
                    ),
                  ),
              },
            ]}
          />
        </div>
      </header>
      {lines.length > 0 ? (
        <div
          ref={box}
          className={`log${props.tall ? ' tall' : ''}`}
          tabIndex={0}
          role="log"
          aria-live="off"
          onScroll={(e) => {
            const el = e.currentTarget;
            const up = el.scrollTop < lastTop.current - 1;
            lastTop.current = el.scrollTop;
            const atEnd = el.scrollHeight - el.scrollTop - el.clientHeight < 24;
            // Only the user scrolls up; growth alone must not stop following.
            if (following && up && !atEnd) setFollowing(false);
          }}
        >
          <div>
            {before > 0 && (
              <button
                type="button"
                className="btn quiet small fit"
                onClick={() => {
                  fromEnd.current = (box.current?.scrollHeight ?? 0) - (box.current?.scrollTop ?? 0);
                  setFollowing(false);
                  setEarlier(true);
                }}
              >
                {plain(count(before))} earlier {before === 1 ? 'line' : 'lines'}
              </button>
            )}
            {visible.map((l) => (
              <div key={l.seq} className={`log-line ${l.level.toLowerCase()}`}>
                <time dateTime={l.timestamp} title={l.timestamp}>
                  {timeOfDay(l.timestamp)}
                </time>
                <span className="log-level" title={l.level.toLowerCase()}>
                  <Mark shape={shapes[l.level] ?? 'ring'} size={9} />
                  <span className="sr">{l.level}</span>
                </span>
                <span className="log-worker">{l.worker_id ?? ''}</span>
                <span className="log-text">{serverText(l.message)}</span>
              </div>
            ))}
          </div>
        </div>
      ) : props.state.pending ? (
        <SkeletonRows rows={4} height={12} />
      ) : props.state.error ? (
        <Failed what="The log could not be read." error={props.state.error} retry={props.state.retry} />
      ) : (
        <Empty tight title={level === 'INFO' ? 'The log is empty' : 'No lines at this level'}>
          {level === 'INFO' ? 'Log lines appear here during the run.' : 'Choose “All” to see every line.'}
        </Empty>
      )}
    </section>
  );
});
