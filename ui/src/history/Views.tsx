import { useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { api, asProblem } from '../api/client';
import { safeText } from '../api/safeText';
import { useHasRole } from '../api/queries';
import type { RunView } from '../api/types';
import * as Menu from '@radix-ui/react-dropdown-menu';
import { Dialog } from '../design/Dialog';
import { Icon } from '../design/icons';
import { Notice } from '../design/States';
import { useToast } from '../design/Toast';
import { type Column, columns, standard } from './columns';
import { maxNameLength, nameProblem, normalizeQuery, viewQuery } from './localViews';
import { useInvalidateViews, useMigratedViews, useRunViews, type Views } from './views';
import { problemText } from '../design/sentences';

/** ColumnsMenu chooses the list's columns. */
export function ColumnsMenu(props: { shownColumns: Column['name'][]; onChange: (list: Column['name'][]) => void }) {
  const { shownColumns } = props;
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <button type="button" className="btn">
          <Icon name="table" /> Columns
        </button>
      </Menu.Trigger>
      <Menu.Portal container={document.getElementById('main')}>
        <Menu.Content className="menu" align="end" sideOffset={4} collisionPadding={8} aria-label="Columns">
          {columns.map((c) => (
            <Menu.CheckboxItem
              key={c.name}
              checked={shownColumns.includes(c.name)}
              // The last column cannot be removed.
              disabled={shownColumns.length === 1 && shownColumns[0] === c.name}
              onSelect={(e) => e.preventDefault()}
              onCheckedChange={(on) =>
                props.onChange(
                  columns.map((x) => x.name).filter((n) => (n === c.name ? on === true : shownColumns.includes(n))),
                )
              }
            >
              <span className="grow">{c.title}</span>
              <Menu.ItemIndicator>
                <Icon name="check" />
              </Menu.ItemIndicator>
            </Menu.CheckboxItem>
          ))}
          <hr />
          <Menu.Item onSelect={() => props.onChange(standard)}>
            <Icon name="refresh" />
            <span className="grow">Default columns</span>
          </Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

/** ViewsMenu lists the user's and shared views, with actions for the current one. */
export function ViewsMenu({ shownColumns }: { shownColumns: Column['name'][] }) {
  const { views, failed } = useRunViews();
  const changed = useInvalidateViews();
  useMigratedViews();
  const [, navigate] = useLocation();
  const search = useSearch();
  const toast = useToast();
  const [dialog, setDialog] = useState<'save' | 'manage' | null>(null);
  const now = viewQuery(search, shownColumns.join(','));
  const copy = async () => {
    const link = `${location.origin}/history?${now}`;
    try {
      await navigator.clipboard.writeText(link);
      toast('Link copied. It opens this list with its filters, order and columns.', 'ok');
    } catch {
      toast('The browser blocked copying. Copy the address of this page instead.', 'warn');
    }
  };
  const item = (v: RunView, owner?: string) => (
    <Menu.CheckboxItem
      key={v.view_id}
      checked={normalizeQuery(v.query) === now}
      onSelect={() => navigate(`/history?${normalizeQuery(v.query)}`)}
    >
      <bdi className="grow clip">{v.name}</bdi>
      {owner && <bdi className="muted note clip">{owner}</bdi>}
      {!owner && v.shared && <span className="muted note">shared</span>}
      <Menu.ItemIndicator>
        <Icon name="check" />
      </Menu.ItemIndicator>
    </Menu.CheckboxItem>
  );
  const any = views.own.length + views.shared.length > 0;
  return (
    <>
      <Menu.Root modal={false} onOpenChange={(open) => open && void changed()}>
        <Menu.Trigger asChild>
          <button type="button" className="btn">
            <Icon name="file" /> Views
          </button>
        </Menu.Trigger>
        <Menu.Portal container={document.getElementById('main')}>
          <Menu.Content className="menu views" align="end" sideOffset={4} collisionPadding={8} aria-label="Views">
            {failed && <p className="muted note">Saved views could not be loaded.</p>}
            {views.own.map((v) => item(v))}
            {views.shared.length > 0 && (
              <Menu.Group>
                <Menu.Label className="label muted note">Shared by others</Menu.Label>
                {views.shared.map((v) => item(v, v.owner))}
              </Menu.Group>
            )}
            {any && <hr />}
            <Menu.Item onSelect={() => setDialog('save')}>
              <Icon name="plus" />
              <span className="grow">Save this view</span>
            </Menu.Item>
            <Menu.Item onSelect={() => void copy()}>
              <Icon name="link" />
              <span className="grow">Copy link</span>
            </Menu.Item>
            {any && (
              <Menu.Item onSelect={() => setDialog('manage')}>
                <Icon name="settings" />
                <span className="grow">Share and delete views</span>
              </Menu.Item>
            )}
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      {dialog === 'save' && <SaveDialog views={views} search={now} onClose={() => setDialog(null)} />}
      {dialog === 'manage' && <ManageDialog views={views} onClose={() => setDialog(null)} />}
    </>
  );
}

/** ManageDialog shares and deletes views. */
function ManageDialog({ views, onClose }: { views: Views; onClose: () => void }) {
  const changed = useInvalidateViews();
  const toast = useToast();
  const mayShare = useHasRole('operator');
  const admin = useHasRole('admin');
  const [busy, setBusy] = useState('');
  const act = async (v: RunView, done: string, does: () => Promise<unknown>) => {
    setBusy(v.view_id);
    try {
      await does();
      toast(done, 'ok');
    } catch (err) {
      const p = asProblem(err);
      toast(problemText(p), 'bad');
    }
    await changed();
    setBusy('');
  };
  const share = (v: RunView) =>
    act(
      v,
      v.shared ? `The view “${v.name}” is private again.` : `All users of this server now see the view “${v.name}”.`,
      () =>
        api.put('/api/v1/run-views/{id}/shared', {
          path: { id: v.view_id },
          body: { shared: !v.shared, version: v.version },
        }),
    );
  const remove = (v: RunView) =>
    act(v, `The view “${v.name}” was deleted.`, () =>
      api.remove('/api/v1/run-views/{id}', { path: { id: v.view_id } }),
    );
  const row = (v: RunView, own: boolean) => (
    <li key={v.view_id} className="row">
      <bdi className="grow clip">{v.name}</bdi>
      {!own && <bdi className="muted note clip">{v.owner}</bdi>}
      {own && mayShare && (
        <button
          type="button"
          className="btn small"
          disabled={busy === v.view_id}
          aria-label={v.shared ? `Stop sharing the view ${v.name}` : `Share the view ${v.name}`}
          onClick={() => void share(v)}
        >
          {v.shared ? 'Stop sharing' : 'Share'}
        </button>
      )}
      {(own || admin) && (
        <button
          type="button"
          className="btn small danger"
          disabled={busy === v.view_id}
          aria-label={`Delete the view ${v.name}`}
          onClick={() => void remove(v)}
        >
          Delete
        </button>
      )}
    </li>
  );
  return (
    <Dialog title="Share and delete views" onClose={onClose}>
      <p>All users of this server see a shared view in their menu. Deleting a view deletes no runs.</p>
      {views.own.length + views.shared.length === 0 && <p className="muted">You have no views.</p>}
      <ul className="view-list">
        {views.own.map((v) => row(v, true))}
        {views.shared.map((v) => row(v, false))}
      </ul>
      <div className="actions">
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function SaveDialog({ views, search, onClose }: { views: Views; search: string; onClose: () => void }) {
  const changed = useInvalidateViews();
  const toast = useToast();
  const [name, setName] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const wrong = nameProblem(name, views.own, views.limit);
  const existing = views.own.find((v) => v.name === safeText(name.trim()));
  const save = async () => {
    const body = { name: safeText(name.trim()), query: search };
    setBusy(true);
    try {
      if (existing)
        await api.put('/api/v1/run-views/{id}', {
          path: { id: existing.view_id },
          body: { ...body, version: existing.version },
        });
      else await api.post('/api/v1/run-views', { body });
      toast(`The view “${body.name}” was saved.`, 'ok');
      await changed();
      onClose();
    } catch (err) {
      const p = asProblem(err);
      setProblem(problemText(p));
      await changed();
      setBusy(false);
    }
  };
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          if (name.trim() && !wrong && !busy) void save();
        }}
      >
        <p>A view saves the filters, order, columns and trend. It is available in every browser where you sign in.</p>
        <input
          className="input"
          aria-label="Name of the view"
          placeholder="Checkout, slowest first"
          maxLength={maxNameLength}
          autoFocus
          value={name}
          onChange={(e) => {
            setName(e.target.value);
            setProblem('');
          }}
        />
        {wrong && <Notice tone="warn">{wrong}</Notice>}
        {problem && <Notice tone="bad">{problem}</Notice>}
        {existing && !wrong && !problem && <Notice>There is a view of this name; it is replaced.</Notice>}
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={!name.trim() || wrong !== '' || busy}>
            Save view
          </button>
        </div>
      </form>
    </Dialog>
  );
}
