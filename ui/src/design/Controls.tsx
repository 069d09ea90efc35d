import * as Menu from '@radix-ui/react-dropdown-menu';
import * as Tip from '@radix-ui/react-tooltip';
import { type ReactNode, useState } from 'react';
import { useHasRole } from '../api/queries';
import { Icon } from './icons';
import { useToast } from './Toast';

export { Menu };

/** Term explains a technical term on hover, focus and touch. */
export function Term({ tip, children }: { tip: string; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <Tip.Root open={open} onOpenChange={setOpen} delayDuration={250}>
      <Tip.Trigger asChild>
        <button
          type="button"
          className="term"
          // Not a tab stop: screen readers read it as the description.
          tabIndex={-1}
          aria-description={tip}
          onClick={(e) => {
            e.preventDefault();
            setOpen(true);
          }}
        >
          {children}
        </button>
      </Tip.Trigger>
      <Tip.Portal>
        <Tip.Content className="tip" sideOffset={6} collisionPadding={8}>
          {tip}
        </Tip.Content>
      </Tip.Portal>
    </Tip.Root>
  );
}

export const Tips = Tip.Provider;

export interface Action {
  label: string;
  icon?: string;
  danger?: boolean;
  disabled?: boolean;
  checked?: boolean;
  /** The minimum role; the action is hidden from others. */
  needs?: 'operator' | 'admin';
  act: () => void;
}

/** ActionsMenu is a button with a menu of actions. */
export function ActionsMenu(props: { label: string; actions: (Action | null)[]; small?: boolean }) {
  const { label, small } = props;
  const may = { operator: useHasRole('operator'), admin: useHasRole('admin') };
  const allowed = props.actions.filter((a) => !a?.needs || may[a.needs]);
  // null is a separator.
  const actions = allowed.filter((a, i) => a !== null || (allowed[i - 1] != null && allowed[i + 1] != null));
  if (actions.length === 0) return null;
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <button
          type="button"
          className={`btn quiet icon${small ? ' small' : ''}`}
          aria-label={label}
          title={label}
          onClick={(e) => e.stopPropagation()}
        >
          <Icon name="more" />
        </button>
      </Menu.Trigger>
      {/* Within the content: part of it to screen readers, and there when it fills the screen. */}
      <Menu.Portal container={document.getElementById('main')}>
        <Menu.Content
          className="menu"
          align="end"
          sideOffset={4}
          collisionPadding={8}
          onClick={(e) => e.stopPropagation()}
        >
          {actions.map((a, i) =>
            a ? (
              <Menu.Item key={a.label} className={a.danger ? 'danger' : ''} disabled={a.disabled} onSelect={a.act}>
                {a.icon && <Icon name={a.icon} />}
                <span className="grow">{a.label}</span>
                {a.checked && <Icon name="check" />}
              </Menu.Item>
            ) : (
              <hr key={i} />
            ),
          )}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}

/** Segments is a choice of a few options on one line. */
export function Segments<T extends string>(props: {
  label: string;
  value: T;
  options: readonly { value: T; label: string; icon?: string }[];
  onChange: (v: T) => void;
}) {
  return (
    <div className="segments" role="group" aria-label={props.label}>
      {props.options.map((o) => (
        <button
          key={o.value}
          type="button"
          aria-pressed={o.value === props.value}
          onClick={() => props.onChange(o.value)}
        >
          {o.label}
        </button>
      ))}
    </div>
  );
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const toast = useToast();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast('Copied.', 'ok');
    } catch {
      toast('The browser did not allow copying. Select the text instead.', 'warn');
    }
  };
  return (
    <button type="button" className="btn quiet small icon" aria-label={label} title={label} onClick={() => void copy()}>
      <Icon name="copy" size={14} />
    </button>
  );
}

export function SearchBox(props: { value: string; placeholder: string; onChange: (v: string) => void }) {
  return (
    <div className="search">
      <Icon name="search" />
      <input
        className="input"
        type="search"
        data-search
        aria-label={props.placeholder}
        placeholder={props.placeholder}
        value={props.value}
        onChange={(e) => props.onChange(e.target.value)}
      />
      {!props.value && <kbd className="hide-phone">/</kbd>}
    </div>
  );
}
