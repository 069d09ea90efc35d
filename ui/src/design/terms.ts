/** terms explain each technical term of the page in one sentence. */
export const terms = {
  throughput: 'Operations that ended per second, over all connections.',
  p50: 'Half of the operations were at least this fast.',
  p95: '95 of 100 operations were at least this fast.',
  p99: '99 of 100 operations were at least this fast.',
  percentiles: 'P95 of 10 ms means that 95 of 100 operations took 10 ms or less.',
  errors:
    'Operations that the database refused or that did not end in time; the rate is their share of all operations.',
  drain:
    'When a run stops it takes no new operation. Those in flight get this long to end; then they are ' +
    'cancelled on the server and count as failed.',
  retries:
    'How often an operation that lost to others (serialization failure, deadlock) is repeated, a ' +
    'transaction whole. It counts once; its latency includes every try.',
  generator:
    'Whether Loadstone itself was fast enough for the figures to be the table’s: DEGRADED when its own ' +
    'CPU, pauses or a lost worker got in the way.',
  warmup: 'Load that fills caches before the measurement; it is recorded, and left out of the figures.',
  measurement: 'The part of the run that counts.',
  adapter: 'The plugin that describes a table type: how it is created and what SQL each kind of operation uses.',
  workload: 'The plugin that decides which operations are issued, with which keys and values.',
  connection: 'A saved database address; its password is encrypted and never shown again.',
  concurrency: 'Closed loop: each connection issues its next operation when the last one has ended.',
  qps: 'Open loop: operations are due on a schedule, whether or not earlier ones have ended.',
  findMax:
    'Raises the load in steps until the table takes no more, looks closer between the last good step and ' +
    'the first bad one, and repeats the answer before it believes it.',
  slo: 'Limits of your own for the latency, in place of the comparison with the first step.',
  baseline: 'How far the P95 of the slowest run worker may rise above that of the first step.',
  arrival: 'Constant: even gaps. Poisson: gaps as of independent users. Workload: its own delays are the gaps.',
  inFlightLimit: 'Operations that may be due and not finished at once; what is due beyond it is dropped and counted.',
  feed: 'This workload makes no operations up: it issues those of a run that was recorded, or of a file, again.',
  stages: 'Ramps and steps that follow each other and make up the measurement.',
  fromDue:
    'The time from when an operation was due until it ended, waiting included. P95 of service counts from ' +
    'when it was begun.',
  split:
    'The mean latency, in parts: the generator’s own lateness, the wait for a free connection, the round ' +
    'trip to the database, and decoding its answer.',
  inFlight: 'Operations that are due and not finished, and those of them that no connection was free for.',
  pool: 'Connections that execute what is due; an operation waits when none is free.',
  think: 'The pause of a connection between two operations.',
  seed: 'The same seed gives the same sequence of operations.',
  scaling: 'How many run workers share the connections.',
  capacity: 'The most connections one run worker may hold.',
  guardrails:
    'A limit that is passed for 5 seconds, or as long as you say, stops the run. Without any, none ' +
    'applies. Latency and errors are those of the slowest run worker, after the warm-up.',
  rules:
    'Continuous queries over what the run reports, which begin and end with it. A row stops the run and is its ' +
    'reason, or is posted to an address.',
  thresholds:
    'Conditions judged on the exact figures after the run, such as p95_ms < 50; one that fails fails the run.',
  workerCurve: 'All workers share one axis from zero, so that their curves can be compared.',
  tags: 'Names and values that the template gives its runs; click one for all runs that carry it.',
  runWorker: 'One part of the load generator; the connections of a run are spread over its run workers.',
  node: 'A Loadstone process that hosts run workers.',
  roundTrip: 'How long the last heartbeat took from the server to the node and back.',
  startLate:
    'How long after the instant that START named for all its load began, and below it how far its times may be off ' +
    "from the server's clock, either way.",
  clockOffset: "How far the node's clock is ahead of the server's, measured with each heartbeat.",
  heatmap:
    'Each column is one second, each row a range of latencies; the darker the cell, the more operations fell into it.',
  accounting:
    'Every operation that was scheduled must turn up as started or dropped, and every one started as a record.',
  dropped: 'Operations that were due and never started: too many were unfinished, or the load stopped first.',
  preflight:
    'What the run would do, found out before its load: the checks, and every statement it can execute. What it would ' +
    'write, where it may, is tried and rolled back; on production only when it starts.',
  prepareLoad:
    'A database that makes the rows itself is ready sooner; copied rows are the same ones in every database.',
  prepare: 'Makes the table and fills it with sample rows before the load starts.',
  artifact: 'A Parquet file with one row for each execution.',
  lag:
    'How old the oldest change is that the table does not have yet, against how old it may become. A table whose ' +
    'sources have not changed has no lag.',
  refreshMode:
    'All rows, or only those of runs that have changed since. Left to Loadstone, it replaces as little as gives the ' +
    'same rows, and says in the history why.',
  partitions:
    'Into how many parts a refresh divides the runs or days that it makes anew, each for any worker; readers see ' +
    'all of them at once. Left empty, it is as many as are worth it.',
} as const;
