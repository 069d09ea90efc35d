import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { api, asProblem, type Problem } from '../api/client';
import { ProblemNotice } from '../design/States';
import { usePageTitle } from './location';
import { NewPassword } from './NewPassword';

/** Join is the page of an invitation: the user chooses a password and is signed in. */
export function Join() {
  usePageTitle('Join');
  const params = new URLSearchParams(useSearch());
  const invitation = params.get('invitation') ?? '';
  const name = params.get('name') ?? '';
  const [, navigate] = useLocation();
  const qc = useQueryClient();
  const [password, setPassword] = useState('');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await api.post('/api/auth/signin', { body: { invitation, password } });
      qc.clear(); // another user may have been signed in here
      navigate('/', { replace: true });
    } catch (err) {
      setProblem(asProblem(err));
      setBusy(false);
    }
  };
  return (
    <main className="signin">
      <div className="signin-card">
        <div className="signin-brand">
          <img src="/favicon.svg" alt="" width="40" height="40" />
          <div>
            <h1>Loadstone</h1>
            <p className="muted">Load testing for databases.</p>
          </div>
        </div>
        {problem && <ProblemNotice error={problem} />}
        {problem?.status === 401 ? (
          <Link href="/signin" className="btn">
            I already have a password
          </Link>
        ) : (
          <>
            <p>
              You have been invited. Choose a password; you sign in with it and the name{' '}
              <strong className="wrap-anywhere">{name || 'from your invitation'}</strong>.
            </p>
            <form onSubmit={(e) => void submit(e)} className="stack">
              <input type="hidden" autoComplete="username" value={name} readOnly />
              <NewPassword value={password} onChange={setPassword} />
              <button type="submit" className="btn primary" disabled={busy || password === ''}>
                Set the password and sign in
              </button>
            </form>
          </>
        )}
      </div>
    </main>
  );
}
