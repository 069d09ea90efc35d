import type { SignIn, SnowflakeParts } from './snowflake';

const signIns: { value: SignIn; label: string; help: string }[] = [
  {
    value: 'snowflake_jwt',
    label: 'Key pair',
    help: 'Loadstone signs in with the private key of the user. Recommended for runs.',
  },
  {
    value: 'workload_identity',
    label: 'Workload identity',
    help:
      'The identity of the machine or job that runs Loadstone, without a secret. Allow it on the server with ' +
      'LOADSTONE_SNOWFLAKE_IDENTITY.',
  },
  {
    value: 'oauth_client_credentials',
    label: 'OAuth client',
    help: 'A client of your authorization server. Loadstone requests access tokens when needed, also during a run.',
  },
  {
    value: 'programmatic_access_token',
    label: 'Access token',
    help:
      'A programmatic access token. Its user needs a network policy. A token restricted to a role ' +
      'signs in with that role alone.',
  },
  {
    value: 'oauth',
    label: 'OAuth token',
    help: 'One access token of your authorization server. It expires within minutes, so long runs fail.',
  },
  {
    value: 'snowflake',
    label: 'Password',
    help: 'Only for users without a second factor. A user of TYPE = SERVICE has no password.',
  },
];

const providers = [
  { value: 'oidc', label: 'OpenID Connect (Kubernetes, GitHub)' },
  { value: 'aws', label: 'AWS' },
  { value: 'azure', label: 'Azure' },
  { value: 'gcp', label: 'Google Cloud' },
];

/** SnowflakeFields are the inputs of a Snowflake connection. Secrets are write-only: saved ones show as ***. */
export function SnowflakeFields(props: {
  parts: SnowflakeParts;
  saved: boolean;
  onChange: (parts: SnowflakeParts) => void;
}) {
  const { parts, onChange } = props;
  const field = (k: keyof SnowflakeParts, label: string, placeholder: string, more: Record<string, unknown> = {}) => (
    <div className="field">
      <label className="label" htmlFor={`sf-${k}`}>
        {label}
      </label>
      <input
        id={`sf-${k}`}
        className="input"
        value={parts[k]}
        onChange={(e) => onChange({ ...parts, [k]: e.target.value })}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        {...more}
      />
    </div>
  );
  const secret = { type: 'password', autoComplete: 'new-password' };
  const kind = signIns.find((s) => s.value === parts.signIn) ?? signIns[0]!;
  const masked = [parts.password, parts.privateKey, parts.passphrase, parts.token, parts.clientSecret].includes('***');
  return (
    <>
      <div className="columns three">
        {field('account', 'Account', 'ORGANIZATION-NAME', { required: true })}
        {field('user', 'User', 'LOADSTONE', {
          required: parts.signIn === 'snowflake' || parts.signIn === 'snowflake_jwt',
        })}
        <div className="field">
          <label className="label" htmlFor="sf-sign-in">
            Sign in with
          </label>
          <select
            id="sf-sign-in"
            className="input"
            value={parts.signIn}
            onChange={(e) => onChange({ ...parts, signIn: e.target.value as SignIn })}
          >
            {signIns.map((s) => (
              <option key={s.value} value={s.value}>
                {s.label}
              </option>
            ))}
          </select>
        </div>
      </div>
      <p className="muted">{kind.help}</p>
      {parts.signIn === 'snowflake' && field('password', 'Password', '', { ...secret, required: true })}
      {parts.signIn === 'snowflake_jwt' && (
        <>
          <div className="field">
            <label className="label" htmlFor="sf-key">
              Private key
            </label>
            <textarea
              id="sf-key"
              className="input mono"
              rows={4}
              required
              value={parts.privateKey}
              onChange={(e) => onChange({ ...parts, privateKey: e.target.value })}
              placeholder="-----BEGIN ENCRYPTED PRIVATE KEY-----"
              autoComplete="off"
              spellCheck={false}
            />
            <span className="help">
              PEM or base64, PKCS#8, encrypted or not. Loadstone stores it encrypted and never shows it again.
            </span>
          </div>
          {field('passphrase', 'Passphrase of the key', 'none', secret)}
        </>
      )}
      {(parts.signIn === 'oauth' || parts.signIn === 'programmatic_access_token') &&
        field('token', 'Token', '', { ...secret, required: true })}
      {parts.signIn === 'workload_identity' && (
        <div className="field">
          <label className="label" htmlFor="sf-provider">
            Whose identity
          </label>
          <select
            id="sf-provider"
            className="input"
            value={parts.provider}
            onChange={(e) => onChange({ ...parts, provider: e.target.value })}
          >
            {providers.map((p) => (
              <option key={p.value} value={p.value}>
                {p.label}
              </option>
            ))}
          </select>
        </div>
      )}
      {parts.signIn === 'oauth_client_credentials' && (
        <div className="columns three">
          {field('clientId', 'Client ID', '', { required: true })}
          {field('clientSecret', 'Client secret', '', { ...secret, required: true })}
          {field('tokenUrl', 'Token endpoint', 'https://idp.example.com/oauth2/token', { required: true })}
          {field('scope', 'Scope', 'session:role:ROLE')}
        </div>
      )}
      <div className="columns three">
        {field('role', 'Role', 'the user’s default')}
        {field('warehouse', 'Warehouse', 'LOADSTONE_WH')}
        {field('database', 'Database', 'LOADSTONE')}
        {field('schema', 'Schema', 'PUBLIC')}
      </div>
      <p className="muted">Snowflake reads names in upper case. Use double quotes for other names: "my db".</p>
      {props.saved && masked && <p className="muted">Leave *** to keep the saved secret.</p>}
    </>
  );
}
