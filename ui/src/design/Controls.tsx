import * as Tip from '@radix-ui/react-tooltip';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { useHasRole } from '../api/queries';
import { Icon } from './icons';
import { useToast } from './Toast';

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

/** The menu's code is loaded after the page: until then its button stands there. */
const LoadedMenu = lazy(() => import('./ActionsMenu'));

/** menuButton is the look of the button of an ActionsMenu. */
export const menuButton = (label: string, small: boolean) => ({
  type: 'button' as const,
  className: `btn quiet icon${small ? ' small' : ''}`,
  'aria-label': label,
  title: label,
});

/** ActionsMenu is a button with a menu of actions. */
export function ActionsMenu(props: { label: string; actions: (Action | null)[]; small?: boolean }) {
  const { label, small = false } = props;
  // A click before the menu is loaded opens it when it is.
  const [early, setEarly] = useState(false);
  const may = { operator: useHasRole('operator'), admin: useHasRole('admin') };
  const allowed = props.actions.filter((a) => !a?.needs || may[a.needs]);
  // null is a separator.
  const actions = allowed.filter((a, i) => a !== null || (allowed[i - 1] != null && allowed[i + 1] != null));
  if (actions.length === 0) return null;
  return (
    <Suspense
      fallback={
        <button
          {...menuButton(label, small)}
          aria-haspopup="menu"
          onClick={(e) => (e.stopPropagation(), setEarly(true))}
        >
          <Icon name="more" />
        </button>
      }
    >
      <LoadedMenu label={label} small={small} actions={actions} open={early} />
    </Suspense>
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
      toast('The browser blocked copying. Select the text and copy it.', 'warn');
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
