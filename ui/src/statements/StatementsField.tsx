import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem, type Problem } from '../api/client';
import { useHasRole } from '../api/queries';
import type { ScenarioDraft, StatementTrial, TrialFault } from '../api/types';
import { percent, plain as inWords } from '../design/format';
import { Icon } from '../design/icons';
import { Notice, ProblemNotice } from '../design/States';
import { Editor, type Language } from '../editor/Editor';
import { sqlCompletions, wordAt } from '../tables/sql';
import { hasErrors, Problems, tone, useErrors, useForm } from '../templates/fields';
import { useRelations } from '../templates/relations';
import { get, shownAs } from '../templates/schema';
import { BindRow } from './Binds';
import { type Bind, newMemory, type Statement, unusedId, withSql } from './binds';
import { type Place, placesOf } from './columns';
import { colourStatement, parametersOf, withNamedParameters } from './params';
import './statements.css';
import { TrialResult } from './TrialResult';

/** StatementsField edits statements with their parameters and trials. */
export default function StatementsField({ path, plain }: { path: string; plain: boolean }) {
  const { config, set } = useForm();
  const stored = get(config, path);
  const list = useMemo(() => (Array.isArray(stored) ? (stored as Statement[]) : []), [stored]);
  const relations = useRelations(config);
  const errors = useErrors(path).filter((e) => e.field === path);
  const language = useMemo<Language>(() => {
    const catalog = relations.map((r) => ({
      ...r,
      schema: r.schema.toLowerCase() === 'public' ? 'tables' : r.schema,
      kind: 'table' as const,
    }));
    return {
      completionHelp: 'tables and columns',
      colour: colourStatement,
      complete: (text, caret, explicit) => {
        const { word, before, from } = wordAt(text, caret);
        if (text[from - 1] === ':') return { from, offers: [] };
        return { from, offers: explicit || word || before ? sqlCompletions(text, caret, catalog as never) : [] };
      },
    };
  }, [relations]);
  const change = (next: Statement[]) => set(path, next.length ? next : undefined);
  const sum = list.reduce((n, s) => n + (typeof s.weight === 'number' ? s.weight : 1), 0);
  return (
    <div className="stack" data-field={path}>
      <div className="row">
        <div className="label grow">Statements</div>
        <button type="button" className="btn small" onClick={() => change([...list, { id: unusedId(list), sql: '' }])}>
          <Icon name="plus" size={14} /> Add statement
        </button>
        {!plain && (
          <button
            type="button"
            className="btn small"
            onClick={() => {
              const first = unusedId(list);
              change([...list, { id: unusedId(list, 'transaction'), transaction: [{ id: first, sql: '' }] }]);
            }}
          >
            <Icon name="plus" size={14} /> Add transaction
          </button>
        )}
      </div>
      {errors.length > 0 && (
        <div className="field">
          <div className={tone(errors)}>
            <Problems errors={errors} path={path} />
          </div>
        </div>
      )}
      {list.length === 0 && (
        <p className="muted">
          No statement yet. Write one with parameters like <code>:id</code>; Loadstone detects them.
        </p>
      )}
      {list.map((s, i) => (
        <Group
          key={i}
          path={`${path}[${i}]`}
          statement={s}
          language={language}
          plain={plain}
          share={sum > 0 ? (typeof s.weight === 'number' ? s.weight : 1) / sum : 0}
          alone={s}
          onChange={(next) => change(list.with(i, next))}
          onRemove={() => change(list.toSpliced(i, 1))}
          all={list}
        />
      ))}
    </div>
  );
}

interface EntryProps {
  path: string;
  statement: Statement;
  language: Language;
  plain: boolean;
  /** What a trial sends: the statement, or its transaction. */
  alone: Statement;
  onChange: (s: Statement) => void;
  onRemove: () => void;
}

/** Group is a statement with its weight, or a transaction of several. */
function Group(props: EntryProps & { share: number; all: Statement[] }) {
  const { statement: s, path } = props;
  const inner = s.transaction;
  return (
    <section className="statement" aria-label={`Statement ${s.id}`}>
      <div className="row nowrap statement-head">
        <IdInput path={path} value={s.id} onChange={(id) => props.onChange({ ...s, id })} />
        {!props.plain && (
          <label className="row nowrap weight">
            <span className="muted">Weight</span>
            <input
              className="input numeric"
              inputMode="decimal"
              value={shownAs(s.weight)}
              placeholder="1"
              data-field={`${path}.weight`}
              aria-label={`Weight of ${s.id}`}
              onChange={(e) => props.onChange(withNumber(s, 'weight', e.target.value))}
            />
            <span className="muted share-text">{inWords(percent(props.share * 100))}</span>
          </label>
        )}
        <button type="button" className="btn quiet icon" aria-label={`Remove ${s.id}`} onClick={props.onRemove}>
          <Icon name="close" />
        </button>
      </div>
      {inner ? (
        <div className="stack inner">
          <span className="muted note">One transaction. Its statements execute in order.</span>
          {(s.binds ?? []).length > 0 && (
            <Parameters
              binds={s.binds!}
              path={path}
              plain={props.plain}
              earlier={[]}
              onChange={(binds) => props.onChange({ ...s, binds })}
              values={{}}
              places={new Map()}
              faults={[]}
            />
          )}
          {inner.map((one, i) => (
            <div key={i} className="stack tightly">
              <div className="row nowrap statement-head">
                <IdInput
                  path={`${path}.transaction[${i}]`}
                  value={one.id}
                  onChange={(id) => props.onChange({ ...s, transaction: inner.with(i, { ...one, id }) })}
                />
                <button
                  type="button"
                  className="btn quiet icon"
                  aria-label={`Remove ${one.id}`}
                  disabled={inner.length === 1}
                  onClick={() => props.onChange({ ...s, transaction: inner.toSpliced(i, 1) })}
                >
                  <Icon name="close" />
                </button>
              </div>
              <Text
                {...props}
                path={`${path}.transaction[${i}]`}
                statement={one}
                shared={(s.binds ?? []).map((b) => b.name)}
                earlier={inner.slice(0, i).map((x) => x.id)}
                onChange={(next) => props.onChange({ ...s, transaction: inner.with(i, next) })}
              />
            </div>
          ))}
          <button
            type="button"
            className="btn small fit"
            onClick={() => props.onChange({ ...s, transaction: [...inner, { id: unusedId(props.all), sql: '' }] })}
          >
            <Icon name="plus" size={14} /> Add statement to the transaction
          </button>
        </div>
      ) : (
        <Text {...props} shared={[]} earlier={[]} />
      )}
    </section>
  );
}

function withNumber(s: Statement, field: string, text: string): Statement {
  const next = { ...s };
  const n = Number(text.trim());
  if (text.trim() === '') delete next[field];
  else next[field] = Number.isFinite(n) ? n : text;
  return next;
}

function IdInput(props: { path: string; value: string; onChange: (id: string) => void }) {
  const errors = useErrors(`${props.path}.id`);
  return (
    <input
      className="input mono"
      aria-label="Id of the statement"
      title={errors[0]?.message ?? 'Its name in figures'}
      data-field={`${props.path}.id`}
      aria-invalid={hasErrors(errors)}
      value={props.value}
      spellCheck={false}
      onChange={(e) => props.onChange(e.target.value)}
    />
  );
}

/** Text edits one statement and its parameters, and tries it. */
function Text(props: EntryProps & { shared: string[]; earlier: string[] }) {
  const { statement: s, path } = props;
  const { config } = useForm();
  const relations = useRelations(config);
  const table = shownAs(get(config, 'target.table_name'));
  const memory = useRef(newMemory());
  const errors = useErrors(path).filter((e) => e.field === path || e.field === `${path}.sql`);
  const [trial, setTrial] = useState<{ of: string; found: StatementTrial } | null>(null);
  const [refused, setRefused] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const sql = s.sql ?? '';
  const foreign = parametersOf(sql).filter((p) => p.form !== 'name');
  const subject = JSON.stringify([s, props.alone.binds]);
  const places = useMemo(() => placesOf(sql, relations, table), [sql, relations, table]);
  const update = (text: string) =>
    props.onChange(withSql(s, text, memory.current, props.shared, props.plain, placesOf(text, relations, table)));
  // A user who types before the tables are loaded gets guesses by name, which are repeated afterwards.
  const again = useEffectEvent(() => {
    if (memory.current.guessed.size === 0) return;
    const next = withSql(s, sql, memory.current, props.shared, props.plain, places);
    if (JSON.stringify(next.binds) !== JSON.stringify(s.binds)) props.onChange(next);
  });
  useEffect(() => again(), [relations, table]);
  const faults = trial?.of === subject ? (trial.found.faults ?? []) : [];
  const values = Object.fromEntries(
    (trial?.of === subject ? (trial.found.parameters ?? []) : []).map((p) => [p.name, p.values ?? []]),
  );

  const tryIt = async (production: string[] = []) => {
    setBusy(true);
    setRefused(null);
    try {
      const alone = { ...props.alone, weight: 1 };
      const found = await api.post('/api/statements/try', {
        body: {
          scenario: draftOf(config, alone, props.plain),
          statement: s.id,
          ...(production.length ? { confirm_production: production } : {}),
        },
      });
      setTrial({ of: subject, found });
    } catch (err) {
      setRefused(asProblem(err));
    } finally {
      setBusy(false);
    }
  };
  const production = (refused?.fields ?? [])
    .filter((f) => f.field === 'confirm_production')
    .map((f) => f.subject ?? '');
  return (
    <div className="stack tightly">
      <Editor label={`SQL of ${s.id}`} value={sql} language={props.language} onChange={update} errors={errors} />
      {foreign.length > 0 && (
        <Notice tone="warn">
          Parameters are written with names here, as <code>:id</code>.{' '}
          <button type="button" className="btn small" onClick={() => update(withNamedParameters(sql))}>
            Write {foreign[0]!.form === 'number' ? `$${foreign[0]!.name}` : '?'} as{' '}
            {foreign[0]!.form === 'number' ? `:p${foreign[0]!.name}` : ':p1'}
          </button>
        </Notice>
      )}
      <Parameters
        binds={s.binds ?? []}
        path={path}
        plain={props.plain}
        earlier={props.earlier}
        values={values}
        places={places}
        faults={faults}
        onChange={(binds) => props.onChange({ ...s, binds })}
      />
      <OperatorOnly>
        <div className="row">
          <button type="button" className="btn small" disabled={busy || sql.trim() === ''} onClick={() => void tryIt()}>
            <Icon name="play" size={12} /> {busy ? 'Trying…' : 'Try it'}
          </button>
          <span className="muted note">
            Explains the statement with generated values and, if it is read-only, executes it once. Nothing is written.
          </span>
        </div>
      </OperatorOnly>
      {production.length > 0 ? (
        <Notice tone="warn">
          {production.map((p) => `“${p}”`).join(', ')} is production.{' '}
          <button type="button" className="btn small" onClick={() => void tryIt(production)}>
            Try it on production anyway
          </button>
        </Notice>
      ) : (
        refused && <ProblemNotice error={refused} />
      )}
      {trial && <TrialResult trial={trial.found} stale={trial.of !== subject} />}
    </div>
  );
}

/** draftOf is the document of a trial: the template with this statement alone, without parts that may be invalid. */
function draftOf(config: ScenarioDraft, alone: Statement, plain: boolean) {
  const { target, matrix, workload } = config;
  const { weight: _weight, ...bare } = alone;
  return {
    name: 'trial',
    ...(matrix ? { matrix } : { target: { ...target, prepare: undefined } }),
    workload: {
      plugin: plain ? 'sql' : workload.plugin,
      seed: workload.seed,
      params: { statements: [plain ? withGenerators(bare) : alone] },
    },
  };
}

/** withGenerators adds generators of the types to a replay's statement, which has none. */
function withGenerators(s: Statement): Statement {
  const of: Record<string, Record<string, unknown>> = {
    i64: { generator: 'uniform', min: 1, max: 1000 },
    f64: { generator: 'uniform', min: 0.5, max: 1000.5 },
    bool: { generator: 'choice', values: [true, false] },
    timestamp: { generator: 'timestamp', from: '2024-01-01', to: '2025-12-31' },
  };
  const binds = (s.binds ?? []).map((b) => ({ name: b.name, ...(of[String(b.type)] ?? { generator: 'text' }) }));
  return { ...s, binds: binds.length ? binds : undefined };
}

function Parameters(props: {
  binds: Bind[];
  path: string;
  plain: boolean;
  earlier: string[];
  values: Record<string, (string | null)[]>;
  places: Map<string, Place>;
  faults: TrialFault[];
  onChange: (binds: Bind[]) => void;
}) {
  const { binds } = props;
  const may = useHasRole('operator');
  const samples = useQuery({
    queryKey: ['samples', JSON.stringify(binds)],
    enabled: may && !props.plain && binds.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: 3, // a plugin is compiled when it is first asked
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // Typing is not interrupted: the samples are of the text after a pause.
      await new Promise((r) => setTimeout(r, 300));
      if (signal.aborted) throw new DOMException('', 'AbortError');
      return api.post('/api/statements/samples', { body: { binds: binds }, signal });
    },
  });
  if (binds.length === 0) return null;
  return (
    <div className="binds" role="group" aria-label="Parameters">
      {binds.map((b, i) => (
        <BindRow
          key={b.name}
          bind={b}
          path={`${props.path}.binds[${i}]`}
          plain={props.plain}
          earlier={props.earlier}
          sample={samples.data?.samples.find((x) => x.name === b.name)}
          values={props.values[b.name]}
          place={props.places.get(b.name)}
          fault={props.faults.find((f) => f.parameter === b.name)}
          onChange={(next) => props.onChange(binds.with(i, next))}
        />
      ))}
      {!props.plain && samples.error && (
        <span className="muted note">
          Samples could not be generated: {asProblem(samples.error).message} <Link href="/plugins">Plugins</Link>
        </span>
      )}
    </div>
  );
}
