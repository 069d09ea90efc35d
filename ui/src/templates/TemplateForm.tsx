import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { safeText } from '../api/safeText';
import { useConnections, usePlugins } from '../api/queries';
import type { GuardrailName } from '../api/types';
import { Segments } from '../design/Controls';
import { duration } from '../design/format';
import { terms } from '../design/terms';
import { Field, ListField, More, NumberField, SelectField, TagsField, TextField, useForm } from './fields';
import { FeedField } from './FeedField';
import { FindMaxFields, moreFindMax, MoreFindMaxFields } from './FindMaxFields';
import { AddTarget, MatrixFields } from './MatrixFields';
import { ParamsForm } from './ParamsForm';
import { findPlugin, pluginOptions } from '../plugins/refs';
import { RulesField } from './RulesField';
import { StagesField } from './StagesField';
import { feedHasStatements, tablesOf, withTableType, withWorkload } from './resets';
import { get, type Schema, shownAs } from './schema';
import { totalSeconds } from './stages';

function Section(props: { title: string; note: ReactNode; children: ReactNode }) {
  return (
    <section className="panel form-section">
      <div className="form-about">
        <h2>{props.title}</h2>
        <p className="muted">{props.note}</p>
      </div>
      <div className="stack">{props.children}</div>
    </section>
  );
}

/** TemplateForm edits a template; each control sets one path of the document. */
export function TemplateForm({ isNew }: { isNew: boolean }) {
  return (
    <div className="stack">
      <Section title="Name" note="Shown in lists and reports.">
        <TextField path="name" label="Name" placeholder="point lookups and writes" autoFocus={isNew} />
        <More paths={['description', 'tags']}>
          <TextField
            path="description"
            label="Description"
            optional
            long
            placeholder="Which question does this run answer?"
          />
          <TagsField path="tags" label="Tags" add="Add tag" help="Shown on the run and usable as a filter." />
        </More>
      </Section>
      <Targets />
      <WorkloadSection />
      <LoadSection />
      <Section title="Verdict" note="Conditions that the result must meet, and limits that stop the run.">
        <ListField
          path="thresholds"
          label="Thresholds"
          tip={terms.thresholds}
          placeholder="p95_ms < 50"
          add="Add threshold"
          help="For example p95_ms < 50, error_rate < 0.001, qps > 5000."
        />
        <More paths={[...guardrails.map((g) => `guardrails.${g}`), 'rules']}>
          <div className="field">
            <div className="label">Guardrails</div>
            <div className="form-grid four">
              <Guard name="max_cpu_percent" label="Generator CPU" />
              <Guard name="max_memory_percent" label="Generator memory" />
              <Guard name="max_host_cpu_percent" label="Host CPU" />
              <Guard name="max_host_memory_percent" label="Host memory" />
              <Guard name="max_error_rate_pct" label="Error rate" />
              <Guard name="max_p95_ms" label="P95" unit="ms" />
              <Guard name="max_p99_ms" label="P99" unit="ms" />
              <NumberField path="guardrails.hold_seconds" label="Held for" unit="s" placeholder="5" />
            </div>
            <div className="help">{terms.guardrails} Leave empty for no limit.</div>
          </div>
          <RulesField />
        </More>
      </Section>
    </div>
  );
}

const guardrails = [
  'max_cpu_percent',
  'max_memory_percent',
  'max_host_cpu_percent',
  'max_host_memory_percent',
  'max_error_rate_pct',
  'max_p95_ms',
  'max_p99_ms',
  'hold_seconds',
];

function Guard({ name, label, unit = '%' }: { name: GuardrailName; label: string; unit?: string }) {
  return <NumberField path={`guardrails.${name}`} label={label} unit={unit} placeholder="none" />;
}

function Targets() {
  const { config } = useForm();
  if (get(config, 'matrix') === undefined || get(config, 'matrix') === null) return <TargetSection />;
  return (
    <Section
      title="Targets"
      note="The same workload with the same seed, on one target after another. The first target is the baseline."
    >
      <MatrixFields />
    </Section>
  );
}

function TargetSection() {
  const { config, set, change } = useForm();
  const connections = useConnections();
  const plugins = usePlugins();
  const ref = get(config, 'target.connection');
  const inline = typeof ref === 'object' && ref !== null;
  const prepare = get(config, 'target.prepare') as { rows?: number } | null | undefined;
  const { first, several, none, sized } = tablesOf(plugins.data, shownAs(get(config, 'workload.plugin')));
  const adapters = pluginOptions(plugins.data, 'adapter');
  const adapter = findPlugin(plugins.data, 'adapter', shownAs(get(config, 'target.adapter')) || 'postgres');
  const own = adapter?.manifest.parameters as Schema | undefined;
  const loads = Boolean(adapter?.manifest.supports?.generates_rows);
  return (
    <Section title="Target" note="The database and the table under load.">
      <div className="form-grid">
        <Field
          path={inline ? 'target.connection.driver' : 'target.connection'}
          label="Connection"
          tip={terms.connection}
          help={<Link href="/connections?new=postgres">New connection</Link>}
        >
          {(a) => (
            <select
              {...a}
              className="input"
              value={inline ? '\u0000inline' : shownAs(ref)}
              onChange={(e) =>
                set(
                  'target.connection',
                  e.target.value === '\u0000inline' ? { driver: 'postgres', dsn: '' } : e.target.value,
                )
              }
            >
              {!inline && !(connections.data ?? []).some((c) => c.name === ref) && (
                <option value={shownAs(ref)}>{safeText(shownAs(ref)) || 'Choose…'}</option>
              )}
              {(connections.data ?? []).map((c) => (
                <option key={c.connection_id} value={c.name}>
                  {c.name}
                  {c.builtin ? ' (built in)' : ''}
                </option>
              ))}
              <option value={'\u0000inline'}>Address in this template…</option>
            </select>
          )}
        </Field>
        <SelectField
          path="target.adapter"
          label="Table type"
          tip={terms.adapter}
          onPick={(v) => change('target.adapter', (c) => withTableType(c, v))}
          help={adapter?.manifest.supports?.read_only ? 'Read-only under load.' : undefined}
          options={adapters.length ? adapters : [{ value: 'postgres', label: 'postgres' }]}
        />
        <TextField
          path="target.table_name"
          optional={several || none}
          label={several ? 'Table prefix' : 'Table'}
          mono
          placeholder={several ? 'nothing' : none ? 'none' : 'orders'}
          help={
            none
              ? 'The value of {table} in the statements. Leave empty if no statement uses it.'
              : several
                ? `Prefix ending in _ or a dot: bench_ gives bench_${first}, tpc. the schema tpc. Empty: ${first}.`
                : 'With its schema if needed: sales.orders.'
          }
        />
      </div>
      {inline && (
        <TextField
          path="target.connection.dsn"
          label="Address (DSN)"
          mono
          placeholder="postgres://user:password@host:5432/database"
          help="Loadstone encrypts the password when you save the template."
        />
      )}
      {none && !prepare ? (
        <div className="field">
          <div className="help">This workload has no sample tables. All tables in its statements must exist.</div>
        </div>
      ) : (
        <div className="field">
          <div className="label">Sample data</div>
          <Segments
            label="Sample data"
            value={prepare ? 'make' : 'none'}
            options={[
              { value: 'make', label: 'Create a sample table' },
              { value: 'none', label: 'Use an existing table' },
            ]}
            onChange={(v) => set('target.prepare', v === 'make' ? { rows: 100_000, if_exists: 'use' } : undefined)}
          />
          <div className="help">
            {prepare ? terms.prepare : 'The table must exist. Loadstone checks it before the load and never drops it.'}
          </div>
        </div>
      )}
      {prepare && (
        <div className="form-grid">
          <NumberField
            path="target.prepare.rows"
            label="Rows"
            placeholder={sized ? 'set by the parameters' : '100000'}
            help={
              sized
                ? 'Leave empty. The parameters of this workload set the number.'
                : typeof prepare.rows === 'number'
                  ? `${prepare.rows.toLocaleString('en-US')} rows`
                  : undefined
            }
          />
        </div>
      )}
      <More
        paths={[
          ...(prepare ? ['target.prepare.if_exists'] : []),
          ...(prepare && loads ? ['target.prepare.load'] : []),
          'target.allow_writes',
          ...Object.keys(own?.properties ?? {}).map((k) => `target.params.${k}`),
        ]}
      >
        <div className="form-grid">
          {prepare && (
            <SelectField
              path="target.prepare.if_exists"
              label="If the table exists"
              options={[
                { value: 'use', label: 'Use it unchanged' },
                { value: 'recreate', label: 'Drop and recreate it' },
                { value: 'fail', label: 'Fail the run' },
              ]}
            />
          )}
          {prepare && loads && (
            <SelectField
              path="target.prepare.load"
              unset="auto"
              label="Rows from"
              tip={terms.prepareLoad}
              options={[
                { value: 'auto', label: 'The database, if it can' },
                { value: 'copy', label: 'The workload' },
              ]}
            />
          )}
          <SelectField
            path="target.allow_writes"
            unset="false"
            label="Writes to existing tables"
            help="Tables that Loadstone created need no permission."
            onPick={(v) => set('target.allow_writes', v === 'true' ? true : undefined)}
            options={[
              { value: 'false', label: 'Ask before the run starts' },
              { value: 'true', label: 'Allow' },
            ]}
          />
        </div>
        {own?.properties && Object.keys(own.properties).length > 0 && (
          <ParamsForm key={adapter!.sha256} schema={own} path="target.params" />
        )}
      </More>
      <div className="row">
        <AddTarget />
      </div>
    </Section>
  );
}

/** parameters are the parameters of a schema that a run needs, its statements among them, or the others. */
function parameters(schema: Schema, needed: boolean): Schema {
  const properties = Object.entries(schema.properties ?? {}).filter(
    ([k, s]) => ((schema.required ?? []).includes(k) || s.items?.properties?.sql !== undefined) === needed,
  );
  return { ...schema, properties: Object.fromEntries(properties) };
}

/** withoutStatements drops the statements parameter when a recorded run supplies it. */
function withoutStatements(schema: Schema): Schema {
  const { statements: _, ...properties } = schema.properties ?? {};
  return { ...schema, properties };
}

function WorkloadSection() {
  const { config, change } = useForm();
  const plugins = usePlugins();
  const name = shownAs(get(config, 'workload.plugin'));
  const chosen = findPlugin(plugins.data, 'workload', name);
  const declared = chosen?.manifest.parameters as Schema | undefined;
  const schema =
    declared && chosen?.manifest.feed && feedHasStatements(config) ? withoutStatements(declared) : declared;
  return (
    <Section
      title="Workload"
      note={chosen?.manifest.description || 'The operations of the run, with their keys and values.'}
    >
      <div className="form-grid">
        <SelectField
          path="workload.plugin"
          label="Plugin"
          tip={terms.workload}
          onPick={(v) => change('workload.plugin', (c) => withWorkload(c, v, plugins.data))}
          options={pluginOptions(plugins.data, 'workload')}
          help={
            plugins.error
              ? 'The list of plugins could not be loaded. The name does not change.'
              : chosen && chosen.state !== 'enabled'
                ? `This plugin is ${chosen.state}. Runs cannot use it.`
                : undefined
          }
        />
      </div>
      {(chosen?.manifest.feed || get(config, 'workload.feed') != null) && <FeedField />}
      {schema && (
        <>
          <ParamsForm key={`${chosen!.sha256} needed`} schema={parameters(schema, true)} path="workload.params" />
          <More paths={Object.keys(parameters(schema, false).properties ?? {}).map((k) => `workload.params.${k}`)}>
            <ParamsForm key={chosen!.sha256} schema={parameters(schema, false)} path="workload.params" />
          </More>
        </>
      )}
    </Section>
  );
}

function LoadSection() {
  const { config } = useForm();
  const mode = shownAs(get(config, 'workload.load_mode')) || 'CONCURRENCY';
  const warm = Number(get(config, 'workload.warmup_seconds') ?? 0);
  const open = mode === 'QPS';
  const searches = mode === 'FIND_MAX_CONCURRENCY';
  const overRate = searches && get(config, 'find_max.unit') === 'rate';
  const paced = get(config, 'workload.arrival') === 'workload';
  const stages = config.workload.stages?.length ? config.workload.stages : null;
  const length = stages ? totalSeconds(stages) : Number(get(config, 'workload.duration_seconds') ?? 0);
  const explain = mode === 'CONCURRENCY' ? terms.concurrency : mode === 'QPS' ? terms.qps : terms.findMax;
  const durationNote =
    Number.isFinite(warm + length) && warm + length > 0
      ? `The run takes about ${duration(warm + length)} plus preparation.`
      : 'How much load, and for how long.';
  return (
    <Section title="Load" note={searches ? 'The run ends when the search has its answer.' : durationNote}>
      <div className="form-grid">
        <SelectField
          path="workload.load_mode"
          label="Load mode"
          help={explain}
          options={[
            { value: 'CONCURRENCY', label: 'Closed loop (connections)' },
            { value: 'QPS', label: 'Open loop (rate)' },
            { value: 'FIND_MAX_CONCURRENCY', label: 'Find Max (search for the limit)' },
          ]}
        />
        {open && !paced && (
          <NumberField
            path="workload.target_qps"
            label={stages ? 'Rate at the start' : 'Target rate'}
            unit="/s"
            help="Operations per second of all workers."
          />
        )}
        {(!searches || overRate) && (
          <NumberField
            path="workload.concurrent_connections"
            label={stages && !open ? 'Connections at the start' : 'Connections'}
            tip={open || overRate ? terms.pool : undefined}
            help={
              open || overRate
                ? 'They execute the scheduled operations, 1 to 20 000.'
                : 'Concurrent connections, 1 to 20 000.'
            }
          />
        )}
      </div>
      {searches && <FindMaxFields />}
      {!searches && (
        <div className="form-grid">
          {!stages && (
            <NumberField path="workload.duration_seconds" label="Duration" unit="s" tip={terms.measurement} />
          )}
          <NumberField path="workload.warmup_seconds" label="Warm-up" unit="s" tip={terms.warmup} />
        </div>
      )}
      <MoreLoad />
    </Section>
  );
}

/** MoreLoad holds what a run seldom needs to say about its load. */
function MoreLoad() {
  const { config } = useForm();
  const mode = shownAs(get(config, 'workload.load_mode')) || 'CONCURRENCY';
  const open = mode === 'QPS';
  const searches = mode === 'FIND_MAX_CONCURRENCY';
  const overRate = searches && get(config, 'find_max.unit') === 'rate';
  const staged = open ? get(config, 'workload.arrival') !== 'workload' : !searches;
  const scaling = get(config, 'scaling.mode') ?? 'FIXED';
  const paths = [
    ...(searches ? moreFindMax(overRate) : []),
    ...(searches ? ['workload.warmup_seconds'] : []),
    ...(open ? ['workload.arrival', 'workload.max_in_flight'] : []),
    ...(staged ? ['workload.stages'] : []),
    ...(open || overRate ? [] : ['workload.think_time_ms']),
    'workload.statement_timeout_ms',
    'workload.stop.drain_seconds',
    'workload.seed',
    'workload.retry.max',
    'workload.isolation_level',
    'scaling.mode',
    ...(scaling === 'FIXED' ? ['scaling.worker_count'] : []),
    ...(scaling === 'BOUNDED' ? ['scaling.min_workers', 'scaling.max_workers'] : []),
    'scaling.per_worker_capacity',
  ];
  return (
    <More paths={paths}>
      {searches && <MoreFindMaxFields />}
      {open && (
        <div className="form-grid">
          <SelectField
            path="workload.arrival"
            label="Arrivals"
            tip={terms.arrival}
            options={[
              { value: 'constant', label: 'Constant: even gaps' },
              { value: 'poisson', label: 'Poisson: independent users' },
              { value: 'workload', label: 'Workload: its own delays' },
            ]}
          />
          <NumberField
            path="workload.max_in_flight"
            label="Maximum in flight"
            tip={terms.inFlightLimit}
            placeholder="10000"
          />
        </div>
      )}
      {staged && <StagesField />}
      <div className="form-grid">
        {searches && <NumberField path="workload.warmup_seconds" label="Warm-up" unit="s" tip={terms.warmup} />}
        {!open && !overRate && (
          <NumberField path="workload.think_time_ms" label="Think time" unit="ms" tip={terms.think} />
        )}
        <NumberField
          path="workload.statement_timeout_ms"
          label="Statement timeout"
          unit="ms"
          placeholder="30000"
          help="0 means no limit."
        />
        <NumberField
          path="workload.stop.drain_seconds"
          label="Drain"
          unit="s"
          placeholder="120"
          tip={terms.drain}
          help="Empty means 120 s, and 5 s when a user stops the run."
        />
        <NumberField path="workload.seed" label="Seed" tip={terms.seed} />
        <NumberField
          path="workload.retry.max"
          label="Retries"
          placeholder="none"
          tip={terms.retries}
          help="Empty means none. Set error classes and pauses in the YAML."
        />
        <SelectField
          path="workload.isolation_level"
          label="Isolation level"
          unset="default"
          options={[
            { value: 'default', label: 'Default of the server' },
            { value: 'read committed', label: 'Read committed' },
            { value: 'repeatable read', label: 'Repeatable read' },
            { value: 'serializable', label: 'Serializable' },
          ]}
        />
        <SelectField
          path="scaling.mode"
          label="Scaling"
          tip={terms.scaling}
          options={[
            { value: 'FIXED', label: 'Fixed' },
            { value: 'BOUNDED', label: 'Bounded' },
            { value: 'AUTO', label: 'Automatic' },
          ]}
        />
        {scaling === 'FIXED' && <NumberField path="scaling.worker_count" label="Workers" tip={terms.runWorker} />}
        {scaling === 'BOUNDED' && (
          <>
            <NumberField path="scaling.min_workers" label="Minimum workers" placeholder="1" tip={terms.runWorker} />
            <NumberField path="scaling.max_workers" label="Maximum workers" />
          </>
        )}
        <NumberField
          path="scaling.per_worker_capacity"
          label="Capacity of a worker"
          unit="conn."
          tip={terms.capacity}
        />
      </div>
    </More>
  );
}
