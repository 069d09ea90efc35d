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
import { runPoints } from '../api/types';
import { currentUrl } from '../app/location';
import { Crash } from '../app/Crash';
import { Tips } from '../design/Controls';
import { Toasts } from '../design/Toast';
import { ComparedReport } from './ComparedReport';
import { type ComparisonContent, type RunContent, unpack } from './content';
import { Report } from './Report';

/** offlineClient never fetches: all data is in the file. */
function offlineClient(): QueryClient {
  const all = { staleTime: Number.POSITIVE_INFINITY, gcTime: Number.POSITIVE_INFINITY, retry: false, enabled: false };
  const empty = new QueryClient({ defaultOptions: { queries: all } });
  empty.setQueryData(['me'], { user_id: '', name: '', role: 'viewer' });
  return empty;
}

/** comparisonClient preloads the data of a comparison. */
function comparisonClient(c: ComparisonContent): QueryClient {
  const queryClient = offlineClient();
  const first = c.compared[0]?.run.run_id;
  for (const one of c.compared) {
    const id = one.run.run_id;
    queryClient.setQueryData(['compare-run', id], one.run);
    queryClient.setQueryData(['compare-series', id, true], {
      points: runPoints(one.points ?? []),
      span: one.resolution_seconds,
    });
    if (one.against) queryClient.setQueryData(['compare', first, id, c.tolerance_pct], one.against);
    const parts = one.parts ?? { kinds: [], statements: [], notes: [] };
    if (id !== first) queryClient.setQueryData(['compare-parts', first, id, c.tolerance_pct], parts);
  }
  return queryClient;
}

/** runClient preloads the data of a run. */
function runClient(c: RunContent): QueryClient {
  const queryClient = offlineClient();
  queryClient.setQueryData(['worker-series', c.run.run_id], c.worker_points);
  const w = c.warehouse;
  queryClient.setQueryData(['warehouse', c.run.run_id], {
    points: w?.points ?? [],
    slots: w?.slots ?? [],
    // Every poll is included; nothing finer exists.
    resolution: 5,
  });
  return queryClient;
}

// The report keeps its state in a memory location: file addresses take no parameters.
const place = memoryLocation({ path: '/', record: true });
currentUrl.path = () => '/';
currentUrl.search = () => (place.history.at(-1) ?? '').replace(/^[^?]*/, '');
globalThis.fetch = () => Promise.reject(new TypeError('A report has no server.'));
const root = document.getElementById('root')!;
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => (document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light');
follow();
dark.addEventListener('change', follow);

unpack(document.getElementById('content')?.textContent ?? '').then(
  (c) =>
    createRoot(root).render(
      <Crash>
        <QueryClientProvider client={'compared' in c ? comparisonClient(c) : runClient(c)}>
          <Router hook={place.hook} searchHook={place.searchHook}>
            <Tips>
              <Toasts>{'compared' in c ? <ComparedReport c={c} /> : <Report c={c} />}</Toasts>
            </Tips>
          </Router>
        </QueryClientProvider>
      </Crash>,
    ),
  () => {
    root.textContent =
      'The report is incomplete, or this browser is too old to open it. ' +
      'Download the report again, or use a newer browser.';
  },
);
