// Templates by the question they answer, from the repository's examples.
import tableTypes from '../../../examples/table-types-matrix.yaml?raw';
import findMax from '../../../examples/find-max.yaml?raw';
import firstRun from '../../../examples/first-run.yaml?raw';
import indexed from '../../../examples/index.yaml?raw';
import lookups from '../../../examples/lookups.yaml?raw';
import openLoop from '../../../examples/open-loop.yaml?raw';
import rules from '../../../examples/rules.yaml?raw';
import sql from '../../../examples/sql.yaml?raw';
import tpcb from '../../../examples/tpcb.yaml?raw';
import tpcc from '../../../examples/tpcc.yaml?raw';
import ycsb from '../../../examples/ycsb-a.yaml?raw';

export interface Question {
  id: string;
  question: string;
  answer: string;
  source: string;
  /** The workload brings its own tables, so that it takes over only the connection of an earlier run. */
  ownTables?: true;
}

export const questions: Question[] = [
  {
    id: 'lookups',
    question: 'How many lookups per second?',
    answer: 'Reads rows by key and finds the highest rate with a P95 below 10 ms.',
    source: lookups,
  },
  {
    id: 'mix',
    question: 'How does it perform with reads and writes?',
    answer: 'Lookups, scans, inserts and updates over 16 connections for 20 seconds.',
    source: firstRun,
  },
  {
    id: 'rate',
    question: 'What is the latency at my rate?',
    answer: 'Open loop: operations arrive on a schedule, as users do, even if earlier ones have not ended.',
    source: openLoop,
  },
  {
    id: 'limit',
    question: 'Where is the limit?',
    answer: 'Adds connections in steps until throughput stops growing, then confirms the answer.',
    source: findMax,
  },
  {
    id: 'rules',
    question: 'When does it become too slow?',
    answer: 'Raises the rate until a rule stops the run: slow seconds, failures or slow updates.',
    source: rules,
  },
  {
    id: 'index',
    question: 'What does an index gain?',
    answer: 'Queries by a column without an index. Run it, create the index, run it again and compare.',
    source: indexed,
  },
  {
    id: 'hybrid',
    question: 'Hybrid or standard table?',
    answer: 'The same workload on Postgres and on the table types of Snowflake, compared. Starts on a stand-in.',
    source: tableTypes,
    ownTables: true,
  },
  {
    id: 'sql',
    question: 'How do my own statements perform?',
    answer: 'Your own SQL with weights. Generators supply the parameters.',
    source: sql,
  },
  {
    id: 'tpcc',
    question: 'TPC-C?',
    answer: 'Nine tables, five transactions, and the rate of new orders.',
    source: tpcc,
    ownTables: true,
  },
  {
    id: 'pgbench',
    question: 'How does it compare with pgbench?',
    answer: 'The default script of pgbench on its own tables.',
    source: tpcb,
    ownTables: true,
  },
  {
    id: 'ycsb',
    question: 'YCSB?',
    answer: 'Workload A: half reads, half updates, with some hot records.',
    source: ycsb,
    ownTables: true,
  },
];
