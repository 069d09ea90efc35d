import { useId, useState } from 'react';
import type { FieldError } from '../api/types';
import { certificateProblems, type Certificates } from './dsn';

const fields: { key: keyof Certificates; label: string; placeholder: string; help: string }[] = [
  {
    key: 'sslrootcert',
    label: 'CA certificate',
    placeholder: '-----BEGIN CERTIFICATE-----',
    help:
      'The authority that signed the server’s certificate, for verify-ca and verify-full. Empty: the ' +
      'authorities that this machine trusts.',
  },
  {
    key: 'sslcert',
    label: 'Client certificate',
    placeholder: '-----BEGIN CERTIFICATE-----',
    help: 'Only if the server requires one. It needs its key.',
  },
  {
    key: 'sslkey',
    label: 'Key of the client certificate',
    placeholder: '-----BEGIN PRIVATE KEY-----',
    help: 'Without a passphrase. Loadstone stores it encrypted and never shows it again.',
  },
];

/**
 * CertificateFields are the certificates of a Postgres connection as PEM text. They are write-only: a saved one can be
 * replaced or removed.
 */
export function CertificateFields(props: {
  parts: Certificates;
  saved: Certificates | null;
  wrong: FieldError[];
  onChange: (parts: Certificates) => void;
}) {
  const { parts, saved, onChange } = props;
  const any = fields.some(({ key }) => parts[key] !== '' || saved?.[key]);
  const problems = certificateProblems(props.wrong);
  const [open, setOpen] = useState(any);
  return (
    <details
      className="certificates"
      open={open || Object.keys(problems).length > 0}
      onToggle={(e) => setOpen(e.currentTarget.open)}
    >
      <summary>Certificates</summary>
      <div className="stack">
        {fields.map(({ key, ...f }) => (
          <Certificate
            key={key}
            {...f}
            value={parts[key]}
            saved={saved?.[key] ?? ''}
            problem={problems[key]}
            onChange={(v) =>
              onChange({ sslrootcert: parts.sslrootcert, sslcert: parts.sslcert, sslkey: parts.sslkey, [key]: v })
            }
          />
        ))}
      </div>
    </details>
  );
}

function Certificate(props: {
  label: string;
  placeholder: string;
  help: string;
  value: string;
  saved: string;
  problem?: string;
  onChange: (value: string) => void;
}) {
  const { label, value, saved, problem } = props;
  const id = useId();
  const keepsSaved = saved !== '' && value === saved;
  return (
    <div className="field">
      <label className="label" htmlFor={id}>
        {label}
        {!keepsSaved && <span className="muted">optional</span>}
      </label>
      {keepsSaved ? (
        <div className="row" id={id} role="group" aria-label={`${label}, saved`}>
          <span className="badge ok">saved</span>
          <button type="button" className="btn small" onClick={() => props.onChange('')}>
            Replace or remove
          </button>
        </div>
      ) : (
        <>
          <textarea
            id={id}
            className="input mono"
            rows={3}
            value={value}
            aria-invalid={problem ? true : undefined}
            aria-describedby={`${id}-note`}
            onChange={(e) => props.onChange(e.target.value)}
            placeholder={props.placeholder}
            autoComplete="off"
            spellCheck={false}
          />
          {saved !== '' && (
            <div className="row">
              <span className="muted">
                {value === '' ? 'The saved value will be removed.' : 'The saved value will be replaced.'}
              </span>
              <button type="button" className="btn quiet small" onClick={() => props.onChange(saved)}>
                Keep the saved value
              </button>
            </div>
          )}
        </>
      )}
      <span id={`${id}-note`} className={problem ? 'problem' : 'help'} role={problem ? 'alert' : undefined}>
        {problem ?? props.help}
      </span>
    </div>
  );
}
