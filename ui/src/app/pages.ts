import { type ComponentType, createElement, lazy } from 'react';
import { Unloaded } from './Unloaded';

const RELOADED = 'loadstone-reloaded';

/** Whether the server answers: a page that is loaded again while it is away is lost with all that it shows. */
async function answers(): Promise<boolean> {
  try {
    return (await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(5_000) })).ok;
  } catch {
    return false;
  }
}

/**
 * A page in a file of its own, loaded when it is first opened. A server that was upgraded meanwhile has files of other
 * names: the whole is loaded again then, once. One that is away is tried again by the user.
 */
export function page<P extends object>(load: () => Promise<ComponentType<P>>) {
  const once = async () => {
    try {
      const component = await load();
      sessionStorage.removeItem(RELOADED);
      return { default: component };
    } catch (e) {
      if (!(await answers())) throw new Unloaded(() => (Lazy = lazy(once)), e);
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

export const AuditPage = page(() => import('../audit/AuditPage').then((m) => m.AuditPage));
export const ComparePage = page(() => import('../compare/ComparePage').then((m) => m.ComparePage));
export const ConnectionsPage = page(() => import('../connections/ConnectionsPage').then((m) => m.ConnectionsPage));
export const ConsolePage = page(() => import('../tables/ConsolePage').then((m) => m.ConsolePage));
export const ExplorePage = page(() => import('../explore/ExplorePage').then((m) => m.ExplorePage));
export const FirstSteps = page(() => import('../start/FirstSteps').then((m) => m.FirstSteps));
export const GalleryPage = page(() => import('../start/GalleryPage').then((m) => m.GalleryPage));
export const HistoryPage = page(() => import('../history/HistoryPage').then((m) => m.HistoryPage));
export const MatrixPage = page(() => import('../matrix/MatrixPage').then((m) => m.MatrixPage));
export const NodesPage = page(() => import('../nodes/NodesPage').then((m) => m.NodesPage));
export const PluginsPage = page(() => import('../plugins/PluginsPage').then((m) => m.PluginsPage));
export const RunPage = page(() => import('../runs/RunPage').then((m) => m.RunPage));
export const Settings = page(() => import('./Settings').then((m) => m.Settings));
export const StreamsPage = page(() => import('../streams/StreamsPage').then((m) => m.StreamsPage));
export const TableEditor = page(() => import('../tables/TableEditor').then((m) => m.TableEditor));
export const TablePage = page(() => import('../tables/TablePage').then((m) => m.TablePage));
export const TablesPage = page(() => import('../tables/TablesPage').then((m) => m.TablesPage));
export const TemplateEditor = page(() => import('../templates/TemplateEditor').then((m) => m.default));
export const TemplatesPage = page(() => import('../templates/TemplatesPage').then((m) => m.TemplatesPage));

/** The pages whose files are large, by the path that leads to them. */
const large: [path: RegExp, page: { ahead: () => void }][] = [
  [/^\/runs\/[^/]+/, RunPage],
  [/^\/runs\/?$/, HistoryPage],
  [/^\/templates\/?$/, TemplatesPage],
  [/^\/templates\/./, TemplateEditor],
  [/^\/explore/, ExplorePage],
];

/**
 * Loads the page behind a link as soon as the link is pointed at or has the focus: it is there when it is pressed, and
 * who only opens Home loads nothing more.
 */
export function loadAhead(): () => void {
  const ahead = (e: Event) => {
    const link = e.target instanceof Element ? e.target.closest('a[href]') : null;
    const path = link?.getAttribute('href')?.replace(/[?#].*/s, '') ?? '';
    large.find(([leads]) => leads.test(path))?.[1].ahead();
  };
  const events = ['pointerover', 'focusin'] as const;
  for (const name of events) document.addEventListener(name, ahead, { passive: true });
  return () => events.forEach((name) => document.removeEventListener(name, ahead));
}
