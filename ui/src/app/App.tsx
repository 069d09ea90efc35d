import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useRef } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { onSignOut, Problem } from '../api/client';
import { useMe } from '../api/queries';
import { useOfflineSince } from '../api/connectivity';
import { timeOfDay } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Failed, Skeleton, SkeletonRows } from '../design/States';
import { Crash } from './Crash';
import { Home } from './Home';
import { ProductionPrompt } from './ProductionPrompt';
import { Rail } from './Rail';
import { Shortcuts } from './Shortcuts';
import { pathSegment } from './location';
import {
  AuditPage,
  ComparePage,
  ConnectionsPage,
  ConsolePage,
  ExplorePage,
  FirstSteps,
  GalleryPage,
  HistoryPage,
  Join,
  MatrixPage,
  NodesPage,
  PluginsPage,
  preloadPages,
  RunPage,
  SchedulesPage,
  Settings,
  SignIn,
  StreamsPage,
  TableEditor,
  TablePage,
  TablesPage,
  TemplateEditor,
  TemplatesPage,
} from './pages';

export function App() {
  return (
    <Switch>
      <Route path="/signin">
        <Suspense fallback={<div className="state" aria-busy="true" />}>
          <SignIn />
        </Suspense>
      </Route>
      <Route path="/join">
        <Suspense fallback={<div className="state" aria-busy="true" />}>
          <Join />
        </Suspense>
      </Route>
      <Route>
        <SignedInApp />
      </Route>
    </Switch>
  );
}

/** OfflineBanner says on every page how old the data is. */
function OfflineBanner() {
  const since = useOfflineSince();
  return (
    <div role="status" className={since === null ? '' : 'silent-server'}>
      {since !== null && (
        <>
          <Icon name="alert" size={14} />
          <span>
            <strong>The server does not answer.</strong> The page shows the state of{' '}
            {timeOfDay(new Date(since).toISOString()).slice(0, 8)}; it keeps trying.
          </span>
        </>
      )}
    </div>
  );
}

/** ShellSkeleton has the shape of the page while a slow server answers who the user is. */
function ShellSkeleton() {
  return (
    <div className="shell" aria-busy="true">
      <nav className="rail" aria-label="Main">
        <SkeletonRows rows={9} />
      </nav>
      <main className="main" id="main">
        <div className="page-head">
          <Skeleton width={220} height={22} />
        </div>
        <div className="page">
          <SkeletonRows rows={10} />
        </div>
      </main>
    </div>
  );
}

function SignedInApp() {
  const me = useMe();
  const qc = useQueryClient();
  const [path, navigate] = useLocation();

  useEffect(() => {
    onSignOut((reason) => {
      // A user whose session ended sees why; a visitor by link does not.
      const ended = qc.getQueryData(['me']) !== undefined;
      qc.removeQueries({ queryKey: ['me'] });
      if (location.pathname === '/signin') return;
      const next = encodeURIComponent(location.pathname + location.search);
      navigate(`/signin?next=${next}`, { replace: true, state: ended || reason ? { ended: true, reason } : null });
    });
  }, [qc, navigate]);

  useEffect(preloadPages, []);

  // On a new page, scroll to the top and move the focus away from the removed link.
  const first = useRef(true);
  useEffect(() => {
    scrollTo(0, 0);
    if (first.current) first.current = false;
    else document.getElementById('main')?.focus({ preventScroll: true });
  }, [path]);

  if (me.error && !(me.error instanceof Problem && me.error.status === 401))
    return <Failed what="The server cannot be reached." error={me.error} retry={() => me.refetch()} />;
  if (!me.data) return <ShellSkeleton />;

  return (
    <div className="shell">
      <a
        className="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to content
      </a>
      <Rail user={me.data} />
      <main className="main" id="main" tabIndex={-1}>
        <OfflineBanner />
        <Crash at={path}>
          <Suspense
            fallback={
              <div className="page">
                <SkeletonRows rows={10} />
              </div>
            }
          >
            <Switch>
              <Route path="/">
                <Home />
              </Route>
              <Route path="/templates">
                <TemplatesPage />
              </Route>
              <Route path="/templates/new">
                <TemplateEditor id={null} />
              </Route>
              <Route path="/templates/gallery">
                <GalleryPage />
              </Route>
              <Route path="/start">
                <FirstSteps />
              </Route>
              <Route path="/templates/:id">{(p) => <TemplateEditor key={p.id} id={p.id} />}</Route>
              <Route path="/runs/:id">{(p) => <RunPage key={p.id} id={p.id} />}</Route>
              <Route path="/runs">
                <Redirect to="/history" replace />
              </Route>
              <Route path="/history">
                <HistoryPage />
              </Route>
              <Route path="/compare">
                <ComparePage />
              </Route>
              <Route path="/matrix/:id">{(p) => <MatrixPage key={p.id} id={p.id} />}</Route>
              <Route path="/schedules">
                <SchedulesPage />
              </Route>
              <Route path="/connections">
                <ConnectionsPage />
              </Route>
              <Route path="/nodes">
                <NodesPage />
              </Route>
              <Route path="/tables">
                <TablesPage />
              </Route>
              <Route path="/tables/new">
                <TableEditor name={null} />
              </Route>
              <Route path="/table/:name">{(p) => <TablePage key={p.name} name={pathSegment(2)} />}</Route>
              <Route path="/table/:name/edit">{(p) => <TableEditor key={p.name} name={pathSegment(2)} />}</Route>
              <Route path="/query">
                <ConsolePage />
              </Route>
              <Route path="/explore">
                <ExplorePage />
              </Route>
              <Route path="/streams">
                <StreamsPage />
              </Route>
              <Route path="/plugins">
                <PluginsPage />
              </Route>
              <Route path="/audit">
                <AuditPage />
              </Route>
              <Route path="/settings">
                <Settings page="" />
              </Route>
              <Route path="/settings/:page">{(p) => <Settings page={p.page} />}</Route>
              <Route>
                <div className="page">
                  <h1 className="sr">Page not found</h1>
                  <div className="panel">
                    <Empty
                      icon="search"
                      title="Page not found"
                      actions={
                        <Link href="/" className="btn">
                          Go to Home
                        </Link>
                      }
                    >
                      There is no page at <code>{path}</code>. Check the address, or go to the start page.
                    </Empty>
                  </div>
                </div>
              </Route>
            </Switch>
          </Suspense>
        </Crash>
      </main>
      <Shortcuts />
      <ProductionPrompt />
    </div>
  );
}
