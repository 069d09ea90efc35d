import { asProblem, Problem } from '../api/client';
import type { FieldError } from '../api/types';

/** Certificates are PEM text; *** stands for a saved key. */
export interface Certificates {
  sslrootcert: string;
  sslcert: string;
  sslkey: string;
}

const noCertificates: Certificates = { sslrootcert: '', sslcert: '', sslkey: '' };
const certificateKeys = Object.keys(noCertificates) as (keyof Certificates)[];

/** DsnParts are the fields of a Postgres URL in the form. */
export interface DsnParts extends Certificates {
  host: string;
  port: string;
  database: string;
  user: string;
  password: string;
  sslmode: string;
  /** Other parameters, kept unchanged. */
  rest: string;
}

export const noParts: DsnParts = {
  host: '',
  port: '5432',
  database: '',
  user: '',
  password: '',
  sslmode: 'prefer',
  ...noCertificates,
  rest: '',
};

/** toUrl writes the parts as a URL; the folder of a unix socket becomes the host parameter. */
export function toUrl(p: DsnParts): string {
  const enc = encodeURIComponent;
  const socket = p.host.startsWith('/');
  const user = p.user
    ? `${enc(p.user) + (p.password ? `:${p.password === '***' ? '***' : enc(p.password)}` : '')}@`
    : '';
  const host = socket ? '' : p.host.includes(':') && !p.host.startsWith('[') ? `[${p.host}]` : p.host;
  const q = new URLSearchParams(p.rest);
  if (socket) {
    q.set('host', p.host);
    if (p.port && p.port !== '5432') q.set('port', p.port);
  }
  if (p.sslmode && !socket) q.set('sslmode', p.sslmode);
  for (const key of certificateKeys) if (p[key].trim()) q.set(key, p[key]);
  // Not every parser reads + as a space.
  const query = q.toString().replaceAll('+', '%20');
  const port = !socket && p.port ? `:${p.port}` : '';
  return `postgres://${user}${host}${port}/${enc(p.database)}${query ? `?${query}` : ''}`;
}

function decode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

/**
 * isAmbiguous reports an address in which it cannot be told where the password ends: a part of it would be
 * shown as the host. The server refuses it, too.
 */
export function isAmbiguous(text: string): boolean {
  const rest = text.trim().replace(/^[a-z]+:\/\//i, '');
  const at = rest.indexOf('@');
  const before = rest.slice(0, Math.max(at, 0));
  return (
    rest.includes('#') || rest.includes('@', at + 1 || rest.length) || (before.includes(':') && /[/?]/.test(before))
  );
}

/** fromUrl parses a URL; null when the form cannot show it. */
export function fromUrl(text: string): DsnParts | null {
  if (isAmbiguous(text)) return null;
  const m = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?(\[[^\]]*\]|[^:/?#@]*)(?::(\d*))?(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(
    text.trim(),
  );
  if (!m) return null;
  const [user, ...password] = (m[1] ?? '').split(':');
  const q = new URLSearchParams(m[5] ?? '');
  const sslmode = q.get('sslmode') ?? '';
  const socket = q.get('host');
  const port = m[3] || q.get('port') || '5432';
  q.delete('sslmode');
  const certificates = { ...noCertificates };
  for (const key of certificateKeys) {
    const value = q.get(key) ?? '';
    // File names belong in the URL.
    if (!value.includes('-----BEGIN ') && value !== '***') continue;
    certificates[key] = value;
    q.delete(key);
  }
  if (socket) {
    q.delete('host');
    q.delete('port');
  }
  return {
    host: socket ?? decode(m[2] ?? '').replace(/^\[|\]$/g, ''),
    port,
    database: decode(m[4] ?? ''),
    user: decode(user ?? ''),
    password: decode(password.join(':')),
    sslmode: sslmode || (socket ? '' : 'prefer'),
    ...certificates,
    rest: q.toString(),
  };
}

/** certificateProblems maps the server's errors to the certificate fields. */
export function certificateProblems(errors: FieldError[]): Partial<Certificates> {
  const out: Partial<Certificates> = {};
  for (const e of errors) {
    const key = /^The parameter (sslrootcert|sslcert|sslkey) /.exec(e.message)?.[1] as keyof Certificates | undefined;
    if (e.field === 'dsn' && key)
      out[key] = withFormLabels(
        [
          e.message.replace(/^The parameter \w+ cannot be used: /, ''),
          (e.hint ?? '').replace(/; in a URL it is percent-encoded/, ''),
        ]
          .join(' ')
          .trim(),
      );
  }
  return out;
}

/** labels are the form's names of connection string parameters. */
const labels: [parameter: RegExp, label: string][] = [
  [/\bsslrootcert\b/g, '“CA certificate”'],
  [/\bsslcert\b/g, '“Client certificate”'],
  [/\bsslkey\b/g, '“Key of the client certificate”'],
];

/** withFormLabels replaces parameter names by the form's labels. */
export const withFormLabels = (text: string): string =>
  labels.reduce((t, [name, label]) => t.replace(name, label), text);

/** formProblem is a problem with the form's labels. */
export function formProblem(err: unknown): Problem {
  const p = asProblem(err);
  return new Problem(p.status, p.code, withFormLabels(p.message), withFormLabels(p.hint), p.fields);
}

/** shortDsn is the address for a list; a pasted certificate is only mentioned. */
export function shortDsn(dsn: string): string {
  return dsn.replace(/(ssl\w+=)('[^']*-----BEGIN[^']*'|-----BEGIN[^&]*)/g, '$1(pasted)');
}
