import { said } from '../design/said';
import { read } from './harmless';
import { isAnswer, reach, watch } from './reach';
import type { Answer, Asked, Method, PathOf, Rest } from './operations';
import type { paths } from './schema';
import type { FieldError, Plugin } from './types';

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

/** Has the user type the names of production connections that are to be loaded; false when it would rather not. */
let confirmLoad: (names: string[]) => Promise<boolean> = () => Promise.resolve(false);
export function whenProduction(f: (names: string[]) => Promise<boolean>): void {
  confirmLoad = f;
}

/** The names that a refusal wants typed, none of another refusal. */
export function unconfirmed(err: unknown): string[] {
  if (!(err instanceof Problem) || !err.fields.length) return [];
  if (err.fields.some((f) => f.field !== 'confirm_production')) return [];
  return err.fields.map((f) => (f.hint ?? '').replace(/^[^:]*: /, ''));
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
    const parsed = read(body);
    if (parsed && typeof parsed === 'object') p = parsed;
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
    column: e.column,
  }));
  return new Problem(status, p.code ?? '', said(p.detail || p.title || fallback), said(p.hint ?? ''), fields);
}

/** A request that is answered, whatever the answer is. */
async function exchange(path: string, request: RequestInit): Promise<Response> {
  let res: Response;
  const ended = watch();
  try {
    res = await fetch(path, { credentials: 'same-origin', ...request });
  } catch (err) {
    if (request.signal?.aborted) throw err;
    reach.failed();
    throw new Problem(
      0,
      'network',
      'The server does not answer.',
      'Check that loadstone serve is running, then try again.',
    );
  } finally {
    ended();
  }
  if (isAnswer(res.status, res.headers.get('Content-Type'))) reach.answered();
  else reach.failed();
  return res;
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const res = await exchange(path, {
    method,
    signal,
    headers: body === undefined ? { Accept: 'application/json' } : { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (res.ok) return res;
  throw refusal(path, res.status, await res.text().catch(() => ''));
}

/** Fetches a file. */
export const fetchFile = async (path: string): Promise<Blob> => (await send('GET', path)).blob();

/** A request of the Prometheus API, which takes fields of a form and has errors of its own form. */
export async function sendForm(
  path: string,
  fields: Record<string, string>,
  signal?: AbortSignal,
  method: 'GET' | 'POST' = 'POST',
): Promise<Response> {
  const form = new URLSearchParams(fields);
  const res = await (method === 'GET'
    ? exchange(`${path}?${form.toString()}`, { method, signal })
    : exchange(path, { method, signal, body: form }));
  if (res.status === 401) onSignedOut();
  return res;
}

/** A request whose answer is a file; reading it is the caller's. */
export const sendForFile = (path: '/api/query/export', body: unknown): Promise<Response> => send('POST', path, body);

/** Puts a refused response into words; who is not known any more is sent to sign in. */
function refusal(path: string, status: number, body: string): Problem {
  if (status === 401 && !path.startsWith('/api/auth/signin')) onSignedOut();
  return problemFrom(status, body);
}

/** Uploads the file of a plugin and tells how much of it has left; fetch cannot tell that. */
export function sendPlugin(file: Blob, progress: (sent: number) => void, signal: AbortSignal): Promise<Plugin> {
  return new Promise((done, failed) => {
    const path = '/api/plugins';
    const xhr = new XMLHttpRequest();
    xhr.open('POST', path);
    xhr.setRequestHeader('Content-Type', 'application/wasm');
    xhr.setRequestHeader('Accept', 'application/json');
    xhr.upload.onprogress = (e) => progress(e.loaded);
    xhr.upload.onload = () => progress(file.size);
    xhr.onload = () => {
      if (xhr.status >= 200 && xhr.status < 300) done(read(xhr.responseText) as Plugin);
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

/** A request as it is sent, whatever its address is. */
interface Sent {
  path?: Record<string, string>;
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  asStored?: boolean;
}

async function ask<P extends keyof paths, M extends Method>(method: M, path: P, asked: Sent = {}) {
  const body = method === 'post' ? (asked.body ?? {}) : asked.body;
  const to = address(path, asked.path, asked.query);
  const res = await send(method.toUpperCase(), to, body, asked.signal).catch(async (err: unknown) => {
    const names = unconfirmed(err);
    if (names.length === 0 || !(await confirmLoad(names))) throw err;
    const typed = { ...(body as object), confirm_production: names };
    return send(method.toUpperCase(), to, typed, asked.signal);
  });
  const text = res.status === 204 ? '' : await res.text();
  // The generated types say what the server answers; a test of the server holds the document they are made from.
  return (text ? read(text, asked.asStored, rows.has(path)) : undefined) as Answer<P, M>;
}

/** Answers with rows of a database, whose numbers keep their digits. */
const rows = new Set(['/api/query', '/api/v1/table-preview']);

/** Requests by their addresses in the OpenAPI document, which says what they take and answer. */
export const api = {
  get: <P extends PathOf<'get'>>(path: P, ...[asked]: Rest<Asked<P, 'get'>>) => ask('get', path, asked as Sent),
  post: <P extends PathOf<'post'>>(path: P, ...[asked]: Rest<Asked<P, 'post'>>) => ask('post', path, asked as Sent),
  put: <P extends PathOf<'put'>>(path: P, ...[asked]: Rest<Asked<P, 'put'>>) => ask('put', path, asked as Sent),
  patch: <P extends PathOf<'patch'>>(path: P, ...[asked]: Rest<Asked<P, 'patch'>>) => ask('patch', path, asked as Sent),
  remove: <P extends PathOf<'delete'>>(path: P, ...[asked]: Rest<Asked<P, 'delete'>>) =>
    ask('delete', path, asked as Sent),
};

/** Puts any thrown thing into words. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  return new Problem(0, '', err instanceof Error ? err.message : 'Something went wrong on this page.');
}

type Query = Record<string, string | number | boolean | string[] | null | undefined>;

/** Lists are comma separated, but for those whose elements may hold commas: these are repeated. */
const repeated = new Set(['tag', 'error_message']);

/** Builds a query string from the fields that have a value. */
export function query(fields: Query): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(fields)) {
    if (Array.isArray(v) && repeated.has(k)) for (const x of v) q.append(k, x);
    else if (v !== undefined && v !== null && v !== '') q.set(k, String(v));
  }
  const s = q.toString();
  return s ? `?${s}` : '';
}

/** The address of a request: the fields of its path filled in, and its query. */
export function address(path: string, fields: Record<string, string> = {}, asked: Query = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(fields[name] ?? '')) + query(asked);
}
