import * as Menu from '@radix-ui/react-dropdown-menu';
import { type Action, menuButton } from './Controls';
import { Icon } from './icons';

/** ActionsMenu is the loaded menu of design/Controls.tsx. */
export default function ActionsMenu(props: {
  label: string;
  actions: (Action | null)[];
  small: boolean;
  /** Opens at once. */
  open: boolean;
}) {
  const { label, small, actions } = props;
  return (
    <Menu.Root modal={false} defaultOpen={props.open}>
      <Menu.Trigger asChild>
        <button {...menuButton(label, small)} onClick={(e) => e.stopPropagation()}>
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
