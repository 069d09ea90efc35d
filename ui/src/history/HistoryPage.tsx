import { useQueryClient } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api } from '../api/client';
import { type RunFilter, useRuns, useTemplates } from '../api/queries';
import { isTerminal, type RunRow, type Status } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { ActionsMenu, SearchBox } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { count, exact, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, SkeletonRows } from '../design/States';
import { useToast } from '../design/Toast';
import { useDebounced } from '../design/useDebounced';
import { maxRuns, runsFrom } from '../compare/model';
import { Drift } from '../drift/Drift';
import '../compare/compare.css';
import { BulkActions } from './BulkActions';
import { RunTable } from './RunTable';
import { Trend } from './Trend';
import { ColumnsMenu, ViewsMenu } from './Views';
import { type Column, columnsFrom, readSavedColumns, saveColumns, standard } from './columns';
import { figures } from './figures';
import { sortFrom } from './sorting';
import { ranges, rangeStart } from './ranges';
import { TagFilter, tagFrom } from './tags';

const statuses = [
  ['', 'Any status'],
  ['RUNNING,STOPPING,CANCELLING', 'Running now'],
  ['PREPARED', 'Prepared'],
  ['COMPLETED', 'Completed'],
  ['FAILED', 'Failed'],
  ['CANCELLED', 'Cancelled'],
  ['failed-thresholds', 'Thresholds failed'],
] as const;

const thresholdsFailed = 'failed-thresholds';
const pageSize = 25;

/** maxSelected limits the selection, and so the reports of one archive. */
const maxSelected = 50;

export function HistoryPage() {
  usePageTitle('Runs');
  const search = useSearch();
  const [, navigate] = useLocation();
  const params = new URLSearchParams(search);
  const [status, setStatus] = useParam('status');
  const [text, setText] = useParam('search');
  const [template, setTemplate] = useParam('template');
  const [range, setRange] = useParam('range');
  const [selection, setSelection] = useParam('selected');
  const [sorted, setSorted] = useParam('sort');
  const order = sortFrom(sorted);
  const [named, setNamed] = useParam('columns');
  const [figure, setFigure] = useParam('trend');
  const [savedColumns, setSavedColumns] = useState(readSavedColumns);
  const chosen = columnsFrom(named || savedColumns);
  const picked = useMemo(() => runsFrom(selection, maxSelected), [selection]);
  const settled = useDebounced(text);
  const cursor = params.get('cursor') ?? '';
  const tags = params.getAll('tag').flatMap((t) => tagFrom(t) ?? []);
  const templates = useTemplates();
  const qc = useQueryClient();
  const toast = useToast();
  const [dialog, ask] = useConfirm();

  const since = useMemo(() => rangeStart(range), [range]);
  const filter: RunFilter = {
    status: status && status !== thresholdsFailed ? (status.split(',') as Status[]) : undefined,
    thresholds: status === thresholdsFailed ? 'failed' : undefined,
    sort: order?.by,
    order: order?.direction,
    search: settled || undefined,
    template_id: template || undefined,
    since,
    tag: tags.length ? tags : undefined,
    limit: pageSize,
    cursor: cursor || undefined,
  };
  const runs = useRuns(filter, cursor ? undefined : 5_000);
  const clear = () => {
    const q = new URLSearchParams(location.search);
    for (const p of ['status', 'search', 'template', 'range', 'tag', 'cursor']) q.delete(p);
    const s = q.toString();
    navigate(`/history${s ? `?${s}` : ''}`, { replace: true });
  };
  const setColumns = (list: Column['name'][]) => {
    const text = list.join(',') === standard.join(',') ? '' : list.join(',');
    saveColumns(text);
    setSavedColumns(text);
    setNamed(text);
  };
  const mark = (ids: string[]) => {
    if (ids.length > maxSelected) toast(`At most ${maxSelected} runs can be selected.`, 'warn');
    setSelection(ids.slice(0, maxSelected).join(','));
  };
  const filtered = Boolean(status || text || template || range || tags.length);

  /** A changed filter returns to the first page. */
  const change = (set: (v: string) => void) => (v: string) => {
    const q = new URLSearchParams(location.search);
    if (q.has('cursor')) {
      q.delete('cursor');
      navigate(`${location.pathname}?${q}`, { replace: true });
    }
    set(v);
  };
  const setTags = (list: string[]) => {
    const q = new URLSearchParams(location.search);
    q.delete('cursor');
    q.delete('tag');
    for (const t of list) q.append('tag', t);
    const s = q.toString();
    navigate(`/history${s ? `?${s}` : ''}`, { replace: true });
  };
  const known = useMemo(
    () =>
      [
        ...new Set(
          (runs.data?.runs ?? []).flatMap((r) =>
            Object.entries(r.scenario_config?.tags ?? {}).map(([k, v]) => `${k}:${v}`),
          ),
        ),
      ].sort(),
    [runs.data],
  );
  const page = (c: string) => {
    const q = new URLSearchParams(location.search);
    if (c) q.set('cursor', c);
    else q.delete('cursor');
    navigate(`${location.pathname}?${q}`);
  };

  const remove = (r: RunRow) =>
    ask({
      title: `Delete run “${r.test_name}”?`,
      body: `This deletes its figures, its log and ${plain(count(r.total_ops))} executions permanently.`,
      verb: 'Delete run',
      act: async () => {
        await api.remove('/api/runs/{id}', { path: { id: r.run_id } });
        await qc.invalidateQueries({ queryKey: ['runs'] });
        toast(`Run “${r.test_name}” was deleted.`, 'ok');
      },
    });

  return (
    <>
      <header className="page-head">
        <h1>Runs</h1>
        {runs.data && (
          <span className="sub">
            {exact(runs.data.total)}
            {filtered ? ' found' : ''}
          </span>
        )}
        <div className="actions">
          <OperatorOnly>
            <Link href="/templates" className="btn primary">
              <Icon name="play" /> Run a template
            </Link>
          </OperatorOnly>
        </div>
      </header>
      <div className="page">
        <div className="toolbar">
          <SearchBox value={text} placeholder="Search by name" onChange={change(setText)} />
          <select
            className="input auto"
            aria-label="Status"
            value={status}
            onChange={(e) => change(setStatus)(e.target.value)}
          >
            {statuses.map(([v, label]) => (
              <option key={v} value={v}>
                {label}
              </option>
            ))}
          </select>
          <select
            className="input auto"
            aria-label="Template"
            value={template}
            onChange={(e) => change(setTemplate)(e.target.value)}
          >
            <option value="">Any template</option>
            {(templates.data ?? []).map((t) => (
              <option key={t.template_id} value={t.template_id}>
                {t.name}
              </option>
            ))}
          </select>
          <select
            className="input auto"
            aria-label="Time"
            value={range}
            onChange={(e) => change(setRange)(e.target.value)}
          >
            {ranges.map(([v, label]) => (
              <option key={v} value={v}>
                {label}
              </option>
            ))}
          </select>
          <TagFilter tags={tags} suggestions={known} onChange={setTags} />
          {filtered && (
            <button type="button" className="btn quiet" onClick={clear}>
              Clear filters
            </button>
          )}
          <div className="row end">
            <button
              type="button"
              className="btn"
              aria-pressed={figure !== ''}
              onClick={() => setFigure(figure ? '' : figures[0]!.value)}
            >
              <Icon name="chart" /> Trend
            </button>
            <ColumnsMenu shownColumns={chosen ?? standard} onChange={setColumns} />
            <ViewsMenu shownColumns={chosen ?? standard} />
          </div>
        </div>
        {picked.length > 0 && (
          <div className="selection sticky" role="status">
            <span>
              <strong>
                {picked.length} {picked.length === 1 ? 'run' : 'runs'}
              </strong>{' '}
              selected
              {picked.length === 1
                ? ': select one more to compare'
                : picked.length > maxRuns
                  ? `: a comparison takes at most ${maxRuns} runs`
                  : '; the first is the baseline'}
            </span>
            <span className="row end">
              <button type="button" className="btn quiet" onClick={() => setSelection('')}>
                Clear
              </button>
              <BulkActions ids={picked} visible={runs.data?.runs ?? []} done={() => setSelection('')} />
              <button
                type="button"
                className="btn primary"
                disabled={picked.length < 2 || picked.length > maxRuns}
                onClick={() => navigate(`/compare?runs=${picked.join(',')}`)}
              >
                <Icon name="chart" /> Compare
              </button>
            </span>
          </div>
        )}
        {figure && (
          <Trend name={figure} filter={filter} picked={picked} visible={runs.data?.runs ?? []} onChange={setFigure} />
        )}
        {template && <Drift key={template} template={template} />}
        <div className="panel">
          <Load
            from={runs}
            what="The runs could not be read."
            skeleton={<SkeletonRows rows={10} />}
            empty={(d) =>
              (d.runs ?? []).length === 0 &&
              (filtered || cursor ? (
                <Empty
                  icon="search"
                  title="No run matches"
                  actions={
                    <button type="button" className="btn" onClick={clear}>
                      Clear filters
                    </button>
                  }
                >
                  Change or remove a filter to see more runs.
                </Empty>
              ) : (
                <Empty
                  icon="chart"
                  title="No runs yet"
                  actions={
                    <Link href="/" className="btn primary">
                      Start the first run
                    </Link>
                  }
                >
                  Finished runs appear here with their figures and every execution.
                </Empty>
              ))
            }
          >
            {(d) => (
              <RunTable
                runs={d.runs ?? []}
                order={sorted}
                onOrder={change(setSorted)}
                picked={picked}
                onPick={(id, on) => mark(on ? [...picked, id] : picked.filter((x) => x !== id))}
                onPickAll={(on) => {
                  const here = (d.runs ?? []).map((r) => r.run_id);
                  mark(on ? [...new Set([...picked, ...here])] : picked.filter((x) => !here.includes(x)));
                }}
                shownColumns={chosen ?? undefined}
                action={(r) => (
                  <ActionsMenu
                    small
                    label={`Actions for ${r.test_name}`}
                    actions={[
                      { label: 'Open', icon: 'chart', act: () => navigate(`/runs/${r.run_id}`) },
                      r.template_id
                        ? {
                            label: 'Open template',
                            icon: 'templates',
                            act: () => navigate(`/templates/${r.template_id}`),
                          }
                        : {
                            label: 'Save as template',
                            needs: 'operator',
                            icon: 'plus',
                            act: () => navigate(`/templates/new?from=${r.run_id}`),
                          },
                      null,
                      {
                        label: 'Delete run',
                        needs: 'operator',
                        icon: 'trash',
                        danger: true,
                        disabled: !isTerminal(r.status) && r.status !== 'PREPARED',
                        act: () => remove(r),
                      },
                    ]}
                  />
                )}
              />
            )}
          </Load>
        </div>
        {(cursor || runs.data?.next_cursor) && (
          <nav className="row pager" aria-label="Pages">
            <button type="button" className="btn" disabled={!cursor} onClick={() => page('')}>
              Newest
            </button>
            <button type="button" className="btn" disabled={!cursor} onClick={() => history.back()}>
              Back
            </button>
            <button
              type="button"
              className="btn"
              disabled={!runs.data?.next_cursor}
              onClick={() => page(runs.data!.next_cursor!)}
            >
              Older
            </button>
          </nav>
        )}
      </div>
      {dialog}
    </>
  );
}
