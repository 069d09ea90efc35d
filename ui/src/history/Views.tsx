import { useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { harmless } from '../api/harmless';
import { useMe } from '../api/queries';
import { Menu } from '../design/Controls';
import { Dialog } from '../design/Dialog';
import { Icon } from '../design/icons';
import { Notice } from '../design/States';
import { useToast } from '../design/Toast';
import { type Column, columns, standard } from './columns';
import { longestName, saveViews, savedViews, viewOf, type View, withView, wrongName } from './saved';

/** Chooses the columns of the list. */
export function ColumnsMenu(props: { shown: Column['name'][]; onChange: (list: Column['name'][]) => void }) {
  const { shown } = props;
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
              checked={shown.includes(c.name)}
              // The last one stays: a list of names alone says nothing.
              disabled={shown.length === 1 && shown[0] === c.name}
              onSelect={(e) => e.preventDefault()}
              onCheckedChange={(on) =>
                props.onChange(
                  columns.map((x) => x.name).filter((n) => (n === c.name ? on === true : shown.includes(n))),
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
            <span className="grow">The usual columns</span>
          </Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

/** The lists that the user has given a name, and what is done with the one on the page. */
export function ViewsMenu({ shown }: { shown: Column['name'][] }) {
  const user = useMe().data?.user_id ?? '';
  const [, navigate] = useLocation();
  const search = useSearch();
  const toast = useToast();
  const [list, setList] = useState<View[]>([]);
  const [dialog, setDialog] = useState<'save' | 'delete' | null>(null);
  const now = viewOf(search, shown.join(','));
  const keep = (views: View[], done: string) => {
    if (!saveViews(user, views)) toast('This browser keeps nothing. Copy the link to the view instead.', 'warn');
    else toast(done, 'ok');
    setList(views);
    setDialog(null);
  };
  const copy = async () => {
    const link = `${location.origin}/history?${now}`;
    try {
      await navigator.clipboard.writeText(link);
      toast('The link was copied. It shows these filters, this order and these columns.', 'ok');
    } catch {
      toast('The browser did not allow copying. The address of the page is the link too.', 'warn');
    }
  };
  return (
    <>
      <Menu.Root modal={false} onOpenChange={(open) => open && setList(savedViews(user))}>
        <Menu.Trigger asChild>
          <button type="button" className="btn">
            <Icon name="file" /> Views
          </button>
        </Menu.Trigger>
        <Menu.Portal container={document.getElementById('main')}>
          <Menu.Content className="menu views" align="end" sideOffset={4} collisionPadding={8} aria-label="Views">
            {list.map((v) => (
              <Menu.CheckboxItem
                key={v.name}
                checked={v.search === now}
                onSelect={() => navigate(`/history?${v.search}`)}
              >
                <bdi className="grow clip">{v.name}</bdi>
                <Menu.ItemIndicator>
                  <Icon name="check" />
                </Menu.ItemIndicator>
              </Menu.CheckboxItem>
            ))}
            {list.length > 0 && <hr />}
            <Menu.Item onSelect={() => setDialog('save')}>
              <Icon name="plus" />
              <span className="grow">Save this view</span>
            </Menu.Item>
            <Menu.Item onSelect={() => void copy()}>
              <Icon name="link" />
              <span className="grow">Copy a link to it</span>
            </Menu.Item>
            {list.length > 0 && (
              <Menu.Item onSelect={() => setDialog('delete')}>
                <Icon name="trash" />
                <span className="grow">Delete a view</span>
              </Menu.Item>
            )}
          </Menu.Content>
        </Menu.Portal>
      </Menu.Root>
      {dialog === 'save' && (
        <SaveDialog
          list={list}
          onClose={() => setDialog(null)}
          onSave={(name) => keep(withView(list, { name, search: now }), `The view “${name}” was saved.`)}
        />
      )}
      {dialog === 'delete' && (
        <Dialog title="Delete a view" onClose={() => setDialog(null)}>
          <p>The runs stay. A link to the view goes on to work.</p>
          <ul className="view-list">
            {list.map((v) => (
              <li key={v.name} className="row">
                <bdi className="grow clip">{v.name}</bdi>
                <button
                  type="button"
                  className="btn small danger"
                  aria-label={`Delete the view ${v.name}`}
                  onClick={() => {
                    keep(
                      list.filter((x) => x.name !== v.name),
                      `The view “${v.name}” was deleted.`,
                    );
                  }}
                >
                  Delete
                </button>
              </li>
            ))}
          </ul>
          <div className="actions">
            <button type="button" className="btn" onClick={() => setDialog(null)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function SaveDialog(props: { list: View[]; onClose: () => void; onSave: (name: string) => void }) {
  const [name, setName] = useState('');
  const wrong = wrongName(name, props.list);
  const there = props.list.some((v) => v.name === name.trim());
  return (
    <Dialog title="Save this view" onClose={props.onClose}>
      <form
        className="stack"
        onSubmit={(e) => {
          e.preventDefault();
          if (name.trim() && !wrong) props.onSave(harmless(name.trim()));
        }}
      >
        <p>Filters, order, columns and trend, under a name, in this browser. A link to it is for others.</p>
        <input
          className="input"
          aria-label="Name of the view"
          placeholder="Checkout, slowest first"
          maxLength={longestName}
          autoFocus
          value={name}
          onChange={(e) => setName(e.target.value)}
        />
        {wrong && <Notice tone="warn">{wrong}</Notice>}
        {there && !wrong && <Notice>There is a view of this name; it is replaced.</Notice>}
        <div className="actions">
          <button type="button" className="btn" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={!name.trim() || wrong !== ''}>
            Save view
          </button>
        </div>
      </form>
    </Dialog>
  );
}
