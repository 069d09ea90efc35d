import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, asProblem } from '../api/client';
import { useMe, useUsers } from '../api/queries';
import type { Invitation, User } from '../api/types';
import { CardTable } from '../design/CardTable';
import { Dialog, type Question } from '../design/Dialog';
import { ago, dateTime } from '../design/format';
import { Icon } from '../design/icons';
import { ShownOnce } from '../design/ShownOnce';
import { Load, ProblemNotice, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { problemText } from '../design/sentences';

type Role = User['role'];

/** roles are ordered from most to least privileged. */
const roles: { value: Role; label: string; may: string }[] = [
  { value: 'admin', label: 'Admin', may: 'full access, including users, nodes and plugins' },
  { value: 'operator', label: 'Operator', may: 'creates templates, connections and tables, and starts runs' },
  { value: 'viewer', label: 'Viewer', may: 'reads everything and changes nothing' },
];

/** signInMethods describes how a user signs in. */
export function signInMethods(u: User): string {
  if (u.disabled_at) return 'disabled';
  if (u.external) return 'signs in with the provider';
  if (u.has_password) return u.second_factor ? 'signs in with a password and a code' : 'signs in with a password';
  return u.last_seen_at ? 'signs in by link' : 'has not signed in yet';
}

/** Users lets admins manage users and roles. */
export function Users({ ask }: { ask: (q: Question) => void }) {
  const me = useMe();
  const admin = me.data?.role === 'admin';
  const users = useUsers(admin);
  const qc = useQueryClient();
  const toast = useToast();
  const [inviting, setInviting] = useState(false);
  const [link, setLink] = useState<Invitation | null>(null);
  if (!admin) return null;
  const changed = () => qc.invalidateQueries({ queryKey: ['users'] });
  const showError = (err: unknown) => {
    const p = asProblem(err);
    toast(problemText(p), 'bad');
  };
  const change = async (
    u: User,
    to: { role?: Role; was?: Role; disabled?: boolean; was_disabled?: boolean },
    message: string,
  ) => {
    try {
      await api.patch('/api/users/{id}', { path: { id: u.user_id }, body: to });
      toast(message, 'ok');
    } catch (err) {
      showError(err);
    }
    await changed();
    if (u.user_id === me.data?.user_id) await qc.invalidateQueries({ queryKey: ['me'] });
  };
  const invite = async (u: User) => {
    try {
      setLink(await api.post('/api/users/{id}/invitation', { path: { id: u.user_id } }));
    } catch (err) {
      showError(err);
    }
  };
  const remove = (u: User) =>
    ask({
      title: `Delete user “${u.name}”?`,
      body: 'This ends the sessions and tokens of this user. Its templates, runs and tables stay.',
      verb: 'Delete user',
      danger: true,
      act: async () => {
        await api.remove('/api/users/{id}', {
          path: { id: u.user_id },
          query: { was: u.role, was_disabled: u.disabled_at ? 'true' : 'false' },
        });
        await changed();
        toast(`User “${u.name}” was deleted.`, 'ok');
      },
    });
  const resetFactor = (u: User) =>
    ask({
      title: `Remove the second factor of “${u.name}”?`,
      body: 'Use this if the user lost the app and the recovery codes. The password alone then signs the user in.',
      verb: 'Remove second factor',
      danger: true,
      act: async () => {
        await api.remove('/api/users/{id}/totp', { path: { id: u.user_id } });
        await changed();
        toast(`${u.name} now signs in without a code.`, 'ok');
      },
    });
  return (
    <section className="panel" aria-label="Users">
      <header>
        <h2>Users</h2>
        <div className="end">
          <button type="button" className="btn small" onClick={() => setInviting(true)}>
            <Icon name="plus" size={14} /> Invite a user
          </button>
        </div>
      </header>
      <Load from={users} what="The users could not be read." skeleton={<SkeletonRows rows={3} />}>
        {(list) => (
          <CardTable
            label="Users"
            rows={list}
            id={(u) => u.user_id}
            columns={[
              {
                head: 'Name',
                cell: (u) => (
                  <>
                    <strong className="wrap-anywhere">{u.name}</strong>
                    {u.user_id === me.data?.user_id && <span className="muted"> (you)</span>}
                    <span className="second">{signInMethods(u)}</span>
                  </>
                ),
              },
              {
                head: 'Role',
                phone: 'alone',
                cell: (u) => (
                  <select
                    className="input role"
                    aria-label={`Role of ${u.name}`}
                    value={u.role}
                    onChange={(e) =>
                      void change(
                        u,
                        { role: e.target.value as Role, was: u.role },
                        `${u.name} has the role ${e.target.value} now.`,
                      )
                    }
                  >
                    {roles.map((r) => (
                      <option key={r.value} value={r.value}>
                        {r.label}
                      </option>
                    ))}
                  </select>
                ),
              },
              {
                head: 'Last seen',
                cell: (u) => (u.last_seen_at ? ago(u.last_seen_at) : 'never'),
                title: (u) => dateTime(u.last_seen_at),
                phone: 'out',
              },
            ]}
            acts={(u) => (
              <span className="row end-actions">
                {!u.disabled_at && !u.external && (
                  <button
                    type="button"
                    className="btn small"
                    onClick={() => void invite(u)}
                    aria-label={`Create a sign-in link for ${u.name}`}
                  >
                    Link
                  </button>
                )}
                <button
                  type="button"
                  className="btn small"
                  onClick={() =>
                    void change(
                      u,
                      { disabled: !u.disabled_at, was: u.role, was_disabled: !!u.disabled_at },
                      u.disabled_at ? `${u.name} was enabled.` : `${u.name} was disabled.`,
                    )
                  }
                  aria-label={`${u.disabled_at ? 'Enable' : 'Disable'} ${u.name}`}
                >
                  {u.disabled_at ? 'Enable' : 'Disable'}
                </button>
                {u.second_factor && (
                  <button
                    type="button"
                    className="btn small"
                    onClick={() => resetFactor(u)}
                    aria-label={`Remove the second factor of ${u.name}`}
                  >
                    Reset code
                  </button>
                )}
                <button
                  type="button"
                  className="btn danger small"
                  onClick={() => remove(u)}
                  aria-label={`Delete ${u.name}`}
                >
                  Delete
                </button>
              </span>
            )}
          />
        )}
      </Load>
      {inviting && (
        <Invite
          onClose={() => setInviting(false)}
          onMade={(made) => {
            setInviting(false);
            setLink(made);
            void changed();
          }}
        />
      )}
      {link && (
        <ShownOnce
          title={`Link for “${link.user.name}”`}
          text={link.url}
          copy="Copy the link"
          onClose={() => setLink(null)}
        >
          <p>
            Send it to {link.user.name}, who sets a password with it. The link works once, until{' '}
            {dateTime(link.expires_at)}. Anyone who has the link can sign in as this user.
          </p>
        </ShownOnce>
      )}
    </section>
  );
}

function Invite({ onClose, onMade }: { onClose: () => void; onMade: (made: Invitation) => void }) {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('operator');
  const create = useMutation({
    mutationFn: () => api.post('/api/users', { body: { name: name.trim(), role } }),
    onSuccess: onMade,
  });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    create.mutate();
  };
  return (
    <Dialog title="Invite a user" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        {create.error && <ProblemNotice error={create.error} />}
        <div className="field">
          <label className="label" htmlFor="user-name">
            Name
          </label>
          <input
            id="user-name"
            className="input"
            value={name}
            onChange={(e) => setName(e.target.value)}
            placeholder="ada@example.com"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            required
            maxLength={64}
          />
          <span className="help">The sign-in name: letters, digits and . _ @ + -</span>
        </div>
        <fieldset className="field choices">
          <legend className="label">Role</legend>
          {roles.map((r) => (
            <label key={r.value} className="choice">
              <input
                type="radio"
                name="role"
                value={r.value}
                checked={role === r.value}
                onChange={() => setRole(r.value)}
              />
              <span>
                <strong>{r.label}</strong> <span className="muted">{r.may}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={create.isPending || name.trim() === ''}>
            Invite
          </button>
        </div>
      </form>
    </Dialog>
  );
}
