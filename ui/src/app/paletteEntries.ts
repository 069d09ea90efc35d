/** Entry is something that the palette finds. */
export interface Entry {
  kind: 'Page' | 'Action' | 'Run' | 'Template' | 'Connection';
  icon: string;
  text: string;
  note?: string;
  href?: string;
  act?: () => void;
}

const page = (text: string, href: string, icon: string): Entry => ({ kind: 'Page', icon, text, href });
const action = (text: string, href: string, icon: string): Entry => ({ kind: 'Action', icon, text, href });

/** pageEntries are the pages and the actions that a page carries out. */
export function pageEntries(operator: boolean, admin: boolean): Entry[] {
  return [
    page('Home', '/', 'home'),
    page('Templates', '/templates', 'templates'),
    page('Runs', '/history', 'history'),
    page('Schedules', '/schedules', 'clock'),
    page('Tables', '/tables', 'table'),
    page('Query', '/query', 'table'),
    page('Explore', '/explore', 'explore'),
    page('Streams', '/streams', 'streams'),
    page('Connections', '/connections', 'connections'),
    page('Nodes', '/nodes', 'nodes'),
    page('Plugins', '/plugins', 'plugins'),
    page('Templates by question', '/templates/gallery', 'templates'),
    ...(admin ? [page('Audit', '/audit', 'file')] : []),
    page('Settings', '/settings', 'settings'),
    page('Settings: account', '/settings/account', 'settings'),
    page('Settings: API tokens', '/settings/tokens', 'settings'),
    page('Settings: notifications', '/settings/notifications', 'settings'),
    page('Settings: share links', '/settings/links', 'settings'),
    page('Settings: server', '/settings/server', 'settings'),
    ...(admin
      ? [
          page('Settings: users', '/settings/users', 'users'),
          page('Settings: retention', '/settings/retention', 'settings'),
        ]
      : []),
    ...(operator
      ? [
          action('First steps', '/start', 'play'),
          action('New template', '/templates/new', 'plus'),
          action('New connection', '/connections?new=postgres', 'plus'),
          action('New table', '/tables/new', 'plus'),
        ]
      : []),
  ];
}

/** ranked are the entries that contain all words of a search: those that begin with it first, then in their order. */
export function ranked(entries: Entry[], search: string): Entry[] {
  const text = search.trim().toLowerCase();
  if (text === '') return entries;
  const words = text.split(/\s+/);
  const rank = (e: Entry) => {
    const name = e.text.toLowerCase();
    return name === text ? 0 : name.startsWith(text) ? 1 : name.includes(text) ? 2 : 3;
  };
  return entries
    .filter((e) => {
      const all = `${e.text} ${e.kind} ${e.note ?? ''}`.toLowerCase();
      return words.every((w) => all.includes(w));
    })
    .map((e, i) => ({ e, i }))
    .sort((a, b) => rank(a.e) - rank(b.e) || a.i - b.i)
    .map(({ e }) => e);
}
