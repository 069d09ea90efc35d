import { useQueryClient } from '@tanstack/react-query';
import { type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import { type Span, useLogs, useRun } from '../api/queries';
import { followRun, type LinkState } from '../api/socket';
import { isLive, isTerminal, type LogEntry, type Payload, type RunDetail } from '../api/types';
import { firstGap, mergeLogs } from './logs';
import { adjustableLoad } from './marks';
import { type History, historyKey, useHistory } from './history';
import { type Columns, fromPayload, refine } from './series';
import { Track } from './track';

export interface RunState {
  run: RunDetail | undefined;
  error: unknown;
  retry: () => void;
  /** The latest live payload; null without one. */
  live: Payload | null;
  link: LinkState | 'off';
  /** Arrival of the latest message, in Unix milliseconds. */
  lastMessageAt: number;
  /** The seconds that the charts draw. */
  c: Columns;
  seriesState: { pending: boolean; error: unknown; retry: () => void };
  logs: LogEntry[];
  logsState: { pending: boolean; error: unknown; retry: () => void };
}

/** waiting is a list's loading state. It must not capture more: see useSocket. */
const waiting = (pending: boolean, error: unknown, refetch: () => unknown) => ({
  pending,
  error,
  retry: () => void refetch(),
});

/** SocketData is what the run's socket sent. */
interface SocketData {
  live: Payload | null;
  link: LinkState | 'off';
  lastMessageAt: number;
  /** Counts samples added to the track. */
  received: number;
  lines: LogEntry[];
}

/**
 * useSocket follows a run and adds its samples to the track; after each, it calls shorten. The socket's closure keeps
 * everything in its scope alive. This function therefore sees no list of samples, so that joined ones are freed.
 */
function useSocket(
  id: string,
  run: RunDetail | undefined,
  track: Track,
  shorten: RefObject<() => void>,
  setOpen: (open: boolean) => void,
): SocketData {
  const qc = useQueryClient();
  const [link, setLink] = useState<LinkState | 'off'>('off');
  const [live, setLive] = useState<Payload | null>(null);
  const [received, setReceived] = useState(0);
  const [lines, setLines] = useState<LogEntry[]>([]);
  const [lastMessageAt, setLastMessageAt] = useState(() => Date.now());
  const wasLost = useRef(false);
  // The adjustable load in the last payload.
  const steered = useRef<ReturnType<typeof adjustableLoad>>(null);
  const load = useRef<number | null>(null);

  const following = run !== undefined && isLive(run);
  steered.current = run ? adjustableLoad(run) : null;

  useEffect(() => {
    if (!following) return;
    const take = (p: Payload) => {
      setLastMessageAt(Date.now());
      setLive(p);
      // Another user changed the load: the event is stored with the run.
      const now = steered.current === 'connections' ? p.connections.target : (p.target_qps ?? null);
      if (steered.current && load.current !== null && now !== null && now !== load.current)
        void qc.invalidateQueries({ queryKey: ['run', id] });
      load.current = now;
      const start = p.timing.start_time ? Date.parse(p.timing.start_time) : 0;
      const s = fromPayload(p, start);
      if (s) {
        track.add(s);
        shorten.current();
        setReceived((n) => n + 1);
      }
      setLines((l) => mergeLogs(l, p.logs));
    };
    const linked = (l: LinkState | 'off') => {
      setLink(l);
      setOpen(l === 'open');
    };
    linked('connecting');
    const startedAt = Date.now();
    const stop = followRun(id, {
      onPayload: take,
      onLink: (l) => {
        linked(l);
        if (l === 'lost') wasLost.current = true;
        // History was read when the page opened and misses what happened until a slow socket connected.
        if (l === 'open' && (wasLost.current || Date.now() - startedAt > 1500)) {
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

  // A polled detail counts as a message and has the payload while the socket is down.
  const polled = run?.live ?? null;
  useEffect(() => {
    if (!polled || link === 'open') return;
    setLastMessageAt(Date.now());
    setLive((have) => (have && Date.parse(have.timestamp) > Date.parse(polled.timestamp) ? have : polled));
    const s = fromPayload(polled, polled.timing.start_time ? Date.parse(polled.timing.start_time) : 0);
    if (s) {
      track.add(s);
      setReceived((n) => n + 1);
    }
    setLines((l) => mergeLogs(l, polled.logs));
  }, [polled, link, track]);

  // The socket may report the end before the detail does.
  const stale = live !== null && run !== undefined && live.status !== run.status;
  useEffect(() => {
    if (stale) void qc.invalidateQueries({ queryKey: ['run', id] });
  }, [stale, id, qc]);

  return { live, link, lastMessageAt, received, lines };
}

/** useRunLogs merges the stored log with the socket's lines. */
function useRunLogs(id: string, began: boolean, socketLines: LogEntry[]): Pick<RunState, 'logs' | 'logsState'> {
  const qc = useQueryClient();
  const stored = useLogs(id, began);
  const logs = useMemo(() => mergeLogs(stored.data ?? [], socketLines), [stored.data, socketLines]);
  const { isPending, error, refetch } = stored;
  const logsState = useMemo(() => waiting(began && isPending, error, refetch), [began, isPending, error, refetch]);

  // A payload holds the newest lines. Missing ones are stored a second later; lines the store never got are not
  // requested again.
  const missing = useMemo(() => firstGap(logs), [logs]);
  const request = useRef({ after: -1, times: 0 });
  useEffect(() => {
    if (missing === null || !began) return;
    if (request.current.after !== missing) request.current = { after: missing, times: 0 };
    if (request.current.times >= 3) return;
    const timer = setTimeout(() => {
      request.current.times++;
      void qc.invalidateQueries({ queryKey: ['logs', id] });
    }, 1500);
    return () => clearTimeout(timer);
  }, [missing, began, id, qc, stored.dataUpdatedAt]);
  return { logs, logsState };
}

/**
 * useRunState combines a run's detail, history, log and socket. While the socket is down it polls the detail, and after
 * a reconnect it reads history again, so that no second is missing.
 */
export function useRunState(id: string, zoom: Span | null = null): RunState {
  const qc = useQueryClient();
  // eslint-disable-next-line react-hooks/exhaustive-deps -- each run has a track of its own
  const track = useMemo(() => new Track(), [id]);
  const [open, setOpen] = useState(false);
  const shorten = useRef(() => {});

  const detail = useRun(id, open);
  const run = detail.data;
  const { live, link, lastMessageAt, received, lines } = useSocket(id, run, track, shorten, setOpen);
  const began = run !== undefined && run.status !== 'PREPARED';
  const start = run?.start_time ? Date.parse(run.start_time) : 0;
  const history = useHistory(id, began, start);
  // A long run has coarse steps; the zoomed part has finer ones.
  const isCoarse = (history.data?.resolution ?? 1) > 1;
  const part = useHistory(id, began && isCoarse && zoom !== null, start, zoom);

  // The track's joined samples replace the history they came from. A zoomed part is finer.
  shorten.current = () => {
    const samples = zoom === null && history.data ? track.thin() : null;
    const resolution = (samples ?? []).reduce((most, s) => Math.max(most, s.span), 1);
    if (samples) qc.setQueryData<History>(historyKey(id, start), { samples, resolution });
  };

  const samplesOfRun = history.data?.samples;
  const fineSamples = part.data?.samples;
  const hasEnded = run !== undefined && isTerminal(run.status) && run.phase !== 'PROCESSING';
  const refinedHistory = useMemo(
    () => refine(samplesOfRun ?? [], isCoarse && zoom !== null ? (fineSamples ?? []) : []),
    [samplesOfRun, fineSamples, isCoarse, zoom],
  );
  const c = useMemo(() => {
    track.history(refinedHistory);
    return track.columns();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- received counts what was added
  }, [track, refinedHistory, received]);

  return {
    run,
    error: detail.error,
    retry: () => void detail.refetch(),
    live: hasEnded ? null : live,
    link,
    lastMessageAt,
    c,
    seriesState: waiting(began && history.isPending, history.error, history.refetch),
    ...useRunLogs(id, began, lines),
  };
}
