import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useMe, useSessions } from '../api/queries';
import { Dialog } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Load, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { NewPassword } from './NewPassword';
import { SecondFactor } from './SecondFactor';
import { problemText } from '../design/sentences';

const scopeText = {
  admin: 'Admin: full access, including users, nodes and plugins.',
  operator: 'Operator: creates templates, connections and tables, and starts runs.',
  viewer: 'Viewer: reads everything; changes only the own password and tokens.',
};

/** Account shows the user, the sessions and the password. */
export function Account() {
  const me = useMe();
  const sessions = useSessions();
  const qc = useQueryClient();
  const toast = useToast();
  const [changing, setChanging] = useState(false);
  const here = useQuery({
    queryKey: ['me', 'token'],
    queryFn: ({ signal }) => api.get('/api/auth/me', { signal }).then((r) => r.token.token_id),
  });
  const end = async (id: string) => {
    try {
      await api.remove('/api/auth/tokens/{id}', { path: { id } });
      toast('Session ended.', 'ok');
    } catch (err) {
      const p = asProblem(err);
      toast(problemText(p), 'bad');
    }
    await qc.invalidateQueries({ queryKey: ['sessions'] });
  };
  return (
    <section className="panel" aria-label="Your account">
      <header>
        <h2>Your account</h2>
        <div className="end">
          <button type="button" className="btn small" onClick={() => setChanging(true)}>
            {me.data?.has_password ? 'Change password' : 'Set a password'}
          </button>
        </div>
      </header>
      <div className="body">
        {me.data && (
          <p>
            <strong className="wrap-anywhere">{me.data.name}</strong>{' '}
            <span className="muted">{scopeText[me.data.role]}</span>
          </p>
        )}
        <SecondFactor />
        <Load from={sessions} what="Your sessions could not be read." skeleton={<SkeletonRows rows={2} />}>
          {(list) => (
            <ul className="plain sessions">
              {list.map((s) => (
                <li key={s.token_id} className="row">
                  <span className="grow">
                    <span title={dateTime(s.created_at)}>Signed in {ago(s.created_at)}</span>{' '}
                    <span className="muted" title={dateTime(s.last_used_at)}>
                      · last seen {ago(s.last_used_at)}
                    </span>
                  </span>
                  {s.token_id === here.data ? (
                    <span className="muted">this session</span>
                  ) : (
                    <button
                      type="button"
                      className="btn small"
                      onClick={() => void end(s.token_id)}
                      aria-label={`End the session of ${dateTime(s.created_at)}`}
                    >
                      End
                    </button>
                  )}
                </li>
              ))}
            </ul>
          )}
        </Load>
      </div>
      {changing && <ChangePassword has={me.data?.has_password ?? true} onClose={() => setChanging(false)} />}
    </section>
  );
}

function ChangePassword({ has, onClose }: { has: boolean; onClose: () => void }) {
  const qc = useQueryClient();
  const toast = useToast();
  const [now, setNow] = useState('');
  const [next, setNext] = useState('');
  const change = useMutation({
    mutationFn: () => api.put('/api/auth/password', { body: { password: now || undefined, new_password: next } }),
    onSuccess: async () => {
      await Promise.all(['me', 'sessions'].map((k) => qc.invalidateQueries({ queryKey: [k] })));
      toast('Password changed. Your other sessions were signed out.', 'ok');
      onClose();
    },
  });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    change.mutate();
  };
  return (
    <Dialog title={has ? 'Change password' : 'Set a password'} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {change.error && <ProblemNotice error={change.error} />}
        {has && (
          <div className="field">
            <label className="label" htmlFor="password-now">
              Present password
            </label>
            <input
              id="password-now"
              type="password"
              className="input"
              autoComplete="current-password"
              value={now}
              onChange={(e) => setNow(e.target.value)}
              required
            />
          </div>
        )}
        <NewPassword value={next} onChange={setNext} />
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            className="btn primary"
            disabled={change.isPending || next === '' || (has && now === '')}
          >
            Set password
          </button>
        </div>
      </form>
    </Dialog>
  );
}
