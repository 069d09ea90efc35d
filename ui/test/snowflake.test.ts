import { describe, expect, it } from 'vitest';
import { accountOf, fromSnowflake, noSnowflake, toSnowflake } from '../src/connections/snowflake';

const key = '-----BEGIN PRIVATE KEY-----\nMII+/=\n-----END PRIVATE KEY-----';

describe('a Snowflake connection', () => {
  it.each([
    {
      ...noSnowflake,
      account: 'acme-prod',
      user: 'U',
      signIn: 'snowflake' as const,
      password: 'p@s:s/w?d',
      warehouse: 'W',
      role: 'R',
      database: 'DB',
      schema: 'S',
    },
    {
      ...noSnowflake,
      account: 'xy.eu-central-1',
      user: 'U',
      privateKey: key,
      passphrase: 'a b&c',
      database: '"lower db"',
      schema: '"we""ird;"',
    },
    { ...noSnowflake, account: 'acme', user: '', signIn: 'oauth' as const, token: 'a.b+c/d=' },
    {
      ...noSnowflake,
      account: 'acme',
      user: 'U',
      signIn: 'programmatic_access_token' as const,
      token: '***',
      schema: 'S',
    },
    { ...noSnowflake, account: 'acme', signIn: 'workload_identity' as const, provider: 'gcp', role: 'R' },
    {
      ...noSnowflake,
      account: 'acme',
      signIn: 'oauth_client_credentials' as const,
      clientId: 'a client',
      clientSecret: 's&c=r?t+',
      tokenUrl: 'https://idp.example.com/t?x=1',
      scope: 'session:role:R',
      rest: 'secondary_roles=none',
    },
    {
      ...noSnowflake,
      account: '127.0.0.1:8080',
      user: 'U',
      signIn: 'snowflake' as const,
      password: '***',
      rest: 'account=snowsim&protocol=http',
    },
  ])('survives the form: $account $signIn', (parts) => expect(fromSnowflake(toSnowflake(parts))).toEqual(parts));

  it('keeps the mask of a saved secret readable', () => {
    expect(toSnowflake({ ...noSnowflake, account: 'a', user: 'u', signIn: 'snowflake', password: '***' })).toContain(
      'u:***@a',
    );
    expect(toSnowflake({ ...noSnowflake, account: 'a', user: 'u', privateKey: '***' })).toContain('private_key=***');
  });

  it('leaves out the secrets of another sign-in', () => {
    const dsn = toSnowflake({
      ...noSnowflake,
      account: 'a',
      user: 'u',
      password: 'pw',
      token: 'tk',
      privateKey: 'k',
      clientSecret: 'cs',
    });
    expect(dsn).not.toMatch(/pw|tk|cs|oauth|workload/);
  });

  it('takes the account out of an address', () => {
    expect(accountOf(' https://acme-prod.snowflakecomputing.com/console ')).toBe('acme-prod');
    expect(accountOf('acme.privatelink.snowflakecomputing.com')).toBe('acme.privatelink');
  });

  it.each(['postgres://u@h/d', 'u:p@a?authenticator=externalbrowser', 'a/b/c/d'])('does not read %s', (dsn) =>
    expect(fromSnowflake(dsn)).toBeNull(),
  );

  it('reads the DSN of other clients', () =>
    expect(fromSnowflake('u:p%40w@acme/db?warehouse=w&privateKey=x')).toMatchObject({
      user: 'u',
      password: 'p@w',
      account: 'acme',
      database: 'db',
      warehouse: 'w',
      privateKey: 'x',
      signIn: 'snowflake_jwt',
    }));
});

describe('a Snowflake address in which it cannot be told where the password ends', () => {
  it.each(['snowflake://u:p@ss@acme/db', 'u:p/ss@acme', 'u:p?ss@acme', 'u:p#ss@acme', 'u:p@acme/db@ss'])(
    '%s is shown in no field',
    (text) => {
      expect(fromSnowflake(text)).toBeNull();
    },
  );
});
