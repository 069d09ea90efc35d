import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem } from '../api/client';
import { useCreateRun, useLastRuns, useTemplates } from '../api/queries';
import type { Template } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { ActionsMenu, SearchBox } from '../design/Controls';
import { useConfirm } from '../design/Dialog';
import { ago, dateTime, duration } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, Skeleton, SkeletonRows } from '../design/States';
import { StatusBadge } from '../design/Status';
import { useToast } from '../design/Toast';
import { TemplateAccess } from './TemplateAccess';
import { problemText } from '../design/sentences';

const modeWords: Record<string, string> = {
  CONCURRENCY: 'Closed loop',
  QPS: 'Open loop',
  FIND_MAX_CONCURRENCY: 'Find Max',
};

export function TemplatesPage() {
  usePageTitle('Templates');
  const templates = useTemplates();
  const lastRuns = useLastRuns();
  const [search, setSearch] = useParam('search');
  const [, navigate] = useLocation();
  const toast = useToast();
  const qc = useQueryClient();
  const create = useCreateRun();
  const [dialog, ask] = useConfirm();
  const [of, setOf] = useState<Template | null>(null);

  const run = (t: Template, start = true) =>
    create.mutate(
      { template_id: t.template_id, start, matrix: Boolean(t.config.matrix) },
      {
        onSuccess: (r) => navigate(r.path),
        onError: (err) => {
          const p = asProblem(err);
          toast(problemText(p), 'bad');
        },
      },
    );
  const remove = (t: Template) =>
    ask({
      title: `Delete template “${t.name}”?`,
      body: 'This deletes only the template. Its runs and their figures stay.',
      verb: 'Delete template',
      act: async () => {
        await api.remove('/api/templates/{id}', { path: { id: t.template_id } });
        await qc.invalidateQueries({ queryKey: ['templates'] });
        toast(`Template “${t.name}” was deleted.`, 'ok');
      },
    });

  const matches = (t: Template) => {
    const q = search.trim().toLowerCase();
    return (
      q === '' || `${t.name} ${t.description ?? ''} ${t.config.target?.table_name ?? ''}`.toLowerCase().includes(q)
    );
  };
  return (
    <>
      <header className="page-head">
        <h1>Templates</h1>
        <span className="sub hide-phone">Saved definitions of runs.</span>
        <div className="actions">
          <OperatorOnly>
            <Link href="/templates/new" data-new className="btn primary">
              <Icon name="plus" /> New template
            </Link>
          </OperatorOnly>
        </div>
      </header>
      <div className="page">
        <div className="toolbar">
          <SearchBox value={search} placeholder="Search templates" onChange={setSearch} />
        </div>
        <div className="panel">
          <Load
            from={templates}
            what="The templates could not be read."
            skeleton={<SkeletonRows rows={6} />}
            empty={(d) =>
              d.length === 0 ? (
                <Empty
                  icon="templates"
                  title="No template yet"
                  actions={
                    <OperatorOnly>
                      <Link href="/templates/gallery" className="btn primary">
                        Choose a question
                      </Link>
                      <Link href="/templates/new" className="btn">
                        New template
                      </Link>
                    </OperatorOnly>
                  }
                >
                  A template defines the table, the operations and the load of a run, so that you can repeat and compare
                  it.
                </Empty>
              ) : (
                d.filter(matches).length === 0 && (
                  <Empty
                    icon="search"
                    title="No template matches"
                    actions={
                      <button type="button" className="btn" onClick={() => setSearch('')}>
                        Clear the search
                      </button>
                    }
                  >
                    No template name contains “{search}”.
                  </Empty>
                )
              )
            }
          >
            {(d) => (
              <div className="table-wrap">
                <table className="table cards">
                  <thead>
                    <tr>
                      <th>Template</th>
                      <th>Target</th>
                      <th>Load</th>
                      <th>Last run</th>
                      <th className="num">Changed</th>
                      <th>
                        <span className="sr">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {d.filter(matches).map((t) => {
                      const last = lastRuns.data?.get(t.template_id);
                      const c = t.config;
                      const href = `/templates/${t.template_id}`;
                      return (
                        <tr
                          key={t.template_id}
                          className="link"
                          onClick={(e) => {
                            if (!(e.target as HTMLElement).closest('a, button')) navigate(href);
                          }}
                        >
                          <td>
                            <Link href={href} className="name" data-row>
                              {t.name}
                            </Link>
                            {t.description && <span className="second clip-2">{t.description}</span>}
                          </td>
                          <td>
                            {c.matrix
                              ? `${c.matrix.targets?.length ?? 0} targets`
                              : typeof c.target?.connection === 'string'
                                ? c.target?.connection
                                : (c.target?.connection?.driver ?? 'inline')}
                            <span className="second mono">
                              {c.matrix ? c.matrix.targets?.map((x) => x.label).join(', ') : c.target?.table_name}
                            </span>
                          </td>
                          <td>
                            {modeWords[c.workload.load_mode] ?? c.workload.load_mode}
                            <span className="second">
                              {c.workload.load_mode === 'FIND_MAX_CONCURRENCY'
                                ? `steps of ${duration(Number(c.find_max?.step_duration_seconds ?? 30))}`
                                : `${c.workload.concurrent_connections} connections · ` +
                                  `${duration(c.workload.duration_seconds)}`}
                            </span>
                          </td>
                          <td data-label="Last run">
                            {last ? (
                              <Link href={`/runs/${last.run_id}`} className="row nowrap quiet-link">
                                <StatusBadge
                                  status={last.status}
                                  passed={last.passed}
                                  failed={last.failed_thresholds}
                                />
                                <span className="muted">{ago(last.start_time ?? last.created_at)}</span>
                              </Link>
                            ) : lastRuns.isPending ? (
                              <Skeleton width={90} />
                            ) : (
                              <span className="muted">{lastRuns.error ? 'unknown' : 'never'}</span>
                            )}
                          </td>
                          <td className="num nowrap extra" title={dateTime(t.updated_at)}>
                            {ago(t.updated_at)}
                          </td>
                          <td className="act">
                            <div className="row nowrap row-actions">
                              <OperatorOnly>
                                <button
                                  type="button"
                                  className="btn small"
                                  onClick={() => run(t)}
                                  disabled={create.isPending}
                                  aria-label={`Run ${t.name}`}
                                >
                                  <Icon name="play" size={12} /> Run
                                </button>
                              </OperatorOnly>
                              <ActionsMenu
                                small
                                label={`Actions for ${t.name}`}
                                actions={[
                                  { label: 'Edit', icon: 'edit', act: () => navigate(href) },
                                  { label: 'Edit as YAML', icon: 'file', act: () => navigate(`${href}?as=yaml`) },
                                  {
                                    label: 'Duplicate',
                                    needs: 'operator',
                                    icon: 'copy',
                                    act: () => navigate(`/templates/new?copy=${t.template_id}`),
                                  },
                                  {
                                    label: 'Prepare a run without starting it',
                                    needs: 'operator',
                                    icon: 'clock',
                                    act: () => run(t, false),
                                  },
                                  {
                                    label: 'Runs',
                                    icon: 'history',
                                    act: () => navigate(`/history?template=${t.template_id}`),
                                  },
                                  { label: 'Who may use it', icon: 'users', needs: 'operator', act: () => setOf(t) },
                                  null,
                                  {
                                    label: 'Delete template',
                                    icon: 'trash',
                                    danger: true,
                                    needs: 'operator',
                                    act: () => remove(t),
                                  },
                                ]}
                              />
                            </div>
                          </td>
                        </tr>
                      );
                    })}
                  </tbody>
                </table>
              </div>
            )}
          </Load>
        </div>
      </div>
      {of && <TemplateAccess key={of.template_id} template={of} onClose={() => setOf(null)} />}
      {dialog}
    </>
  );
}
