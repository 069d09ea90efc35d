import { isAmbiguous } from './dsn';

/** SignIn is how a Snowflake user signs in; the values are the DSN's authenticators. */
export type SignIn =
  | 'snowflake_jwt'
  | 'workload_identity'
  | 'oauth_client_credentials'
  | 'programmatic_access_token'
  | 'oauth'
  | 'snowflake';

/** SnowflakeParts are the fields of a Snowflake DSN in the form. */
export interface SnowflakeParts {
  account: string;
  user: string;
  signIn: SignIn;
  password: string;
  privateKey: string;
  passphrase: string;
  token: string;
  /** Whose identity of the machine it is: oidc, aws, azure or gcp. */
  provider: string;
  clientId: string;
  clientSecret: string;
  tokenUrl: string;
  scope: string;
  role: string;
  warehouse: string;
  database: string;
  schema: string;
  /** Other parameters, kept unchanged. */
  rest: string;
}

export const noSnowflake: SnowflakeParts = {
  account: '',
  user: '',
  signIn: 'snowflake_jwt',
  password: '',
  privateKey: '',
  passphrase: '',
  token: '',
  provider: 'oidc',
  clientId: '',
  clientSecret: '',
  tokenUrl: '',
  scope: '',
  role: '',
  warehouse: '',
  database: '',
  schema: '',
  rest: '',
};

const secret = (s: string) => (s === '***' ? s : encodeURIComponent(s));

/** accountOf extracts the account from a pasted Snowflake URL. */
export function accountOf(text: string): string {
  return text
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/[/?#].*$/, '')
    .replace(/\.snowflakecomputing\.com$/i, '');
}

/** toSnowflake writes the parts as a DSN, without the secrets of other sign-in methods. */
export function toSnowflake(p: SnowflakeParts): string {
  const enc = encodeURIComponent;
  const password = p.signIn === 'snowflake' && p.password ? `:${secret(p.password)}` : '';
  const place = [p.database, p.schema];
  while (place.length > 0 && place[place.length - 1] === '') place.pop();
  const query = new URLSearchParams(p.rest);
  query.set('authenticator', p.signIn);
  if (p.role) query.set('role', p.role);
  if (p.warehouse) query.set('warehouse', p.warehouse);
  if (p.signIn === 'snowflake_jwt') {
    if (p.privateKey) query.set('private_key', p.privateKey.trim());
    if (p.passphrase) query.set('private_key_passphrase', p.passphrase);
  }
  if ((p.signIn === 'oauth' || p.signIn === 'programmatic_access_token') && p.token) query.set('token', p.token.trim());
  if (p.signIn === 'workload_identity') query.set('workload_identity_provider', p.provider);
  if (p.signIn === 'oauth_client_credentials') {
    query.set('oauth_client_id', p.clientId);
    if (p.clientSecret) query.set('oauth_client_secret', p.clientSecret);
    query.set('oauth_token_request_url', p.tokenUrl.trim());
    if (p.scope) query.set('oauth_scope', p.scope);
  }
  const user = p.user || password ? `${enc(p.user)}${password}@` : '';
  return `snowflake://${user}${accountOf(p.account)}${place.map((s) => `/${enc(s)}`).join('')}?${query}`;
}

function decode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

const kinds: SignIn[] = [
  'snowflake_jwt',
  'workload_identity',
  'oauth_client_credentials',
  'programmatic_access_token',
  'oauth',
  'snowflake',
];

/** fromSnowflake parses a DSN; null when the form cannot show it. */
export function fromSnowflake(text: string): SnowflakeParts | null {
  if (isAmbiguous(text)) return null;
  const m = /^(?:snowflake:\/\/)?(?:([^@/?#]*)@)?([^/?#@]+)(?:\/([^/?#]*))?(?:\/([^/?#]*))?(?:\?([^#]*))?$/i.exec(
    text.trim(),
  );
  if (!m || /^[a-z]+:\/\//i.test(m[2] ?? '')) return null;
  const [user, ...password] = (m[1] ?? '').split(':');
  const q = new URLSearchParams(m[5] ?? '');
  const take = (...names: string[]) => {
    let found = '';
    for (const name of names) {
      found ||= q.get(name) ?? '';
      q.delete(name);
    }
    return found;
  };
  const privateKey = take('private_key', 'privateKey');
  const token = take('token');
  const authenticator = take('authenticator').toLowerCase();
  const signIn = authenticator || (privateKey ? 'snowflake_jwt' : token ? 'programmatic_access_token' : 'snowflake');
  if (!kinds.includes(signIn as SignIn)) return null;
  return {
    account: decode(m[2] ?? ''),
    user: decode(user ?? ''),
    signIn: signIn as SignIn,
    password: decode(password.join(':')),
    privateKey,
    passphrase: take('private_key_passphrase'),
    token,
    provider: take('workload_identity_provider').toLowerCase() || noSnowflake.provider,
    clientId: take('oauth_client_id'),
    clientSecret: take('oauth_client_secret'),
    tokenUrl: take('oauth_token_request_url'),
    scope: take('oauth_scope'),
    role: take('role'),
    warehouse: take('warehouse'),
    database: decode(m[3] ?? '') || take('database'),
    schema: decode(m[4] ?? '') || take('schema'),
    rest: q.toString(),
  };
}
