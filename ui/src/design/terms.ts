/** glossary has the sentences of docs/glossary.md that the page shows as hints; a test compares them. */
export const glossary = {
  account: 'scheduled = started + dropped; started = succeeded + failed = recorded.',
  adapter: 'A plugin that knows one table type of one database: how a table is made, read and addressed in SQL.',
  'closed loop': 'A fixed number of connections; each sends its next operation when the last one has ended.',
  generator: 'Loadstone itself as the source of load: its processes, their CPU and their connections.',
  guardrail: 'A limit that stops a run while it is live.',
  latency: 'The time from when an operation was due until it ended. In a closed loop it equals the service time.',
  measurement: 'The part of a run that figures are made of, after the warm-up.',
  node: 'A process that carries run workers: the server itself, or `loadstone worker` on another machine.',
  'open loop': 'A schedule of operations per second, whatever the table answers.',
  preflight: 'The checks before a run: rights, tables, parameters, and the exact list of statements.',
  rule: 'A continuous query of a template that stops its run or calls a webhook.',
  'run worker': 'The part of a run on one node.',
  'service time': 'The time from when an operation was sent until it ended.',
  threshold: 'A condition on the exact figures, evaluated after the run.',
  verdict: '`VALID`, or `DEGRADED` with causes: whether the figures describe the target.',
  'warm-up': 'Load before the measurement. Its operations are recorded, and in no latency.',
  workload: 'A plugin that decides which operations a run issues.',
} as const;

const hint = (name: keyof typeof glossary): string => glossary[name].replaceAll('`', '');

/** terms explain each technical term of the page in one or two sentences. */
export const terms = {
  throughput: 'Completed operations per second, over all connections.',
  p50: 'Half of the operations were at least this fast.',
  p95: '95 of 100 operations were at least this fast.',
  p99: '99 of 100 operations were at least this fast.',
  percentiles: 'P95 of 10 ms means that 95 of 100 operations took 10 ms or less.',
  errors: 'Operations that the database rejected or that timed out. The rate is their share of all operations.',
  drain:
    'A run that stops starts no new operations. Operations in flight get this long to finish. Loadstone then ' +
    'cancels them on the server, and they count as failed.',
  retries:
    'Maximum retries after a serialization failure or a deadlock. A transaction is retried as a whole. The ' +
    'operation counts once, and its latency includes every attempt.',
  generator: `${hint('generator')} The verdict is ${hint('verdict')}`,
  warmup: hint('warm-up'),
  measurement: hint('measurement'),
  adapter: hint('adapter'),
  workload: hint('workload'),
  connection: 'A saved address of a database with its user and password. The password is encrypted and never shown.',
  concurrency: `Closed loop. ${hint('closed loop')}`,
  qps: `Open loop. ${hint('open loop')}`,
  findMax:
    'Raises the load in steps until the table no longer keeps up, narrows the limit down between the last good ' +
    'and the first bad step, and confirms the answer.',
  slo: 'The highest latency that you accept. Without it, each step is compared with the first step.',
  stability: 'How far the P95 of the slowest run worker may rise above the P95 of the first step.',
  arrival: 'Constant: even gaps. Poisson: gaps of independent users. Workload: the delays of the workload.',
  inFlightLimit: 'Maximum scheduled operations in flight. Operations beyond this limit are dropped and counted.',
  feed: 'This workload replays the operations of a recorded run or of a file.',
  stages: 'Consecutive ramps and steps of the load. Together they form the measurement.',
  fromDue: `${hint('latency')} P95 of service uses the service time: ${hint('service time').toLowerCase()}`,
  split:
    'Mean latency by part: delay of the generator, wait for a free connection, round trip to the database, and ' +
    'decoding.',
  inFlight: 'Operations in progress, and those still waiting for a connection.',
  pool: 'Connections that execute the scheduled operations. An operation waits if no connection is free.',
  think: 'The pause of a connection between two operations.',
  seed: 'The same seed gives the same sequence of operations.',
  scaling: 'The number of run workers that share the connections.',
  capacity: 'Maximum connections of one run worker.',
  guardrails:
    `${hint('guardrail')} The limit must be exceeded for 5 seconds, or for the time you set. Latency and errors ` +
    'are those of the slowest run worker after the warm-up.',
  rules: hint('rule'),
  thresholds: `${hint('threshold')} Example: p95_ms < 50. A failed threshold fails the run.`,
  workerCurve: 'All workers share one axis that starts at zero, so that their curves can be compared.',
  tags: 'Names and values from the template. Click one to list all runs that have it.',
  runWorker: hint('run worker'),
  node: hint('node'),
  roundTrip: 'Duration of the last heartbeat from the server to the node and back.',
  startLate: 'Delay between the planned start and the load. Below it: the maximum error of the clock of the node.',
  clockOffset: 'Difference between the clock of the node and the clock of the server, measured with each heartbeat.',
  heatmap: 'Each column is a second, each row a range of latencies. Darker cells contain more operations.',
  accounting: `Every operation must be accounted for: ${hint('account')}`,
  dropped: 'Scheduled operations that never started: too many were in flight, or the load stopped first.',
  preflight: `${hint('preflight')} Trial writes are rolled back. On a production connection they wait for the start.`,
  prepareLoad: 'The database generates rows faster. Rows of the workload are the same in every database.',
  prepare: 'Creates the table and fills it with sample rows before the load starts.',
  artifact: 'A Parquet file with one row per execution.',
  lag: 'Age of the oldest change that the table does not contain yet, and its target. An up-to-date table has no lag.',
  refreshMode:
    'Full replaces all rows; incremental replaces the rows of changed runs or days. The history shows which one a ' +
    'refresh used, and why.',
  partitions:
    'Number of parts of a refresh, each for any worker. Readers see all parts at once. Leave empty to let ' +
    'Loadstone choose.',
} as const;
