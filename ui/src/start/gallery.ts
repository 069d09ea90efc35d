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
}

export const questions: Question[] = [
  {
    id: 'lookups',
    question: 'How many lookups per second?',
    answer: 'Reads rows by their key and searches for the rate at which the P95 leaves 10 ms.',
    source: lookups,
  },
  {
    id: 'mix',
    question: 'How does it do under a mix of reads and writes?',
    answer: 'Lookups, scans, inserts and updates over 16 connections, for 20 seconds.',
    source: firstRun,
  },
  {
    id: 'rate',
    question: 'What is the latency at my rate?',
    answer: 'Operations arrive on a schedule, as users do, whether or not the last one has ended.',
    source: openLoop,
  },
  {
    id: 'limit',
    question: 'Where is the limit?',
    answer: 'Adds connections in steps until throughput stops growing, and repeats the answer.',
    source: findMax,
  },
  {
    id: 'rules',
    question: 'When does it become too slow?',
    answer: 'A rate that climbs, and rules of the run’s own that stop it: slow seconds, failures, slow updates.',
    source: rules,
  },
  {
    id: 'index',
    question: 'What does an index bring?',
    answer: 'Your query by a column without an index: run it, make the index, run it again, compare the two.',
    source: indexed,
  },
  {
    id: 'hybrid',
    question: 'Hybrid or standard table?',
    answer:
      'One workload on Snowflake’s table types and Postgres, one after another, compared. Begins with a stand-in.',
    source: tableTypes,
  },
  {
    id: 'sql',
    question: 'How do my own statements do?',
    answer: 'SQL of your own with weights, its parameters made by generators.',
    source: sql,
  },
  {
    id: 'tpcc',
    question: 'TPC-C?',
    answer: 'Nine tables, five transactions, and the rate of new orders.',
    source: tpcc,
  },
  {
    id: 'pgbench',
    question: 'What would pgbench say?',
    answer: 'The default script of pgbench, on its own tables.',
    source: tpcb,
  },
  { id: 'ycsb', question: 'YCSB?', answer: 'Workload A: half reads, half updates, some records hot.', source: ycsb },
];
