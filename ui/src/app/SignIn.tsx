import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useCallback, useEffect, useRef, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { useHistoryState } from 'wouter/use-browser-location';
import { api, asProblem, Problem } from '../api/client';
import { Notice } from '../design/States';
import { usePageTitle } from './location';
import { CodeField } from './SecondFactor';
import { asSentence } from '../design/sentences';

/** tokenFrom extracts the token from a pasted link or token. */
export function tokenFrom(pasted: string): string {
  const text = pasted.trim();
  const m = /[?&]token=([^&\s#]+)/.exec(text);
  return m ? decodeURIComponent(m[1]!) : text;
}

/** safeNext allows only paths of this page after sign-in. */
export function safeNext(next: string | null): string {
  return next && /^\/(?![/\\])/.test(next) && !next.startsWith('/signin') ? next : '/';
}

/** signInProblem explains why the sign-in provider was rejected, by the code in the redirect. */
function signInProblem(code: string | null): Problem | null {
  if (code === null) return null;
  const words: Record<string, [string, string]> = {
    unauthorized: ['The sign-in provider rejected the sign-in.', 'Press the button to try again.'],
    forbidden: ['You may not use this server.', 'Ask an admin to allow one of your groups, or to enable your user.'],
    conflict: ['A user with this name already exists, or you are the last admin.', 'Ask an admin.'],
    unavailable: ['The sign-in provider does not answer.', 'Try again later, or sign in another way.'],
  };
  const [message, hint] = words[code] ?? ['Sign-in failed.', 'Try again.'];
  return new Problem(0, '', message, hint);
}

export function SignIn() {
  usePageTitle('Sign in');
  const search = useSearch();
  const [, navigate] = useLocation();
  const qc = useQueryClient();
  const params = new URLSearchParams(search);
  const linked = params.get('token');
  const next = safeNext(params.get('next'));
  const [token, setToken] = useState('');
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  // Asked after the password is correct.
  const [code, setCode] = useState<string | null>(null);
  const [busy, setBusy] = useState(linked !== null);
  const [problem, setProblem] = useState<Problem | null>(signInProblem(params.get('refused')));
  const ways = useQuery({
    queryKey: ['ways'],
    queryFn: ({ signal }) => api.get('/api/auth/ways', { signal }),
    staleTime: 60_000,
  });
  const provider = ways.data?.provider;
  const left = useHistoryState<{ ended?: boolean; reason?: string } | null>();
  const ended = left?.ended === true;
  const sent = useRef(false);

  const signIn = useCallback(
    async (by: { token: string } | { name: string; password: string; code?: string }) => {
      setBusy(true);
      setProblem(null);
      try {
        await api.post('/api/auth/signin', { body: by });
        qc.clear(); // another user may have been signed in here
        navigate(next, { replace: true });
      } catch (err) {
        const p = asProblem(err);
        const needsCode = p.fields.some((f) => f.field === 'code');
        if (needsCode) setCode((typed) => typed ?? '');
        // Asking for a code is the next step, not an error.
        setProblem(needsCode && !('code' in by && by.code) ? null : p);
        setBusy(false);
        // A used link must not stay in the address bar, nor be sent again on reload.
        if (location.search.includes('token=')) navigate(`/signin?next=${encodeURIComponent(next)}`, { replace: true });
      }
    },
    [navigate, next, qc],
  );

  useEffect(() => {
    if (linked === null || sent.current) return;
    sent.current = true;
    void signIn({ token: linked });
  }, [linked, signIn]);

  const withLink = (e: FormEvent) => {
    e.preventDefault();
    const secret = tokenFrom(token);
    if (secret.startsWith('lst_')) {
      setProblem(
        new Problem(
          0,
          '',
          'This is an API token. It does not sign you in here.',
          'API tokens are for the command line and CI. Use the one-time link that the server printed when it started.',
        ),
      );
      return;
    }
    void signIn({ token: secret });
  };
  const withPassword = (e: FormEvent) => {
    e.preventDefault();
    void signIn({ name: name.trim(), password, ...(code ? { code: code.trim() } : {}) });
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
        {busy && !problem ? (
          <p role="status">Signing in…</p>
        ) : (
          <>
            {problem && (
              <Notice tone="bad">
                <strong>{asSentence(problem.message)}</strong> {asSentence(problem.hint)}
              </Notice>
            )}
            {ended && !problem && code === null && (
              <Notice>
                <strong>{left?.reason || 'Your session has ended.'}</strong> Sign in again to return to where you were.
              </Notice>
            )}
            {code !== null ? (
              <form onSubmit={withPassword} className="stack" aria-label="Second factor">
                <p>
                  The password of <strong className="wrap-anywhere">{name.trim()}</strong> is right.
                </p>
                <CodeField id="code" value={code} onChange={setCode} recovery autoFocus />
                <div className="row">
                  <button
                    type="button"
                    className="btn"
                    onClick={() => {
                      setCode(null);
                      setPassword('');
                      setProblem(null);
                    }}
                  >
                    Back
                  </button>
                  <button type="submit" className="btn primary" disabled={busy || code.trim() === ''}>
                    Sign in
                  </button>
                </div>
              </form>
            ) : (
              <>
                {provider && (
                  <>
                    <a className="btn primary" href={`/api/auth/oidc/start?next=${encodeURIComponent(next)}`}>
                      Sign in with {provider}
                    </a>
                    <div className="signin-or">
                      <span>or with a password</span>
                    </div>
                  </>
                )}
                <form onSubmit={withPassword} className="stack" aria-label="Name and password">
                  <div className="field">
                    <label className="label" htmlFor="name">
                      Name
                    </label>
                    <input
                      id="name"
                      className="input"
                      autoComplete="username"
                      autoCapitalize="none"
                      spellCheck={false}
                      value={name}
                      onChange={(e) => setName(e.target.value)}
                      required
                    />
                  </div>
                  <div className="field">
                    <label className="label" htmlFor="password">
                      Password
                    </label>
                    <input
                      id="password"
                      type="password"
                      className="input"
                      autoComplete="current-password"
                      value={password}
                      onChange={(e) => setPassword(e.target.value)}
                      required
                    />
                  </div>
                  <button
                    type="submit"
                    className="btn primary"
                    disabled={busy || name.trim() === '' || password === ''}
                  >
                    Sign in
                  </button>
                </form>
                <div className="signin-or">
                  <span>or without a password</span>
                </div>
                <form onSubmit={withLink} className="stack" aria-label="One-time link">
                  <div className="field">
                    <label className="label" htmlFor="token">
                      One-time sign-in link
                    </label>
                    <input
                      id="token"
                      className="input mono"
                      autoComplete="off"
                      spellCheck={false}
                      value={token}
                      onChange={(e) => setToken(e.target.value)}
                      placeholder="http://127.0.0.1:8080/signin?token=…"
                      required
                    />
                    <span className="help">
                      <code>loadstone serve</code> prints a link when it starts; <code>loadstone signin</code> prints a
                      new one. In a container, read its log. Each link works once. API tokens do not sign you in here.
                    </span>
                  </div>
                  <button type="submit" className="btn" disabled={busy || token.trim() === ''}>
                    Sign in with the link
                  </button>
                </form>
              </>
            )}
          </>
        )}
      </div>
    </main>
  );
}
