import { type ComponentType, createElement, lazy } from 'react';
import { PageLoadError } from './PageLoadError';

const RELOADED = 'loadstone-reloaded';

/** isServerUp is checked before a reload: reloading while the server is down loses the page. */
async function isServerUp(): Promise<boolean> {
  try {
    return (await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(5_000) })).ok;
  } catch {
    return false;
  }
}

/**
 * lazyPage loads a page's chunk when it is first opened. After a server upgrade the chunk names differ, so the whole
 * page is reloaded once. When the server is down, the user retries.
 */
function lazyPage<P extends object>(load: () => Promise<ComponentType<P>>) {
  const once = async () => {
    try {
      const component = await load();
      sessionStorage.removeItem(RELOADED);
      return { default: component };
    } catch (e) {
      if (!(await isServerUp())) throw new PageLoadError(() => (Lazy = lazy(once)), e);
      if (sessionStorage.getItem(RELOADED) === location.href) throw e;
      sessionStorage.setItem(RELOADED, location.href);
      location.reload();
      return new Promise<never>(() => {});
    }
  };
  let Lazy = lazy(once);
  const Page = (props: P) => createElement(Lazy as ComponentType<P>, props);
  return Object.assign(Page, { ahead: () => void load().catch(() => {}) });
}

export const AuditPage = lazyPage(() => import('../audit/AuditPage').then((m) => m.AuditPage));
export const ComparePage = lazyPage(() => import('../compare/ComparePage').then((m) => m.ComparePage));
export const ConnectionsPage = lazyPage(() => import('../connections/ConnectionsPage').then((m) => m.ConnectionsPage));
export const ConsolePage = lazyPage(() => import('../tables/ConsolePage').then((m) => m.ConsolePage));
export const ExplorePage = lazyPage(() => import('../explore/ExplorePage').then((m) => m.ExplorePage));
export const FirstSteps = lazyPage(() => import('../start/FirstSteps').then((m) => m.FirstSteps));
export const GalleryPage = lazyPage(() => import('../start/GalleryPage').then((m) => m.GalleryPage));
export const HistoryPage = lazyPage(() => import('../history/HistoryPage').then((m) => m.HistoryPage));
export const MatrixPage = lazyPage(() => import('../matrix/MatrixPage').then((m) => m.MatrixPage));
export const NodesPage = lazyPage(() => import('../nodes/NodesPage').then((m) => m.NodesPage));
export const PluginsPage = lazyPage(() => import('../plugins/PluginsPage').then((m) => m.PluginsPage));
export const RunPage = lazyPage(() => import('../runs/RunPage').then((m) => m.RunPage));
export const SignIn = lazyPage(() => import('./SignIn').then((m) => m.SignIn));
export const Join = lazyPage(() => import('./Join').then((m) => m.Join));
export const SchedulesPage = lazyPage(() => import('../schedules/SchedulesPage').then((m) => m.SchedulesPage));
export const Settings = lazyPage(() => import('./Settings').then((m) => m.Settings));
export const StreamsPage = lazyPage(() => import('../streams/StreamsPage').then((m) => m.StreamsPage));
export const TableEditor = lazyPage(() => import('../tables/TableEditor').then((m) => m.TableEditor));
export const TablePage = lazyPage(() => import('../tables/TablePage').then((m) => m.TablePage));
export const TablesPage = lazyPage(() => import('../tables/TablesPage').then((m) => m.TablesPage));
export const TemplateEditor = lazyPage(() => import('../templates/TemplateEditor').then((m) => m.default));
export const TemplatesPage = lazyPage(() => import('../templates/TemplatesPage').then((m) => m.TemplatesPage));

/** largePages are pages with large chunks, by path. */
const largePages: [path: RegExp, page: { ahead: () => void }][] = [
  [/^\/runs\/[^/]+/, RunPage],
  [/^\/runs\/?$/, HistoryPage],
  [/^\/templates\/?$/, TemplatesPage],
  [/^\/templates\/./, TemplateEditor],
  [/^\/explore/, ExplorePage],
];

/** preloadPages fetches the chunk of a link on hover or focus, so that it is ready on click. */
export function preloadPages(): () => void {
  const ahead = (e: Event) => {
    const link = e.target instanceof Element ? e.target.closest('a[href]') : null;
    const path = link?.getAttribute('href')?.replace(/[?#].*/s, '') ?? '';
    largePages.find(([leads]) => leads.test(path))?.[1].ahead();
  };
  const events = ['pointerover', 'focusin'] as const;
  for (const name of events) document.addEventListener(name, ahead, { passive: true });
  return () => events.forEach((name) => document.removeEventListener(name, ahead));
}
