import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useMe } from '../api/queries';
import type { Connection, ConnectionCheck, ConnectionInput } from '../api/types';
import { AccessFields, accessInput, draftOf, useIsOwner } from '../app/AccessFields';
import { Segments } from '../design/Controls';
import { Dialog } from '../design/Dialog';
import { latency, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Notice, ProblemNotice } from '../design/States';
import { useToast } from '../design/Toast';
import { SimulatedBadge } from '../design/Status';
import { certificateProblems, type Certificates, type DsnParts, formProblem, fromUrl, noParts, toUrl } from './dsn';
import { CertificateFields } from './CertificateFields';
import { SnowflakeFields } from './SnowflakeFields';
import { fromSnowflake, noSnowflake, type SnowflakeParts, toSnowflake } from './snowflake';

export function CheckResult({ check }: { check: ConnectionCheck }) {
  const s = check.server;
  return (
    <Notice tone="ok">
      <strong>Connected.</strong> Version {s.version}, database “{s.database}” as “{s.user}”, round trip{' '}
      {plain(latency(check.round_trip_ms))}
      {s.max_connections > 0 && `, at most ${s.max_connections} connections`}
      {s.local && ', on this machine'}. {s.simulated && <SimulatedBadge of={s} />}
      {(s.notes ?? []).map((n) => (
        <p key={n}>{n}</p>
      ))}
    </Notice>
  );
}

export function ConnectionForm(props: {
  existing: Connection | null;
  onClose: () => void;
  onSaved?: (c: { name: string; driver: ConnectionInput['driver'] }) => void;
}) {
  const { existing, onClose } = props;
  const qc = useQueryClient();
  const toast = useToast();
  const [driver, setDriver] = useState<ConnectionInput['driver']>(
    existing?.driver === 'snowflake' ? 'snowflake' : 'postgres',
  );
  const snowflake = driver === 'snowflake';
  const readable = existing ? (snowflake ? fromSnowflake(existing.dsn) : fromUrl(existing.dsn)) : noParts;
  const [name, setName] = useState(existing?.name ?? '');
  const [description, setDescription] = useState(existing?.description ?? '');
  const [inputMode, setInputMode] = useState<'fields' | 'url'>(readable ? 'fields' : 'url');
  const [savedParts] = useState<DsnParts | null>(() => (existing ? fromUrl(existing.dsn) : null));
  const [parts, setParts] = useState<DsnParts>(savedParts ?? noParts);
  const [savedSnowflake] = useState(() => existing && fromSnowflake(existing.dsn));
  const [sfParts, setSfParts] = useState<SnowflakeParts>(savedSnowflake ?? noSnowflake);
  const [url, setUrl] = useState(existing?.dsn ?? '');
  const [production, setProduction] = useState(existing?.production ?? false);
  const [access, setAccess] = useState(draftOf(existing?.access));
  const isOwner = useIsOwner(existing?.access);
  const admin = useMe().data?.role === 'admin';
  const written = snowflake ? toSnowflake(sfParts) : toUrl(parts);
  const asSaved = snowflake ? savedSnowflake && toSnowflake(savedSnowflake) : savedParts && toUrl(savedParts);
  // Fields that nobody has changed leave the address in the words in which it was saved.
  const fromFields = existing && written === asSaved ? existing.dsn : written;
  const dsn = inputMode === 'url' ? url.trim() : fromFields;

  const test = useMutation({
    mutationFn: () =>
      api.post('/api/connections/test', {
        body: {
          driver,
          dsn,
          ...(existing ? { connection_id: existing.connection_id } : {}),
        },
      }),
  });
  const save = useMutation({
    mutationFn: () => {
      const body = {
        ...{ name: name.trim(), driver, dsn, description: description.trim() || undefined },
        ...{ production, access: accessInput(access, existing?.access) },
      };
      return existing
        ? api.put('/api/connections/{id}', {
            path: { id: existing.connection_id },
            body: { ...body, version: existing.version },
          })
        : api.post('/api/connections', { body });
    },
    onSuccess: async (c) => {
      // A tested draft is tested again as the saved connection, so that its card shows the result.
      if (test.data?.ok && c)
        void api
          .post('/api/connections/{id}/test', { path: { id: c.connection_id } })
          .then(() => qc.invalidateQueries({ queryKey: ['connection-use'] }))
          .catch(() => {}); // it was saved; its card has the button
      await qc.invalidateQueries({ queryKey: ['connections'] });
      toast(`Connection “${c?.name ?? name}” was saved.`, 'ok');
      props.onSaved?.({ name: c?.name ?? name.trim(), driver });
      onClose();
    },
  });
  const wrong = [save.error, test.error].flatMap((e) => (e ? asProblem(e).fields : []));
  // Errors shown under a field are not repeated.
  const inWords = (err: unknown) => (inputMode === 'fields' && !snowflake ? formProblem(err) : err);
  const placed = inputMode === 'fields' && !snowflake && Object.keys(certificateProblems(wrong)).length > 0;
  const set = (k: keyof DsnParts) => (e: { target: { value: string } }) => {
    setParts({ ...parts, [k]: e.target.value });
    test.reset();
  };
  const submit = (e: FormEvent) => {
    e.preventDefault();
    save.mutate();
  };
  const field = (k: keyof DsnParts, label: string, placeholder: string, more: Record<string, unknown> = {}) => (
    <div className="field">
      <label className="label" htmlFor={`dsn-${k}`}>
        {label}
      </label>
      <input
        id={`dsn-${k}`}
        className="input"
        value={parts[k]}
        onChange={set(k)}
        placeholder={placeholder}
        autoComplete="off"
        spellCheck={false}
        {...more}
      />
    </div>
  );
  return (
    <Dialog wide title={existing ? `Connection “${existing.name}”` : 'New connection'} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <div className="columns three">
          <div className="field">
            <label className="label" htmlFor="c-name">
              Name
            </label>
            <input
              id="c-name"
              className="input"
              value={name}
              onChange={(e) => setName(e.target.value)}
              placeholder="staging"
              required
              maxLength={100}
            />
            {wrong.some((w) => w.field === 'name') ? (
              <span className="problem">{wrong.find((w) => w.field === 'name')!.message}</span>
            ) : (
              <span className="help">Templates refer to it by this name.</span>
            )}
          </div>
          <div className="field">
            <label className="label" htmlFor="c-driver">
              Kind of database
            </label>
            <select
              id="c-driver"
              className="input"
              value={driver}
              disabled={existing !== null}
              onChange={(e) => {
                setDriver(e.target.value as ConnectionInput['driver']);
                setUrl('');
                test.reset();
              }}
            >
              <option value="postgres">Postgres</option>
              <option value="snowflake">Snowflake</option>
            </select>
          </div>
        </div>
        <div className="row">
          <Segments
            label="Form of the address"
            value={inputMode}
            options={[
              { value: 'fields', label: 'Fields' },
              { value: 'url', label: 'URL' },
            ]}
            onChange={(h) => {
              if (h === 'url') setUrl(fromFields);
              else if (snowflake) setSfParts(fromSnowflake(url) ?? sfParts);
              else setParts(fromUrl(url) ?? parts);
              setInputMode(h);
            }}
          />
          {inputMode === 'url' && url !== '' && !(snowflake ? fromSnowflake(url) : fromUrl(url)) && (
            <span className="muted">The driver receives this text unchanged.</span>
          )}
        </div>
        {inputMode === 'fields' && snowflake ? (
          <SnowflakeFields
            parts={sfParts}
            saved={existing !== null}
            onChange={(p) => {
              setSfParts(p);
              test.reset();
            }}
          />
        ) : inputMode === 'fields' ? (
          <>
            <div className="dsn-grid">
              {field('host', 'Host or socket folder', 'db.example.com', { required: true })}
              {field('port', 'Port', '5432', { inputMode: 'numeric', pattern: '[0-9]*' })}
            </div>
            <div className="columns three">
              {field('database', 'Database', 'postgres', { required: true })}
              {field('user', 'User', 'bench', { required: true })}
              {field('password', 'Password', '', { type: 'password', autoComplete: 'new-password' })}
              <div className="field span-two">
                <label className="label" htmlFor="dsn-ssl">
                  TLS
                </label>
                <select id="dsn-ssl" className="input" value={parts.sslmode} onChange={set('sslmode')}>
                  <option value="disable">disable: never</option>
                  <option value="prefer">prefer: if offered</option>
                  <option value="require">require: always</option>
                  <option value="verify-ca">verify-ca: check the issuer</option>
                  <option value="verify-full">verify-full: check the name too</option>
                  {parts.sslmode === '' && <option value="">not used on a socket</option>}
                </select>
              </div>
            </div>
            {!parts.host.startsWith('/') && (
              <CertificateFields
                parts={parts}
                saved={savedParts}
                wrong={wrong}
                onChange={(c: Certificates) => {
                  setParts({ ...parts, ...c });
                  test.reset();
                  save.reset();
                }}
              />
            )}
            {existing && parts.password === '***' && (
              <p className="muted">
                Leave *** to keep the saved password. This works while the address and the certificates are the saved
                ones.
              </p>
            )}
          </>
        ) : (
          <div className="field">
            <label className="label" htmlFor="c-url">
              URL
            </label>
            <input
              id="c-url"
              className="input mono"
              value={url}
              onChange={(e) => {
                setUrl(e.target.value);
                test.reset();
              }}
              placeholder={
                snowflake
                  ? 'snowflake://user:password@account/database/schema?warehouse=…&role=…'
                  : 'postgres://user:password@host:5432/database'
              }
              required
              spellCheck={false}
              autoComplete="off"
            />
          </div>
        )}
        <div className="field">
          <label className="label" htmlFor="c-desc">
            Description <span className="muted">optional</span>
          </label>
          <input
            id="c-desc"
            className="input"
            value={description}
            onChange={(e) => setDescription(e.target.value)}
            maxLength={1000}
          />
        </div>
        <label className="choice">
          <input
            type="checkbox"
            checked={production}
            disabled={(existing?.production && !admin) || !isOwner}
            onChange={(e) => setProduction(e.target.checked)}
          />
          <span>
            <strong>Production</strong>{' '}
            <span className="muted">whoever starts a run against it types its name; only an admin takes this back</span>
          </span>
        </label>
        <AccessFields
          saved={existing?.access}
          value={access}
          onChange={setAccess}
          problem={wrong.find((w) => w.field.startsWith('access'))?.message}
        />
        {test.data && <CheckResult check={test.data} />}
        {test.error && !placed && <ProblemNotice error={inWords(test.error)} />}
        {save.error && !placed && <ProblemNotice error={inWords(save.error)} />}
        <div className="actions">
          <button
            type="button"
            className="btn test"
            onClick={() => test.mutate()}
            disabled={test.isPending || dsn === ''}
          >
            <Icon name="link" /> {test.isPending ? 'Testing…' : 'Test connection'}
          </button>
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={save.isPending}>
            Save connection
          </button>
        </div>
      </form>
    </Dialog>
  );
}
