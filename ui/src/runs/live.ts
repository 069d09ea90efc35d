import { useQueryClient } from '@tanstack/react-query';
import { type RefObject, useEffect, useMemo, useRef, useState } from 'react';
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

/** What a list of the page is waiting for. It holds nothing but what it is given: see useSocket. */
const waiting = (pending: boolean, error: unknown, refetch: () => unknown) => ({
  pending,
  error,
  retry: () => void refetch(),
});

/** What the socket of a run has told. */
interface Told {
  live: Payload | null;
  link: Link | 'off';
  newsAt: number;
  /** Counts what was put into the track. */
  heard: number;
  lines: LogEntry[];
}

/**
 * Follows a run, and puts what the socket tells into the track; after each second, shorten is called.
 *
 * What stays for as long as the socket does keeps everything alive that its function could see when it began. So this
 * one sees no list of seconds, and those that are joined later are let go.
 */
function useSocket(
  id: string,
  run: RunDetail | undefined,
  track: Track,
  shorten: RefObject<() => void>,
  setOpen: (open: boolean) => void,
): Told {
  const qc = useQueryClient();
  const [link, setLink] = useState<Link | 'off'>('off');
  const [live, setLive] = useState<Payload | null>(null);
  const [heard, setHeard] = useState(0);
  const [lines, setLines] = useState<LogEntry[]>([]);
  const [newsAt, setNewsAt] = useState(() => Date.now());
  const wasLost = useRef(false);
  // What of the load a user can change, and what it was when the socket last told.
  const steered = useRef<ReturnType<typeof changeable>>(null);
  const load = useRef<number | null>(null);

  const following = run !== undefined && isLive(run);
  steered.current = run ? changeable(run) : null;

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
      setLines((l) => mergeLogs(l, p.logs));
    };
    const linked = (l: Link | 'off') => {
      setLink(l);
      setOpen(l === 'open');
    };
    linked('connecting');
    const asked = Date.now();
    const stop = follow(id, {
      onPayload: take,
      onLink: (l) => {
        linked(l);
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
      linked('off');
    };
  }, [id, following, qc, track, shorten, setOpen]);

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
    setLines((l) => mergeLogs(l, polled.logs));
  }, [polled, link, track]);

  // The socket may tell of the end before the detail does.
  const stale = live !== null && run !== undefined && live.status !== run.status;
  useEffect(() => {
    if (stale) void qc.invalidateQueries({ queryKey: ['run', id] });
  }, [stale, id, qc]);

  return { live, link, newsAt, heard, lines };
}

/** The log of a run: what is stored of it, and the lines that the socket told. */
function useRunLogs(id: string, began: boolean, told: LogEntry[]): Pick<RunState, 'logs' | 'logsState'> {
  const qc = useQueryClient();
  const stored = useLogs(id, began);
  const logs = useMemo(() => mergeLogs(stored.data ?? [], told), [stored.data, told]);
  const { isPending, error, refetch } = stored;
  const logsState = useMemo(() => waiting(began && isPending, error, refetch), [began, isPending, error, refetch]);

  // A payload holds the newest lines. Those between them and the last that are known
  // are stored a second later; a few that the store never got are not asked for again.
  const missing = useMemo(() => hole(logs), [logs]);
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
  }, [missing, began, id, qc, stored.dataUpdatedAt]);
  return { logs, logsState };
}

/**
 * Everything the page knows of a run: its detail, the history of its curve and
 * log, and what the socket tells, as one. While the socket is lost the detail
 * is polled, and history is read again when it is back, so that no second is missing.
 */
export function useRunState(id: string, zoom: Span | null = null): RunState {
  const qc = useQueryClient();
  // eslint-disable-next-line react-hooks/exhaustive-deps -- each run has a track of its own
  const track = useMemo(() => new Track(), [id]);
  const [open, setOpen] = useState(false);
  const shorten = useRef(() => {});

  const detail = useRun(id, open);
  const run = detail.data;
  const { live, link, newsAt, heard, lines } = useSocket(id, run, track, shorten, setOpen);
  const began = run !== undefined && run.status !== 'PREPARED';
  const start = run?.start_time ? Date.parse(run.start_time) : 0;
  const history = useHistory(id, began, start);
  // A long run comes in steps of several seconds; of the part that is looked at, finer ones are there.
  const coarse = (history.data?.resolution ?? 1) > 1;
  const part = useHistory(id, began && coarse && zoom !== null, start, zoom);

  // What the track has joined takes the place of the history that it was joined of. A part that is looked at is finer.
  shorten.current = () => {
    const samples = zoom === null && history.data ? track.thin() : null;
    const resolution = (samples ?? []).reduce((most, s) => Math.max(most, s.span), 1);
    if (samples) qc.setQueryData<History>(historyKey(id, start), { samples, resolution });
  };

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

  return {
    run,
    error: detail.error,
    retry: () => void detail.refetch(),
    live: over ? null : live,
    link,
    newsAt,
    c,
    seriesState: waiting(began && history.isPending, history.error, history.refetch),
    ...useRunLogs(id, began, lines),
  };
}
