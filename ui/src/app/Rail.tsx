import { lazy, Suspense } from 'react';
import { Link, useLocation } from 'wouter';
import { useLiveRuns } from '../api/queries';
import type { User } from '../api/types';
import { Icon } from '../design/icons';
import { useToast } from '../design/Toast';
import { signOut, signOutError } from './signOut';
import { StopAll } from './StopAll';
import { nextTheme, themeIcon, useTheme } from './theme';

const navItems = [
  { href: '/', icon: 'home', label: 'Home', on: (p: string) => p === '/' },
  { href: '/templates', icon: 'templates', label: 'Templates', on: (p: string) => p.startsWith('/templates') },
  {
    href: '/history',
    icon: 'history',
    label: 'Runs',
    on: (p: string) =>
      p.startsWith('/history') || p.startsWith('/runs') || p.startsWith('/compare') || p.startsWith('/matrix'),
  },
  { href: '/schedules', icon: 'clock', label: 'Schedules', on: (p: string) => p.startsWith('/schedules'), wide: true },
  {
    href: '/tables',
    icon: 'table',
    label: 'Tables',
    on: (p: string) => p.startsWith('/table') || p.startsWith('/query'),
    wide: true,
  },
  { href: '/explore', icon: 'explore', label: 'Explore', on: (p: string) => p.startsWith('/explore'), wide: true },
  { href: '/streams', icon: 'streams', label: 'Streams', on: (p: string) => p.startsWith('/streams'), wide: true },
  { href: '/connections', icon: 'connections', label: 'Connections', on: (p: string) => p.startsWith('/connections') },
  { href: '/nodes', icon: 'nodes', label: 'Nodes', on: (p: string) => p.startsWith('/nodes'), wide: true },
  { href: '/plugins', icon: 'plugins', label: 'Plugins', on: (p: string) => p.startsWith('/plugins'), wide: true },
];

/** The phone's menu of further pages: its code is loaded after the first page. */
const MoreMenu = lazy(() => import('./MoreMenu'));

export function Rail({ user }: { user: User }) {
  const [path] = useLocation();
  const live = useLiveRuns();
  const [theme, setTheme] = useTheme();
  const toast = useToast();
  const running = live.data?.runs?.length ?? 0;
  const handleSignOut = () => void signOut().catch((err: unknown) => toast(signOutError(err), 'bad'));
  return (
    <nav className="rail" aria-label="Main">
      <Link href="/" className="brand" title="Loadstone">
        <Logo />
        <span>Loadstone</span>
      </Link>
      {navItems.map((p) => (
        <Link
          key={p.href}
          href={p.href}
          className={`rail-link${p.on(path) ? ' on' : ''}${p.wide ? ' wide-only' : ''}`}
          aria-current={p.on(path) ? 'page' : undefined}
          title={p.label}
        >
          <Icon name={p.icon} size={18} />
          <span>{p.label}</span>
          {p.href === '/history' && running > 0 && (
            <span
              className="rail-live"
              role="img"
              title={`${running} running now`}
              aria-label={`${running} running now`}
            >
              {running}
            </span>
          )}
        </Link>
      ))}
      {user.role === 'admin' && (
        <Link
          href="/audit"
          className={`rail-link wide-only${path.startsWith('/audit') ? ' on' : ''}`}
          aria-current={path.startsWith('/audit') ? 'page' : undefined}
          title="Audit"
        >
          <Icon name="file" size={18} />
          <span>Audit</span>
        </Link>
      )}
      <div className="rail-foot">
        <button
          type="button"
          className="rail-link"
          onClick={() => dispatchEvent(new Event('loadstone:palette'))}
          title="Find runs, templates, connections, pages and actions (Ctrl+K)"
        >
          <Icon name="search" size={18} />
          <span>Find</span>
          <kbd className="wide-only">Ctrl K</kbd>
        </button>
        <StopAll className="rail-link wide-only stop-all" />
        <button
          type="button"
          className="rail-link wide-only"
          onClick={() => setTheme(nextTheme[theme])}
          title={`Theme: ${theme}. Click for ${nextTheme[theme]}.`}
        >
          <Icon name={themeIcon[theme]} size={18} />
          <span>Theme: {theme}</span>
        </button>
        <button
          type="button"
          className="rail-link wide-only"
          onClick={() => dispatchEvent(new Event('loadstone:shortcuts'))}
          title="Keyboard shortcuts"
        >
          <Icon name="keyboard" size={18} />
          <span>Shortcuts</span>
        </button>
        <Link
          href="/settings"
          className={`rail-link wide-only${path.startsWith('/settings') ? ' on' : ''}`}
          aria-current={path.startsWith('/settings') ? 'page' : undefined}
          title="Settings"
        >
          <Icon name="settings" size={18} />
          <span>Settings</span>
        </Link>
        <span className="rail-user wide-only" title={`${user.name}, ${user.role}`}>
          {user.name} <span>{user.role === user.name ? '' : user.role}</span>
        </span>
        <button type="button" className="rail-link wide-only" title={`Sign out ${user.name}`} onClick={handleSignOut}>
          <Icon name="signout" size={18} />
          <span>Sign out</span>
        </button>
        <Suspense fallback={null}>
          <MoreMenu user={user} theme={theme} onTheme={setTheme} onSignOut={handleSignOut} />
        </Suspense>
      </div>
    </nav>
  );
}

/** Logo is inline, so it needs no request. */
const Logo = () => (
  <svg className="logo" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="7" />
    <path d="M9 7v9a7 7 0 0 0 14 0V7" />
    <path className="tips" d="M9 7v4M23 7v4" />
  </svg>
);
