import { asProblem, Problem } from '../api/client';
import type { FieldError } from '../api/types';

/** Certificates as PEM text; *** stands for a saved key. */
export interface Certificates {
  sslrootcert: string;
  sslcert: string;
  sslkey: string;
}

const noCertificates: Certificates = { sslrootcert: '', sslcert: '', sslkey: '' };
const certificateKeys = Object.keys(noCertificates) as (keyof Certificates)[];

/** The parts of a Postgres URL that the form shows. */
export interface DsnParts extends Certificates {
  host: string;
  port: string;
  database: string;
  user: string;
  password: string;
  sslmode: string;
  /** Other parameters, kept as they are. */
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

/** Writes the parts as a URL; a unix socket's folder goes into the host parameter. */
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
  // Not every reader of such a URL takes a + for a space.
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

/** Reads a URL into parts; null when it is not a Postgres URL that the form can show. */
export function fromUrl(text: string): DsnParts | null {
  const m = /^postgres(?:ql)?:\/\/(?:([^@/?#]*)@)?(\[[^\]]*\]|[^:/?#]*)(?::(\d*))?(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(
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
    // The name of a file is for the URL.
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

/** The server's complaints about certificates, by the field they are about. */
export function problemsOf(errors: FieldError[]): Partial<Certificates> {
  const out: Partial<Certificates> = {};
  for (const e of errors) {
    const key = /^The parameter (sslrootcert|sslcert|sslkey) /.exec(e.message)?.[1] as keyof Certificates | undefined;
    if (e.field === 'dsn' && key)
      out[key] = inForm(
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

/** What the parameters of a connection string are called in the form that has fields for them. */
const labels: [parameter: RegExp, label: string][] = [
  [/\bsslrootcert\b/g, '“CA certificate”'],
  [/\bsslcert\b/g, '“Client certificate”'],
  [/\bsslkey\b/g, '“Key of the client certificate”'],
];

/** A message about a connection string in the words of the form. */
export const inForm = (text: string): string => labels.reduce((t, [name, label]) => t.replace(name, label), text);

/** A problem with a connection string in the words of the form. */
export function problemInForm(err: unknown): Problem {
  const p = asProblem(err);
  return new Problem(p.status, p.code, inForm(p.message), inForm(p.hint), p.fields);
}

/** An address for a list: a pasted certificate is only said to be there. */
export function shortDsn(dsn: string): string {
  return dsn.replace(/(ssl\w+=)('[^']*-----BEGIN[^']*'|-----BEGIN[^&]*)/g, '$1(pasted)');
}
