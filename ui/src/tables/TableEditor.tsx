import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, asProblem } from '../api/client';
import type { DerivedTable, FieldError, TablePreview } from '../api/types';
import { useHasRole } from '../api/queries';
import { usePageTitle, useParam } from '../app/location';
import { Term } from '../design/Controls';
import { duration } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, Notice, ProblemNotice, SkeletonRows } from '../design/States';
import { terms } from '../design/terms';
import { useDebounced } from '../design/useDebounced';
import { Grid } from './Grid';
import { type Cell, tablePath } from './model';
import { useCatalog, useEditedTable, useTablesChanged } from './queries';
import { SqlEditor } from './SqlEditor';
import './tables.css';

interface Draft {
  name: string;
  definition: string;
  description: string;
  lag: string;
  mode: DerivedTable['refresh_mode'];
  by: DerivedTable['partition_by'];
  parts: string;
}

const example = `SELECT date_trunc('day', started_at) AS night,
  adapter,
  max(p95_ms) AS p95_ms
FROM run_summary
GROUP BY 1, 2
`;

function draftOf(t: DerivedTable | null, definition: string): Draft {
  return {
    name: t?.name ?? '',
    definition: t?.definition ?? (definition || example),
    description: t?.description ?? '',
    lag: String(t?.target_lag_seconds ?? 60),
    mode: t?.refresh_mode ?? 'AUTO',
    by: t?.partition_by ?? '',
    parts: t?.partitions ? String(t.partitions) : '',
  };
}

/** TableEditor is /tables/new and /table/NAME/edit: a definition with a preview. */
export function TableEditor({ name }: { name: string | null }) {
  usePageTitle(name ? `Edit ${name}` : 'New table');
  const table = useEditedTable(name);
  const [start] = useParam('q');
  if (!useHasRole('operator')) return <NotForViewers back={name ? tablePath(name) : '/tables'} />;
  if (name === null) return <Form table={null} start={start} />;
  return (
    <Load
      from={table}
      what="The table could not be read."
      skeleton={
        <div className="page">
          <SkeletonRows rows={12} />
        </div>
      }
    >
      {(d) => <Form key={d.table.version} table={d.table} start="" reload={() => table.refetch()} />}
    </Load>
  );
}

/** NotForViewers is shown to viewers who open an edit link. */
function NotForViewers({ back }: { back: string }) {
  return (
    <div className="page">
      <h1 className="sr">Operators only</h1>
      <div className="panel">
        <Empty
          icon="table"
          title="Only operators can create and change tables"
          actions={
            <Link href={back} className="btn">
              View the table
            </Link>
          }
        >
          Your role is viewer. You can view and query every table.
        </Empty>
      </div>
    </div>
  );
}

const priority = 0;

/** editedFields lists what another user changed, with the form's labels. */
function editedFields(before: DerivedTable, after: DerivedTable): string[] {
  const was = draftOf(before, '');
  const is = draftOf(after, '');
  const words = {
    definition: 'the definition',
    description: 'the description',
    lag: 'the target lag',
    mode: 'what a refresh replaces',
    by: 'the partition key',
    parts: 'the number of parts',
  };
  return (Object.keys(words) as (keyof typeof words)[]).filter((k) => was[k] !== is[k]).map((k) => words[k]);
}

function Form(props: { table: DerivedTable | null; start: string; reload?: () => unknown }) {
  const { table } = props;
  const [draft, setDraft] = useState(() => draftOf(table, props.start));
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState<unknown>(null);
  const [, navigate] = useLocation();
  const catalog = useCatalog();
  const changed = useTablesChanged();
  const debounced = useDebounced(draft.definition, 700);
  const preview = useQuery({
    queryKey: ['table-preview', draft.name, debounced],
    queryFn: ({ signal }) =>
      api.post('/api/v1/table-preview', { body: { name: draft.name, definition: debounced }, signal }),
    enabled: debounced.trim() !== '',
    retry: false,
    staleTime: 10_000,
    placeholderData: (before) => before,
  });
  const set = (part: Partial<Draft>) => {
    setRefusal(null);
    setDraft((d) => ({ ...d, ...part }));
  };
  const problem = preview.error && debounced === draft.definition ? asProblem(preview.error) : null;
  const placed: FieldError[] = problem
    ? problem.fields.length
      ? problem.fields
      : [{ field: 'definition', message: problem.message, hint: problem.hint }]
    : [];
  const bodyOf = () => ({
    definition: draft.definition,
    description: draft.description,
    target_lag_seconds: Number(draft.lag),
    refresh_mode: draft.mode,
    partition_by: draft.by,
    partitions: draft.by ? Number(draft.parts) : 0,
    priority: table?.priority ?? priority,
  });
  const save = async (e?: FormEvent, over?: number) => {
    e?.preventDefault();
    setBusy(true);
    setRefusal(null);
    try {
      const saved = table
        ? await api.put('/api/v1/tables/{name}', {
            path: { name: table.name },
            body: { ...bodyOf(), version: over ?? table.version },
          })
        : await api.post('/api/v1/tables', { body: { ...bodyOf(), name: draft.name.trim() } });
      await changed();
      navigate(tablePath(saved.name));
    } catch (err) {
      setRefusal(err);
      setBusy(false);
    }
  };
  const conflict = refusal !== null && table !== null && asProblem(refusal).fields.some((f) => f.field === 'version');
  const theirs = useQuery({
    queryKey: ['edited-meanwhile', table?.name, refusal],
    queryFn: ({ signal }) => api.get('/api/v1/tables/{name}', { path: { name: table!.name }, signal, asStored: true }),
    enabled: conflict,
    gcTime: 0,
  }).data?.table;
  return (
    <form onSubmit={(e) => void save(e)} className="contents">
      <header className="page-head">
        <Link
          href={table ? tablePath(table.name) : '/tables'}
          className="back"
          aria-label="Leave without saving"
          title="Leave without saving"
        >
          <Icon name="back" />
        </Link>
        <h1 className="clip">{table ? <span className="mono">{table.name}</span> : 'New table'}</h1>
        <div className="actions">
          <button
            type="submit"
            className="btn primary"
            disabled={busy || !draft.name.trim() || !draft.definition.trim()}
          >
            <Icon name="check" /> {busy ? 'Saving…' : table ? 'Save' : 'Create table'}
          </button>
        </div>
      </header>
      <div className="page">
        {refusal !== null && !conflict && <ProblemNotice error={refusal} />}
        {conflict && table && (
          <Notice tone="bad">
            <strong>{asProblem(refusal).message}</strong>{' '}
            {theirs &&
              `Changed: ${editedFields(table, theirs).join(', ') || 'only fields that this page does not show'}.`}
            <div className="row choices">
              <button type="button" className="btn small" onClick={() => void props.reload?.()}>
                <Icon name="refresh" size={14} /> Load the newest version, without my changes
              </button>
              <button
                type="button"
                className="btn small"
                disabled={!theirs || busy}
                onClick={() => void save(undefined, theirs?.version)}
              >
                <Icon name="check" size={14} /> Overwrite with mine
              </button>
            </div>
          </Notice>
        )}
        <div className="editor-columns">
          <div className="stack">
            <section className="panel pad stack" aria-label="The table">
              <div className="columns three">
                <label className="field">
                  <span className="label">Name</span>
                  <input
                    className="input mono"
                    value={draft.name}
                    disabled={table !== null}
                    maxLength={63}
                    autoFocus={table === null}
                    placeholder="p95_by_night"
                    onChange={(e) => set({ name: e.target.value })}
                  />
                </label>
                <label className="field">
                  <span className="label">
                    <Term tip={terms.lag}>Target lag</Term>
                    <span className="muted">seconds</span>
                  </span>
                  <input
                    className="input num"
                    aria-label="Target lag in seconds"
                    type="number"
                    min={1}
                    max={31622400}
                    value={draft.lag}
                    onChange={(e) => set({ lag: e.target.value })}
                  />
                </label>
                <label className="field">
                  <span className="label">
                    <Term tip={terms.refreshMode}>Refresh mode</Term>
                  </span>
                  <select
                    className="input"
                    aria-label="Refresh mode"
                    value={draft.mode}
                    onChange={(e) => set({ mode: e.target.value as Draft['mode'] })}
                  >
                    <option value="AUTO">Incremental where possible</option>
                    <option value="INCREMENTAL" disabled={draft.by === ''}>
                      Incremental by run or day
                    </option>
                    <option value="FULL">Full</option>
                  </select>
                </label>
              </div>
              <label className="field">
                <span className="label">
                  Description <span className="muted">optional</span>
                </span>
                <input
                  className="input"
                  value={draft.description}
                  maxLength={1000}
                  onChange={(e) => set({ description: e.target.value })}
                />
              </label>
              <div className="columns depends">
                <label className="field">
                  <span className="label">Partition key</span>
                  <select
                    className="input"
                    value={draft.by}
                    onChange={(e) => {
                      const by = e.target.value as Draft['by'];
                      set(by === '' && draft.mode === 'INCREMENTAL' ? { by, mode: 'AUTO' } : { by });
                    }}
                  >
                    <option value="">None: any change rebuilds all rows</option>
                    <option value="RUN">run_id: a changed run replaces only its own rows</option>
                    <option value="DAY">day (UTC): a changed run replaces only the rows of its day</option>
                  </select>
                </label>
                <label className="field">
                  <span className="label">
                    <Term tip={terms.partitions}>Parts</Term>
                  </span>
                  <input
                    className="input num"
                    aria-label="Parts of a refresh"
                    type="number"
                    min={1}
                    max={64}
                    placeholder="as needed"
                    disabled={draft.by === ''}
                    value={draft.by ? draft.parts : ''}
                    onChange={(e) => set({ parts: e.target.value })}
                  />
                </label>
              </div>
            </section>
            <SqlEditor
              label="Definition, a SELECT"
              value={draft.definition}
              onChange={(definition) => set({ definition })}
              catalog={catalog.data ?? []}
              errors={placed}
            />
          </div>
          <Preview
            preview={problem ? undefined : preview.data}
            pending={preview.isFetching || debounced !== draft.definition}
            refused={problem !== null}
          />
        </div>
      </div>
    </form>
  );
}

function Preview(props: { preview?: TablePreview; pending: boolean; refused: boolean }) {
  const p = props.preview;
  return (
    <section className="panel" aria-label="Preview" aria-busy={props.pending}>
      <header>
        <h2>Preview</h2>
        <div className="end note muted">
          {props.pending ? 'loading…' : p ? `in ${duration(Math.max(1, Math.round(p.elapsed_ms)) / 1000)}` : ''}
        </div>
      </header>
      {!p ? (
        props.refused ? (
          <Empty tight icon="alert" title="No preview">
            The database refuses the definition; the place is marked in it.
          </Empty>
        ) : props.pending ? (
          <SkeletonRows rows={6} />
        ) : (
          <Empty tight title="No preview">
            Write a SELECT over derived tables and roll-ups to see its first rows.
          </Empty>
        )
      ) : (
        <div className="stack">
          {p.note && (
            <div className="inside">
              <Notice tone="warn">{p.note}</Notice>
            </div>
          )}
          <Grid label="First rows" columns={p.columns} rows={p.rows as Cell[][]} height={340} />
          <div className="inside stack">
            <p className="note muted">
              {p.rows.length === 0
                ? 'The table has no rows yet.'
                : p.truncated
                  ? `First ${p.rows.length} rows.`
                  : p.rows.length === 1
                    ? '1 row.'
                    : `All ${p.rows.length} rows.`}{' '}
              {p.sources.length
                ? `It reads ${p.sources.join(', ')}, and is refreshed when that changes.`
                : 'It reads no derived table. Its target lag alone decides when it is refreshed.'}
            </p>
            <details>
              <summary>Plan</summary>
              <pre className="code" tabIndex={0}>
                {p.plan}
              </pre>
            </details>
          </div>
        </div>
      )}
    </section>
  );
}
