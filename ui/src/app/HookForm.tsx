import { type FormEvent, type ReactNode, useId, useState } from 'react';
import { api, asProblem } from '../api/client';
import type { Notifications, Template } from '../api/types';
import { Dialog } from '../design/Dialog';
import { ProblemNotice } from '../design/States';
import { applyDraft, events, type HookDraft, hookErrors, kinds } from './hooks';

/** HookForm edits one hook. A save that conflicts with another is shown, and can be repeated over it. */
export function HookForm(props: {
  first: HookDraft;
  saved: Notifications;
  templates: Template[];
  onClose: () => void;
  onSaved: (name: string) => void;
  onStale: () => unknown;
}) {
  const { first, saved } = props;
  const id = useId();
  const [draft, setDraft] = useState(first);
  const [version, setVersion] = useState(saved.version);
  const [error, setError] = useState<unknown>(null);
  const [fieldErrors, setFieldErrors] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState(false);
  const before = saved.hooks.find((h) => h.id === first.id);
  const mail = draft.kind === 'email';
  const sameWay = before !== undefined && (before.kind === 'email') === mail;
  const set = (to: Partial<HookDraft>) => setDraft((d) => ({ ...d, ...to }));
  const submit = async (e: FormEvent) => {
    e.preventDefault();
    setError(null);
    setFieldErrors({});
    const list = applyDraft(saved.hooks, draft);
    if (typeof list === 'string') return setFieldErrors({ tags: list });
    setBusy(true);
    try {
      await api.put('/api/v1/notifications', { body: { version, hooks: list.hooks } });
      props.onSaved(draft.name.trim());
    } catch (err) {
      const p = asProblem(err);
      const own = hookErrors(p.fields, list.at);
      setFieldErrors(own);
      if (Object.keys(own).length === 0) setError(err);
      if (p.status === 409) {
        const now = await api.get('/api/v1/notifications').catch(() => null);
        if (now) setVersion(now.version);
        await props.onStale();
      }
    }
    setBusy(false);
  };
  const field = (name: string, label: string, input: (id: string) => ReactNode, help?: ReactNode) => (
    <div className="field">
      <label className="label" htmlFor={`${id}${name}`}>
        {label}
      </label>
      {input(`${id}${name}`)}
      {fieldErrors[name] && (
        <span className="problem" role="alert">
          {fieldErrors[name]}
        </span>
      )}
      {help && <span className="help">{help}</span>}
    </div>
  );
  return (
    <Dialog title={before ? `Change notification “${before.name}”` : 'New notification'} onClose={props.onClose}>
      <form className="stack" onSubmit={(e) => void submit(e)}>
        {error !== null && <ProblemNotice error={error} />}
        {field('name', 'Name', (n) => (
          <input
            id={n}
            className="input"
            value={draft.name}
            onChange={(e) => set({ name: e.target.value })}
            placeholder="nightly runs"
            autoComplete="off"
            required
            maxLength={100}
          />
        ))}
        <fieldset className="field choices">
          <legend className="label">Kind</legend>
          {kinds.map((k) => (
            <label key={k.value} className="choice">
              <input
                type="radio"
                name={`${id}kind`}
                checked={draft.kind === k.value}
                onChange={() => set({ kind: k.value })}
              />
              <span>
                <strong>{k.label}</strong> <span className="muted">{k.what}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {field(
          'url',
          mail ? 'Mail server' : 'Address',
          (n) => (
            <input
              id={n}
              className="input mono"
              value={draft.url}
              onChange={(e) => set({ url: e.target.value })}
              placeholder={
                before && sameWay
                  ? `${before.address}${mail ? '' : '/…'} (saved)`
                  : mail
                    ? 'smtp://mail.example.com:587'
                    : 'https://hooks.example.com/…'
              }
              autoComplete="off"
              spellCheck={false}
              required={!before || !sameWay}
              maxLength={2000}
            />
          ),
          before && sameWay
            ? 'Leave empty to keep the saved address.'
            : mail
              ? 'smtp:// uses STARTTLS, smtps:// TLS; smtp+plaintext:// neither TLS nor a password.'
              : 'The address is stored encrypted. Its path is not shown again.',
        )}
        {mail && (
          <>
            {field('from', 'From', (n) => (
              <input
                id={n}
                className="input"
                value={draft.from}
                onChange={(e) => set({ from: e.target.value })}
                placeholder="loadstone@example.com"
                autoComplete="off"
                required
                maxLength={300}
              />
            ))}
            {field(
              'to',
              'To',
              (n) => (
                <input
                  id={n}
                  className="input"
                  value={draft.to}
                  onChange={(e) => set({ to: e.target.value })}
                  placeholder="ada@example.com, bob@example.com"
                  autoComplete="off"
                  required
                />
              ),
              'Up to 50 addresses with commas between them.',
            )}
            {field('user', 'User of the mail server', (n) => (
              <input
                id={n}
                className="input"
                value={draft.user}
                onChange={(e) => set({ user: e.target.value })}
                placeholder="none"
                autoComplete="off"
                maxLength={300}
              />
            ))}
            {draft.user.trim() !== '' &&
              field('secret', 'Password', (n) => (
                <input
                  id={n}
                  className="input mono"
                  type="password"
                  value={draft.secret}
                  onChange={(e) => set({ secret: e.target.value })}
                  placeholder={before?.signed && sameWay ? 'saved' : ''}
                  autoComplete="new-password"
                  maxLength={500}
                />
              ))}
          </>
        )}
        {draft.kind === 'webhook' &&
          field(
            'secret',
            'Secret',
            (n) => (
              <input
                id={n}
                className="input mono"
                type="password"
                value={draft.secret}
                disabled={draft.unsign}
                onChange={(e) => set({ secret: e.target.value })}
                placeholder={before?.signed ? 'saved' : 'none'}
                autoComplete="new-password"
                maxLength={500}
              />
            ),
            before?.signed ? (
              <label className="row">
                <input type="checkbox" checked={draft.unsign} onChange={(e) => set({ unsign: e.target.checked })} />
                Stop signing
              </label>
            ) : (
              'Loadstone signs each request with this secret, so that the receiver can verify the sender.'
            ),
          )}
        <fieldset className="field choices">
          <legend className="label">Send when a run</legend>
          {events.map((v) => (
            <label key={v.value} className="choice">
              <input
                type="checkbox"
                checked={draft.events.includes(v.value)}
                onChange={(e) =>
                  set({
                    events: e.target.checked ? [...draft.events, v.value] : draft.events.filter((x) => x !== v.value),
                  })
                }
              />
              <span>
                <strong>{v.label}</strong> <span className="muted">{v.what}</span>
              </span>
            </label>
          ))}
          {fieldErrors.events && (
            <span className="problem" role="alert">
              {fieldErrors.events}
            </span>
          )}
        </fieldset>
        {field('template_id', 'Runs of', (n) => (
          <select id={n} className="input" value={draft.template} onChange={(e) => set({ template: e.target.value })}>
            <option value="">all templates</option>
            {props.templates.map((t) => (
              <option key={t.template_id} value={t.template_id}>
                {t.name}
              </option>
            ))}
            {draft.template && !props.templates.some((t) => t.template_id === draft.template) && (
              <option value={draft.template}>a deleted template</option>
            )}
          </select>
        ))}
        {field(
          'tags',
          'With tags',
          (n) => (
            <textarea
              id={n}
              className="input mono"
              rows={2}
              value={draft.tags}
              onChange={(e) => set({ tags: e.target.value })}
              placeholder="team:search"
              spellCheck={false}
            />
          ),
          'One name:value per line. A run must have all of these tags. Leave empty for all runs.',
        )}
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={busy}>
            {busy ? 'Saving…' : 'Save notification'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
