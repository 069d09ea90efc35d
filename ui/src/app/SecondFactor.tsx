import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, asProblem, Problem } from '../api/client';
import { useMe } from '../api/queries';
import { CopyButton } from '../design/Controls';
import { Dialog } from '../design/Dialog';
import { ProblemNotice } from '../design/States';
import { ShownOnce } from '../design/ShownOnce';
import { useToast } from '../design/Toast';

type Enrolment = { secret: string; url: string; qr_svg: string };

/** CodeField is the one-time code input; phones and password managers fill it in. */
export function CodeField(props: {
  id: string;
  value: string;
  onChange: (v: string) => void;
  recovery?: boolean;
  autoFocus?: boolean;
}) {
  const help = props.recovery
    ? 'Six digits, or a recovery code if you lost the app.'
    : 'Six digits that change every 30 seconds.';
  return (
    <div className="field">
      <label className="label" htmlFor={props.id}>
        Code of your authenticator app
      </label>
      <input
        id={props.id}
        className="input mono"
        autoComplete="one-time-code"
        inputMode={props.recovery ? 'text' : 'numeric'}
        autoCapitalize="none"
        spellCheck={false}
        maxLength={100}
        value={props.value}
        onChange={(e) => props.onChange(e.target.value)}
        aria-describedby={`${props.id}-help`}
        autoFocus={props.autoFocus}
        required
      />
      <span className="help" id={`${props.id}-help`}>
        {help}
      </span>
    </div>
  );
}

/** SecondFactor turns the second factor on and off. */
export function SecondFactor() {
  const me = useMe();
  const qc = useQueryClient();
  const toast = useToast();
  const has = me.data?.has_password === true && !me.data.external;
  const state = useQuery({
    queryKey: ['totp'],
    queryFn: ({ signal }) => api.get('/api/auth/totp', { signal }),
    enabled: has,
  });
  const [enrolling, setEnrolling] = useState(false);
  const [codes, setCodes] = useState<string[] | null>(null);
  const [ending, setEnding] = useState(false);
  if (!has || !state.data) return null;
  const changed = () => qc.invalidateQueries({ queryKey: ['totp'] });
  const { enabled, recovery_left } = state.data;
  const left = `${recovery_left} recovery ${recovery_left === 1 ? 'code' : 'codes'} left`;
  return (
    <div className="row second-factor">
      <span className="grow">
        Second factor: <strong>{enabled ? 'on' : 'off'}</strong>{' '}
        <span className="muted">
          {enabled ? `· sign-in asks for a code · ${left}` : '· sign in with a code from an app as well'}
        </span>
      </span>
      <button type="button" className="btn small" onClick={() => (enabled ? setEnding(true) : setEnrolling(true))}>
        {enabled ? 'Turn off' : 'Turn on'}
      </button>
      {enrolling && (
        <Enrol
          onClose={() => setEnrolling(false)}
          onDone={(made) => {
            setEnrolling(false);
            setCodes(made);
            void changed();
          }}
        />
      )}
      {codes && (
        <ShownOnce title="Recovery codes" text={codes.join('\n')} copy="Copy the codes" onClose={() => setCodes(null)}>
          <p>Each code signs you in once if you lose the app. Keep them in your password manager.</p>
        </ShownOnce>
      )}
      {ending && (
        <TurnOff
          onClose={() => setEnding(false)}
          onDone={() => {
            setEnding(false);
            toast('Second factor turned off.', 'ok');
            void changed();
          }}
        />
      )}
    </div>
  );
}

/** PasswordField asks for the password once more, so that a page that was left open is not enough. */
function PasswordField(props: { value: string; onChange: (v: string) => void }) {
  return (
    <div className="field">
      <label className="label" htmlFor="totp-password">
        Password
      </label>
      <input
        id="totp-password"
        type="password"
        className="input"
        autoComplete="current-password"
        value={props.value}
        onChange={(e) => props.onChange(e.target.value)}
        autoFocus
        required
      />
    </div>
  );
}

function Enrol(props: { onClose: () => void; onDone: (codes: string[]) => void }) {
  const [password, setPassword] = useState('');
  const [enrolment, setEnrolment] = useState<Enrolment | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  if (enrolment) return <Confirm enrolment={enrolment} onClose={props.onClose} onDone={props.onDone} />;
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      setEnrolment(await api.post('/api/auth/totp', { body: { password } }));
    } catch (err) {
      setProblem(asProblem(err));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Turn on the second factor" onClose={props.onClose}>
      <form className="stack" onSubmit={(e) => void submit(e)}>
        {problem && <ProblemNotice error={problem} />}
        <PasswordField value={password} onChange={setPassword} />
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy || password === ''}>
            Continue
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Confirm(props: { enrolment: Enrolment; onClose: () => void; onDone: (codes: string[]) => void }) {
  const [code, setCode] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      props.onDone((await api.post('/api/auth/totp/confirm', { body: { code } })).recovery_codes);
    } catch (err) {
      setProblem(asProblem(err));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Turn on the second factor" onClose={props.onClose}>
      <form className="stack" onSubmit={(e) => void submit(e)}>
        <p>Scan this with an authenticator app, then enter the code it shows.</p>
        <img
          className="totp-qr"
          src={`data:image/svg+xml;utf8,${encodeURIComponent(props.enrolment.qr_svg)}`}
          alt="QR code for the authenticator app; the same secret is in the text below"
          width="200"
          height="200"
        />
        <div className="row nowrap">
          <code className="grow wrap-anywhere">{props.enrolment.secret}</code>
          <CopyButton text={props.enrolment.secret} label="Copy the secret" />
        </div>
        {problem && <ProblemNotice error={problem} />}
        <CodeField id="totp-confirm" value={code} onChange={setCode} autoFocus />
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy || code.trim() === ''}>
            Turn on
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function TurnOff(props: { onClose: () => void; onDone: () => void }) {
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    try {
      await api.post('/api/auth/totp/disable', { body: { password, code } });
      props.onDone();
    } catch (err) {
      setProblem(asProblem(err));
      setBusy(false);
    }
  };
  return (
    <Dialog title="Turn off the second factor" onClose={props.onClose}>
      <form className="stack" onSubmit={(e) => void submit(e)}>
        {problem && <ProblemNotice error={problem} />}
        <PasswordField value={password} onChange={setPassword} />
        <CodeField id="totp-off" value={code} onChange={setCode} recovery />
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn danger" disabled={busy || password === '' || code.trim() === ''}>
            Turn off
          </button>
        </div>
      </form>
    </Dialog>
  );
}
