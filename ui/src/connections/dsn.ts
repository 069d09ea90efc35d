/** The parts of a Postgres URL that the form shows. */
export interface DsnParts {
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
  const query = q.toString();
  return `postgres://${user}${host}${!socket && p.port ? `:${p.port}` : ''}/${enc(p.database)}${query ? `?${query}` : ''}`;
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
    rest: q.toString(),
  };
}
