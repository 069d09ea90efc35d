import 'uplot/dist/uPlot.min.css';
import '../design/tokens.css';
import '../design/base.css';
import '../design/controls.css';
import '../design/parts.css';
import '../design/layout.css';
import '../charts/charts.css';
import '../runs/runs.css';
import '../runs/findmax.css';
import '../runs/guards.css';
import './report.css';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { here } from '../app/location';
import { Crash } from '../app/Crash';
import { Tips } from '../design/Controls';
import { Toasts } from '../design/Toast';
import { type Content, unpacked } from './content';
import { Report } from './Report';

/** Nothing is fetched: what the parts of the page ask for is in the file, or is not there. */
function known(c: Content): QueryClient {
  const all = { staleTime: Number.POSITIVE_INFINITY, gcTime: Number.POSITIVE_INFINITY, retry: false, enabled: false };
  const client = new QueryClient({ defaultOptions: { queries: all } });
  client.setQueryData(['me'], { user_id: '', name: '', role: 'viewer' });
  client.setQueryData(['worker-series', c.run.run_id], c.worker_points);
  const w = c.warehouse;
  client.setQueryData(['warehouse', c.run.run_id], {
    points: w?.points ?? [],
    slots: w?.slots ?? [],
    // That of every poll: there is nothing finer to ask for.
    resolution: 5,
  });
  return client;
}

// What is chosen in a report is kept as on the page, in an address that is its own: those of files take no parameters.
const place = memoryLocation({ path: '/', record: true });
here.path = () => '/';
here.search = () => (place.history.at(-1) ?? '').replace(/^[^?]*/, '');
globalThis.fetch = () => Promise.reject(new TypeError('A report has no server.'));
const root = document.getElementById('root')!;
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => (document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light');
follow();
dark.addEventListener('change', follow);

unpacked(document.getElementById('content')?.textContent ?? '').then(
  (c) =>
    createRoot(root).render(
      <Crash>
        <QueryClientProvider client={known(c)}>
          <Router hook={place.hook} searchHook={place.searchHook}>
            <Tips>
              <Toasts>
                <Report c={c} />
              </Toasts>
            </Tips>
          </Router>
        </QueryClientProvider>
      </Crash>,
    ),
  () => {
    root.textContent = 'This report is incomplete, or the browser is too old to unpack it. Ask for the file again.';
  },
);
