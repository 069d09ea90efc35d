import { parseResponse } from './safeText';
import type { Message, Payload } from './types';

export type LinkState = 'connecting' | 'open' | 'lost' | 'done';

/**
 * backOff is the delay before attempt n (from 0), in milliseconds: 0.5 s doubling to 10 s, with jitter so that many
 * pages do not reconnect at once.
 */
export function backOff(attempt: number, random = Math.random): number {
  const ceiling = Math.min(10_000, 500 * 2 ** attempt);
  return ceiling * (0.7 + 0.3 * random());
}

interface RunListener {
  onPayload: (p: Payload) => void;
  onLink: (l: LinkState) => void;
}

/**
 * followRun follows a run until its final payload. It reconnects with back-off until the returned function is called. A
 * socket silent for 15 s counts as lost: proxies drop connections without notice.
 */
export function followRun(
  runId: string,
  f: RunListener,
  makeSocket: (url: string) => WebSocket = (u) => new WebSocket(u),
): () => void {
  let socket: WebSocket | null = null;
  let attempt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  let ended = false;

  const url = () => {
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    return `${scheme}://${location.host}/ws/runs/${encodeURIComponent(runId)}`;
  };

  const listen = () => {
    clearTimeout(silence);
    silence = setTimeout(() => socket?.close(4000, 'silent'), 15_000);
  };

  const open = () => {
    if (ended) return;
    const s = makeSocket(url());
    socket = s;
    listen();
    s.onopen = () => {
      f.onLink('open');
      listen();
    };
    s.onmessage = (e) => {
      listen();
      attempt = 0;
      let message: Partial<Message>;
      try {
        message = parseResponse(String(e.data)) as Partial<Message>;
      } catch {
        return;
      }
      if (message.event === 'RUN_UPDATE' && message.data) f.onPayload(message.data);
    };
    s.onclose = (e) => {
      clearTimeout(silence);
      if (ended || socket !== s) return;
      if (e.code === 1000) {
        ended = true;
        f.onLink('done');
        return;
      }
      f.onLink('lost');
      timer = setTimeout(open, backOff(attempt++));
    };
  };

  const wake = () => {
    if (ended || !socket || socket.readyState === WebSocket.OPEN || socket.readyState === WebSocket.CONNECTING) return;
    clearTimeout(timer);
    attempt = 0;
    open();
  };
  addEventListener('online', wake);

  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    clearTimeout(silence);
    removeEventListener('online', wake);
    socket?.close(1000);
  };
}
