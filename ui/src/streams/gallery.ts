// Example queries from the repository's test files, each with its own sink.
import executions from '../../../examples/streams/executions.slt?raw';
import heartbeats from '../../../examples/streams/heartbeats.slt?raw';
import overload from '../../../examples/streams/overload.slt?raw';
import rules from '../../../examples/streams/rules.slt?raw';
import throughput from '../../../examples/streams/throughput.slt?raw';

interface GalleryQuery {
  id: string;
  title: string;
  what: string;
  text: string;
}

/** queriesOf extracts the queries of a test file that write to a sink. */
export function queriesOf(slt: string, sink: string): string[] {
  return slt
    .split(/\n{2,}/)
    .map((r) => r.replace(/^(?:#[^\n]*\n)+/, ''))
    .filter((r) => /^query\b/.test(r))
    .map((r) => r.slice(r.indexOf('\n') + 1).split(/\n----/)[0]!)
    .filter((r) => new RegExp(`INTO\\s+${sink}\\b`).test(r))
    .map((r) => r.replace(/;?\s*$/, ''));
}

/** sinkOf extracts the CREATE SINK statement of a test file. */
const sinkOf = (slt: string, sink: string): string =>
  new RegExp(`CREATE SINK ${sink}\\b[^;]*?(?=;|\\n\\n)`).exec(slt)![0].replace(/\s+$/, '');

/** group is two statements: the sink, and the query under a name. */
function group(create: string, name: string, query: string): string {
  const [, remarks, select] = /^((?:--[^\n]*\n)*)([\s\S]*)$/.exec(query)!;
  return `${remarks}${create};\nCREATE QUERY ${name} AS\n${select};\n`;
}

/** stopping is a rule with its own sink, so that several can run. */
const stopping = (sink: string, name: string, query: string): string =>
  group(`CREATE SINK ${sink} TYPE GUARDRAIL`, name, query.replace(/INTO stop_run$/, `INTO ${sink}`));
const webhook = "CREATE SINK page_me TYPE WEBHOOK SET('https://example.com/hook' AS SINK.URL)";

const table = "CREATE SINK my_table TYPE POSTGRES SET('playground' AS SINK.CONNECTION, 'worker_seconds' AS SINK.TABLE)";

export const gallery: GalleryQuery[] = [
  {
    id: 'slow',
    title: 'Stop a run that is too slow',
    what: 'If its P99 stays above 200 ms for 10 s. The run shows the row as its reason.',
    text: stopping('stop_run', 'too_slow', queriesOf(rules, 'stop_run')[0]!),
  },
  {
    id: 'queues',
    title: 'Stop it only while the warehouse queues',
    what: 'Joins figures of run workers and of the warehouse in windows of ten seconds.',
    text: stopping('stop_queued', 'slow_and_queued', queriesOf(rules, 'stop_run')[1]!),
  },
  {
    id: 'checkout',
    title: 'Stop a run whose checkout is slow',
    what: 'If the P99 of CHECKOUT exceeds 200 ms in each of ten seconds, computed from every execution.',
    text: stopping('stop_checkout', 'slow_checkout', queriesOf(executions, 'stop_run')[0]!),
  },
  {
    id: 'errors',
    title: 'Errors of each class, second by second',
    what: 'Failed executions of each run, printed here.',
    text: group(sinkOf(executions, 'errors'), 'errors_by_class', queriesOf(executions, 'errors')[0]!),
  },
  {
    id: 'slowest',
    title: 'The slowest executions',
    what: 'Every execution longer than a second, with its statement and error.',
    text: group(sinkOf(executions, 'slowest'), 'slowest_executions', queriesOf(executions, 'slowest')[0]!),
  },
  {
    id: 'node',
    title: 'Alert on a busy node',
    what: 'Calls a webhook when the CPU of a node stays above 90 % for a minute.',
    text: group(webhook, 'busy_node', queriesOf(rules, 'page_me')[0]!),
  },
  {
    id: 'seconds',
    title: 'Figures of each run, every five seconds',
    what: 'Operations and P99 of all runs, printed here.',
    text: group(sinkOf(rules, 'seconds'), 'every_five_seconds', queriesOf(rules, 'seconds')[0]!),
  },
  {
    id: 'table',
    title: 'One row per second of every worker, into my table',
    what: 'Writes to your own Postgres. Create the table first, and set your connection.',
    text: group(table, 'worker_seconds', queriesOf(rules, 'my_table')[0]!),
  },
  {
    id: 'throughput',
    title: 'Throughput of the whole cluster',
    what: 'Sum over all run workers, every five seconds.',
    text: group(sinkOf(throughput, 'dashboard_sink'), 'throughput', queriesOf(throughput, 'dashboard_sink')[0]!),
  },
  {
    id: 'heartbeats',
    title: 'Missing heartbeats',
    what: 'Intervals above the mean of the last minute plus three standard deviations.',
    text: group(
      sinkOf(heartbeats, 'failure_alert_sink'),
      'silent_workers',
      queriesOf(heartbeats, 'failure_alert_sink')[0]!,
    ),
  },
  {
    id: 'overload',
    title: 'Busy CPUs',
    what: 'Run workers above 90 % for a minute, on average, into a file.',
    text: group(
      sinkOf(overload, 'optimizer_trigger_sink'),
      'overload',
      queriesOf(overload, 'optimizer_trigger_sink')[0]!,
    ),
  },
];
