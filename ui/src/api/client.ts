import { said } from '../design/said';
import { read } from './harmless';
import type { FieldError } from './types';

/** A refusal of the server, or of the network, in words for the user. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly fields: FieldError[];

  constructor(status: number, code: string, message: string, hint = '', fields: FieldError[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.fields = fields;
  }
}

/** Called when the server no longer knows who we are. */
let onSignedOut: () => void = () => {};
export function whenSignedOut(f: () => void): void {
  onSignedOut = f;
}

interface ProblemBody {
  title?: string;
  detail?: string;
  code?: string;
  hint?: string;
  errors?: FieldError[] | null;
}

/** Reads a refused response, whatever wrote it: the server, or a proxy before it. */
export function problemFrom(status: number, body: string): Problem {
  let p: ProblemBody = {};
  try {
    const parsed = read<unknown>(body);
    if (parsed && typeof parsed === 'object') p = parsed as ProblemBody;
  } catch {
    // A proxy answers in HTML; the status has to speak for itself.
  }
  const fallback =
    status === 404
      ? 'The server does not know this address.'
      : status >= 500
        ? `The server could not answer (HTTP ${status}).`
        : `The server refused the request (HTTP ${status}).`;
  const fields = (p.errors ?? []).map((e) => ({
    field: e.field ?? '',
    message: said(e.message ?? ''),
    hint: e.hint && said(e.hint),
    line: e.line,
  }));
  return new Problem(status, p.code ?? '', said(p.detail || p.title || fallback), said(p.hint ?? ''), fields);
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  let res: Response;
  try {
    res = await fetch(path, {
      method,
      signal,
      credentials: 'same-origin',
      headers: body === undefined ? { Accept: 'application/json' } : { 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    throw new Problem(
      0,
      'network',
      'The server does not answer.',
      'Check that loadstone serve is running, then try again.',
    );
  }
  if (res.ok) return res;
  throw refusal(path, res.status, await res.text().catch(() => ''));
}

/** Puts a refused response into words; who is not known any more is sent to sign in. */
function refusal(path: string, status: number, body: string): Problem {
  if (status === 401 && !path.startsWith('/api/auth/signin')) onSignedOut();
  return problemFrom(status, body);
}

/** Sends a file as it is and tells how much of it has left; fetch cannot tell that. */
export function sendFile<T>(
  path: string,
  file: Blob,
  type: string,
  progress: (sent: number) => void,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((done, failed) => {
    const xhr = new XMLHttpRequest();
    xhr.open('POST', path);
    xhr.setRequestHeader('Content-Type', type);
    xhr.setRequestHeader('Accept', 'application/json');
    xhr.upload.onprogress = (e) => progress(e.loaded);
    xhr.upload.onload = () => progress(file.size);
    xhr.onload = () => {
      if (xhr.status >= 200 && xhr.status < 300) done(read<T>(xhr.responseText));
      else failed(refusal(path, xhr.status, xhr.responseText));
    };
    xhr.onerror = () =>
      failed(
        new Problem(0, 'network', 'The upload broke off.', 'Check that loadstone serve is running, then try again.'),
      );
    xhr.onabort = () => failed(new Problem(0, 'aborted', 'The upload was cancelled.'));
    signal.addEventListener('abort', () => xhr.abort());
    xhr.send(file);
  });
}

async function json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal, edits = false): Promise<T> {
  const res = await send(method, path, body, signal);
  if (res.status === 204) return undefined as T;
  const text = await res.text();
  return text ? read<T>(text, edits) : (undefined as T);
}

export const api = {
  get: <T>(path: string, signal?: AbortSignal) => json<T>('GET', path, undefined, signal),
  post: <T>(path: string, body: unknown = {}, signal?: AbortSignal) => json<T>('POST', path, body, signal),
  put: <T>(path: string, body: unknown) => json<T>('PUT', path, body),
  remove: (path: string) => json<void>('DELETE', path),
  /** For documents that are edited or sent back: templates and scenarios are answered as they are stored. */
  edit: {
    get: <T>(path: string, signal?: AbortSignal) => json<T>('GET', path, undefined, signal, true),
    post: <T>(path: string, body: unknown = {}, signal?: AbortSignal) => json<T>('POST', path, body, signal, true),
    put: <T>(path: string, body: unknown) => json<T>('PUT', path, body, undefined, true),
  },
};

/** Puts any thrown thing into words. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  return new Problem(0, '', err instanceof Error ? err.message : 'Something went wrong on this page.');
}

/** Builds a query string from the fields that have a value. */
export function query(fields: Record<string, string | number | string[] | undefined | null>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(fields)) {
    if (Array.isArray(v)) for (const x of v) q.append(k, x);
    else if (v !== undefined && v !== null && v !== '') q.set(k, String(v));
  }
  const s = q.toString();
  return s ? `?${s}` : '';
}
