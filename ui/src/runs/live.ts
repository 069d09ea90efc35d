import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { type Span, useLogs, useRun } from '../api/queries';
import { follow, type Link } from '../api/socket';
import { isLive, isTerminal, type LogEntry, type Payload, type RunDetail } from '../api/types';
import { hole, mergeLogs } from './logs';
import { changeable } from './marks';
import { type History, historyKey, useHistory } from './history';
import { type Columns, fromPayload, refine } from './series';
import { Track } from './track';

export interface RunState {
  run: RunDetail | undefined;
  error: unknown;
  retry: () => void;
  /** The latest live payload; null when the run is not live and none was seen. */
  live: Payload | null;
  link: Link | 'off';
  /** When the latest news of a live run arrived, in Unix milliseconds. */
  newsAt: number;
  /** The seconds that the charts draw. */
  c: Columns;
  seriesState: { pending: boolean; error: unknown; retry: () => void };
  logs: LogEntry[];
  logsState: { pending: boolean; error: unknown; retry: () => void };
}

/**
 * Everything the page knows of a run: its detail, the history of its curve and
 * log, and what the socket tells, as one. While the socket is lost the detail
 * is polled, and history is read again when it is back, so that no second is missing.
 */
export function useRunState(id: string, zoom: Span | null = null): RunState {
  const qc = useQueryClient();
  const [link, setLink] = useState<Link | 'off'>('off');
  const [live, setLive] = useState<Payload | null>(null);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- each run has a track of its own
  const track = useMemo(() => new Track(), [id]);
  const [heard, setHeard] = useState(0);
  const [tickLogs, setTickLogs] = useState<LogEntry[]>([]);
  const [newsAt, setNewsAt] = useState(() => Date.now());
  const wasLost = useRef(false);
  // What of the load a user can change, and what it was when the socket last told.
  const steered = useRef<ReturnType<typeof changeable>>(null);
  const load = useRef<number | null>(null);

  const detail = useRun(id, link === 'open');
  const run = detail.data;
  const following = run !== undefined && isLive(run);
  steered.current = run ? changeable(run) : null;
  const began = run !== undefined && run.status !== 'PREPARED';
  const start = run?.start_time ? Date.parse(run.start_time) : 0;
  const history = useHistory(id, began, start);
  // A long run comes in steps of several seconds; of the part that is looked at, finer ones are there.
  const coarse = (history.data?.resolution ?? 1) > 1;
  const part = useHistory(id, began && coarse && zoom !== null, start, zoom);
  const logs = useLogs(id, began);

  // What the track has joined takes the place of the history that it was joined of. A part that is looked at is finer.
  const shorten = useRef(() => {});
  shorten.current = () => {
    const samples = zoom === null && history.data ? track.thin() : null;
    const resolution = (samples ?? []).reduce((most, s) => Math.max(most, s.span), 1);
    if (samples) qc.setQueryData<History>(historyKey(id, start), { samples, resolution });
  };

  useEffect(() => {
    if (!following) return;
    const take = (p: Payload) => {
      setNewsAt(Date.now());
      setLive(p);
      // Somebody else has changed the load: the event is stored with the run.
      const now = steered.current === 'connections' ? p.connections.target : (p.target_qps ?? null);
      if (steered.current && load.current !== null && now !== null && now !== load.current)
        void qc.invalidateQueries({ queryKey: ['run', id] });
      load.current = now;
      const start = p.timing.start_time ? Date.parse(p.timing.start_time) : 0;
      const s = fromPayload(p, start);
      if (s) {
        track.hear(s);
        shorten.current();
        setHeard((n) => n + 1);
      }
      setTickLogs((l) => mergeLogs(l, p.logs));
    };
    setLink('connecting');
    const asked = Date.now();
    const stop = follow(id, {
      onPayload: take,
      onLink: (l) => {
        setLink(l);
        if (l === 'lost') wasLost.current = true;
        // History was read when the page was opened: what happened until a slow socket came is missing in it.
        if (l === 'open' && (wasLost.current || Date.now() - asked > 1500)) {
          wasLost.current = false;
          for (const key of ['timeseries', 'worker-series', 'logs']) void qc.invalidateQueries({ queryKey: [key, id] });
        }
        if (l === 'done') {
          for (const key of ['run', 'timeseries', 'worker-series', 'logs'])
            void qc.invalidateQueries({ queryKey: [key, id] });
          void qc.invalidateQueries({ queryKey: ['runs'] });
        }
      },
    });
    return () => {
      stop();
      setLink('off');
    };
  }, [id, following, qc, track]);

  // A polled detail is news too, and carries the payload while the socket is away.
  const polled = run?.live ?? null;
  useEffect(() => {
    if (!polled || link === 'open') return;
    setNewsAt(Date.now());
    setLive((have) => (have && Date.parse(have.timestamp) > Date.parse(polled.timestamp) ? have : polled));
    const s = fromPayload(polled, polled.timing.start_time ? Date.parse(polled.timing.start_time) : 0);
    if (s) {
      track.hear(s);
      setHeard((n) => n + 1);
    }
    setTickLogs((l) => mergeLogs(l, polled.logs));
  }, [polled, link, track]);

  // The socket may tell of the end before the detail does.
  const stale = live !== null && run !== undefined && live.status !== run.status;
  useEffect(() => {
    if (stale) void qc.invalidateQueries({ queryKey: ['run', id] });
  }, [stale, id, qc]);

  const whole = history.data?.samples;
  const finer = part.data?.samples;
  const over = run !== undefined && isTerminal(run.status) && run.phase !== 'PROCESSING';
  const told = useMemo(
    () => refine(whole ?? [], coarse && zoom !== null ? (finer ?? []) : []),
    [whole, finer, coarse, zoom],
  );
  const c = useMemo(() => {
    track.history(told);
    return track.columns();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- what was heard is counted
  }, [track, told, heard]);
  const allLogs = useMemo(() => mergeLogs(logs.data ?? [], tickLogs), [logs.data, tickLogs]);
  const { isPending, error, refetch } = logs;
  const logsState = useMemo(
    () => ({ pending: began && isPending, error, retry: () => void refetch() }),
    [began, isPending, error, refetch],
  );

  // A payload holds the newest lines. Those between them and the last that are known
  // are stored a second later; a few that the store never got are not asked for again.
  const missing = useMemo(() => hole(allLogs), [allLogs]);
  const asked = useRef({ after: -1, times: 0 });
  useEffect(() => {
    if (missing === null || !began) return;
    if (asked.current.after !== missing) asked.current = { after: missing, times: 0 };
    if (asked.current.times >= 3) return;
    const timer = setTimeout(() => {
      asked.current.times++;
      void qc.invalidateQueries({ queryKey: ['logs', id] });
    }, 1500);
    return () => clearTimeout(timer);
  }, [missing, began, id, qc, logs.dataUpdatedAt]);

  return {
    run,
    error: detail.error,
    retry: () => void detail.refetch(),
    live: over ? null : live,
    link,
    newsAt,
    c,
    seriesState: { pending: began && history.isPending, error: history.error, retry: () => void history.refetch() },
    logs: allLogs,
    logsState,
  };
}
