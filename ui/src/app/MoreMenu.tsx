import * as Menu from '@radix-ui/react-dropdown-menu';
import { useLocation } from 'wouter';
import type { User } from '../api/types';
import { Icon } from '../design/icons';
import { nextTheme, type ThemeChoice, themeIcon } from './theme';

/** overflowRoutes are the pages under More on a phone. */
const overflowRoutes = /^\/(schedules|tables?|query|explore|streams|nodes|plugins|audit|settings)/;

const pages = [
  ['/schedules', 'clock', 'Schedules'],
  ['/tables', 'table', 'Tables'],
  ['/explore', 'explore', 'Explore'],
  ['/streams', 'streams', 'Streams'],
  ['/nodes', 'nodes', 'Nodes'],
  ['/plugins', 'plugins', 'Plugins'],
  ['/audit', 'file', 'Audit'],
  ['/settings', 'settings', 'Settings'],
] as const;

/** MoreMenu lists the pages that the rail of a phone has no room for. */
export default function MoreMenu(props: {
  user: User;
  theme: ThemeChoice;
  onTheme: (t: ThemeChoice) => void;
  onSignOut: () => void;
}) {
  const { user, theme } = props;
  const [path, navigate] = useLocation();
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger asChild>
        <button
          type="button"
          className={`rail-link phone-only${overflowRoutes.test(path) ? ' on' : ''}`}
          aria-label="More pages"
        >
          <Icon name="more" size={18} />
          <span>More</span>
        </button>
      </Menu.Trigger>
      <Menu.Portal container={document.querySelector<HTMLElement>('nav.rail')}>
        <Menu.Content className="menu" side="top" align="end" sideOffset={8} collisionPadding={8}>
          {pages.map(
            ([href, icon, label]) =>
              (href !== '/audit' || user.role === 'admin') && (
                <Menu.Item key={href} onSelect={() => navigate(href)}>
                  <Icon name={icon} /> <span className="grow">{label}</span>
                </Menu.Item>
              ),
          )}
          <Menu.Item
            onSelect={(e) => {
              e.preventDefault();
              props.onTheme(nextTheme[theme]);
            }}
          >
            <Icon name={themeIcon[theme]} /> <span className="grow">Theme: {theme}</span>
          </Menu.Item>
          <hr />
          <Menu.Item onSelect={props.onSignOut}>
            <Icon name="signout" /> <span className="grow">Sign out</span>
          </Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
