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
import { ofRun } from '../api/types';
import { here } from '../app/location';
import { Crash } from '../app/Crash';
import { Tips } from '../design/Controls';
import { Toasts } from '../design/Toast';
import { ComparedReport } from './ComparedReport';
import { type Content, type Together, unpacked } from './content';
import { Report } from './Report';

/** Nothing is fetched: what the parts of the page ask for is in the file, or is not there. */
function client(): QueryClient {
  const all = { staleTime: Number.POSITIVE_INFINITY, gcTime: Number.POSITIVE_INFINITY, retry: false, enabled: false };
  const empty = new QueryClient({ defaultOptions: { queries: all } });
  empty.setQueryData(['me'], { user_id: '', name: '', role: 'viewer' });
  return empty;
}

/** What the page of comparisons asks for. */
function together(c: Together): QueryClient {
  const known = client();
  const first = c.compared[0]?.run.run_id;
  for (const one of c.compared) {
    const id = one.run.run_id;
    known.setQueryData(['compare-run', id], one.run);
    known.setQueryData(['compare-series', id, true], { points: ofRun(one.points ?? []), span: one.resolution_seconds });
    if (one.against) known.setQueryData(['compare', first, id, c.tolerance_pct], one.against);
    const parts = one.parts ?? { kinds: [], statements: [], notes: [] };
    if (id !== first) known.setQueryData(['compare-parts', first, id, c.tolerance_pct], parts);
  }
  return known;
}

/** What the page of a run asks for. */
function alone(c: Content): QueryClient {
  const known = client();
  known.setQueryData(['worker-series', c.run.run_id], c.worker_points);
  const w = c.warehouse;
  known.setQueryData(['warehouse', c.run.run_id], {
    points: w?.points ?? [],
    slots: w?.slots ?? [],
    // That of every poll: there is nothing finer to ask for.
    resolution: 5,
  });
  return known;
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
        <QueryClientProvider client={'compared' in c ? together(c) : alone(c)}>
          <Router hook={place.hook} searchHook={place.searchHook}>
            <Tips>
              <Toasts>{'compared' in c ? <ComparedReport c={c} /> : <Report c={c} />}</Toasts>
            </Tips>
          </Router>
        </QueryClientProvider>
      </Crash>,
    ),
  () => {
    root.textContent = 'This report is incomplete, or the browser is too old to unpack it. Ask for the file again.';
  },
);
