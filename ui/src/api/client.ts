import { serverText } from '../design/sentences';
import { parseResponse } from './safeText';
import { connectivity, isServerResponse, watchdog } from './connectivity';
import type { Method, OptionalArgs, PathOf, RequestOptions, ResponseBody } from './operations';
import type { paths } from './schema';
import type { FieldError, Plugin } from './types';
import { unattended } from './unattended';

/** Problem is a request that failed, at the server or on the network, with a message for the user. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  readonly fields: FieldError[];
  /** retryAt is when the server says that another attempt is worth while, in ms since 1970; 0 where it does not say. */
  retryAt = 0;

  constructor(status: number, code: string, message: string, hint = '', fields: FieldError[] = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.fields = fields;
  }
}

/** onSignedOut is called when the server rejects the session, with the reason where the server gives one. */
let onSignedOut: (reason: string) => void = () => {};
export function onSignOut(f: (reason: string) => void): void {
  onSignedOut = f;
}

/** confirmProduction asks the user to type the names of the production connections; false when the user declines. */
let confirmProduction: (names: string[]) => Promise<boolean> = () => Promise.resolve(false);
export function onProductionConfirm(f: (names: string[]) => Promise<boolean>): void {
  confirmProduction = f;
}

/** unconfirmedConnections returns the connection names that a 'confirm production' error asks for. */
export function unconfirmedConnections(err: unknown): string[] {
  if (!(err instanceof Problem) || !err.fields.length) return [];
  if (err.fields.some((f) => f.field !== 'confirm_production')) return [];
  return err.fields.map((f) => f.subject ?? '');
}

interface ProblemBody {
  title?: string;
  detail?: string;
  code?: string;
  hint?: string;
  errors?: FieldError[] | null;
}

/** problemFrom parses an error response from the server or from a proxy in front of it. */
export function problemFrom(status: number, body: string): Problem {
  let p: ProblemBody = {};
  try {
    const parsed = parseResponse(body);
    if (parsed && typeof parsed === 'object') p = parsed;
  } catch {
    // A proxy answers in HTML, so only the status is usable.
  }
  const fallback =
    status === 404
      ? 'The server has no such endpoint.'
      : status >= 500
        ? `The server failed to answer (HTTP ${status}).`
        : `The server rejected the request (HTTP ${status}).`;
  const fields = (p.errors ?? []).map((e) => ({
    field: e.field ?? '',
    message: serverText(e.message ?? ''),
    hint: e.hint && serverText(e.hint),
    subject: e.subject,
    line: e.line,
    column: e.column,
  }));
  return new Problem(
    status,
    p.code ?? '',
    serverText(p.detail || p.title || fallback),
    serverText(p.hint ?? ''),
    fields,
  );
}

/** retryTime reads Retry-After in seconds or as a date; 0 where there is none. */
export function retryTime(header: string | null, now: number): number {
  if (!header) return 0;
  const at = /^\d+$/.test(header) ? now + Number(header) * 1000 : Date.parse(header);
  return Number.isFinite(at) ? at : 0;
}

/** fetchResponse sends a request and returns any response, including errors. */
async function fetchResponse(path: string, request: RequestInit): Promise<Response> {
  let res: Response;
  const ended = watchdog();
  try {
    res = await fetch(path, {
      credentials: 'same-origin',
      ...request,
      headers: { ...(request.headers as Record<string, string> | undefined), ...unattended() },
    });
  } catch (err) {
    if (request.signal?.aborted) throw err;
    connectivity.failed();
    throw new Problem(
      0,
      'network',
      'The server does not answer.',
      'Check that loadstone serve is running, then try again.',
    );
  } finally {
    ended();
  }
  if (isServerResponse(res.status, res.headers.get('Content-Type'))) connectivity.answered();
  else connectivity.failed();
  return res;
}

async function send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const res = await fetchResponse(path, {
    method,
    signal,
    headers: body === undefined ? { Accept: 'application/json' } : { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (res.ok) return res;
  throw responseProblem(path, res.status, await res.text().catch(() => ''), res.headers.get('Retry-After'));
}

/** fetchFile downloads a file. */
export const fetchFile = async (path: string): Promise<Blob> => (await send('GET', path)).blob();

/** sendForm calls the Prometheus API, which takes form fields and has its own error format. */
export async function sendForm(
  path: string,
  fields: Record<string, string>,
  signal?: AbortSignal,
  method: 'GET' | 'POST' = 'POST',
): Promise<Response> {
  const form = new URLSearchParams(fields);
  const res = await (method === 'GET'
    ? fetchResponse(`${path}?${form.toString()}`, { method, signal })
    : fetchResponse(path, { method, signal, body: form }));
  if (res.status === 401) onSignedOut('');
  return res;
}

/** sendForFile sends a request whose response is a file; the caller reads it. */
export const sendForFile = (path: '/api/query/export', body: unknown): Promise<Response> => send('POST', path, body);

/** responseProblem converts an error response. A rejected session leads to sign-in. */
function responseProblem(path: string, status: number, body: string, retryAfter: string | null): Problem {
  const problem = problemFrom(status, body);
  problem.retryAt = retryTime(retryAfter, Date.now());
  if (status === 401 && !path.startsWith('/api/auth/signin'))
    onSignedOut(problem.fields.some((f) => f.field === 'session') ? problem.message : '');
  return problem;
}

/** sendPlugin uploads a plugin file with progress, which fetch cannot report. */
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
      if (xhr.status >= 200 && xhr.status < 300) done(parseResponse(xhr.responseText) as Plugin);
      else failed(responseProblem(path, xhr.status, xhr.responseText, xhr.getResponseHeader('Retry-After')));
    };
    xhr.onerror = () =>
      failed(
        new Problem(
          0,
          'network',
          'The upload was interrupted.',
          'Check that loadstone serve is running, then try again.',
        ),
      );
    xhr.onabort = () => failed(new Problem(0, 'aborted', 'The upload was cancelled.'));
    signal.addEventListener('abort', () => xhr.abort());
    xhr.send(file);
  });
}

/** Sent is an untyped request. */
interface Sent {
  path?: Record<string, string>;
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  asStored?: boolean;
}

async function callApi<P extends keyof paths, M extends Method>(method: M, path: P, options: Sent = {}) {
  const body = method === 'post' ? (options.body ?? {}) : options.body;
  const to = requestUrl(path, options.path, options.query);
  const res = await send(method.toUpperCase(), to, body, options.signal).catch(async (err: unknown) => {
    const names = unconfirmedConnections(err);
    if (names.length === 0 || !(await confirmProduction(names))) throw err;
    const typed = { ...(body as object), confirm_production: names };
    return send(method.toUpperCase(), to, typed, options.signal);
  });
  const text = res.status === 204 ? '' : await res.text();
  // The generated types describe the responses; a server test keeps the OpenAPI document correct.
  return (text ? parseResponse(text, options.asStored, rowPaths.has(path)) : undefined) as ResponseBody<P, M>;
}

/** rowPaths return database rows, whose numbers keep all digits. */
const rowPaths = new Set(['/api/query', '/api/v1/table-preview']);

/** api sends typed requests by their path in the OpenAPI document. */
export const api = {
  get: <P extends PathOf<'get'>>(path: P, ...[options]: OptionalArgs<RequestOptions<P, 'get'>>) =>
    callApi('get', path, options as Sent),
  post: <P extends PathOf<'post'>>(path: P, ...[options]: OptionalArgs<RequestOptions<P, 'post'>>) =>
    callApi('post', path, options as Sent),
  put: <P extends PathOf<'put'>>(path: P, ...[options]: OptionalArgs<RequestOptions<P, 'put'>>) =>
    callApi('put', path, options as Sent),
  patch: <P extends PathOf<'patch'>>(path: P, ...[options]: OptionalArgs<RequestOptions<P, 'patch'>>) =>
    callApi('patch', path, options as Sent),
  remove: <P extends PathOf<'delete'>>(path: P, ...[options]: OptionalArgs<RequestOptions<P, 'delete'>>) =>
    callApi('delete', path, options as Sent),
};

/** asProblem converts any thrown value. */
export function asProblem(err: unknown): Problem {
  if (err instanceof Problem) return err;
  return new Problem(0, '', err instanceof Error ? err.message : 'Something went wrong on this page.');
}

type Query = Record<string, string | number | boolean | string[] | null | undefined>;

/** Lists are comma separated, except those whose elements may contain commas: these are repeated. */
const repeatedParams = new Set(['tag', 'error_message']);

/** queryString includes only fields that have a value. */
export function queryString(fields: Query): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(fields)) {
    if (Array.isArray(v) && repeatedParams.has(k)) for (const x of v) q.append(k, x);
    else if (v !== undefined && v !== null && v !== '') q.set(k, String(v));
  }
  const s = q.toString();
  return s ? `?${s}` : '';
}

/** requestUrl fills in the path fields and appends the query. */
export function requestUrl(path: string, fields: Record<string, string> = {}, options: Query = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(fields[name] ?? '')) + queryString(options);
}
