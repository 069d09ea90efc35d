import { useCallback, useEffect, useRef, useState } from 'react';
import { asProblem, Problem } from '../api/client';
import type { FieldError } from '../api/types';
import { queryRange, type Result, type Stats } from './promqlClient';
import type { RunResult } from './model';
import { errorAt } from './promql';
import type { QueryPart } from './times';

/** maxConcurrent limits the page's queries; a browser has six connections to a server. */
const maxConcurrent = 4;

export interface Outcome {
  /** The query as the user wrote it. */
  q: string;
  step: number;
  /** Length of the shown time, in seconds. */
  seconds: number;
  zero: number;
  answers: RunResult[];
  stats: Stats[];
  warnings: string[];
  problem?: Problem;
  errors: FieldError[];
  /** The result is incomplete. */
  partial: boolean;
  tookMs: number;
}

export interface Progress {
  since: number;
  done: number;
  of: number;
}

interface Question {
  q: string;
  parts: QueryPart[];
  step: number;
  seconds: number;
  name: (run: string) => string;
}

/** useExploreResult runs queries, shows partial results, and cancels the previous query. */
export function useExploreResult() {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const abort = useRef<AbortController | null>(null);

  const cancel = useCallback(() => abort.current?.abort(), []);
  useEffect(() => cancel, [cancel]);

  const run = useCallback(async (question: Question) => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const since = Date.now();
    const { parts } = question;
    const done = parts.map(() => ({ done: 0, of: 0 }));
    const results: (Result | undefined)[] = parts.map(() => undefined);
    const warnings = new Set<string>();
    const reportProgress = () => {
      const sum = (of: 'done' | 'of') => done.reduce((n, d) => n + d[of], 0);
      if (abort.current === controller) setProgress({ since, done: sum('done'), of: sum('of') });
    };
    const showResult = (partial: boolean, problem?: Problem, errors: FieldError[] = []) => {
      if (abort.current !== controller) return;
      setOutcome({
        q: question.q,
        step: question.step,
        seconds: question.seconds,
        zero: parts[0]?.start ?? 0,
        answers: parts.flatMap((p, i) =>
          results[i]
            ? [{ result: results[i], zero: p.start, run: p.run, base: p.base, name: question.name(p.run) }]
            : [],
        ),
        stats: results.flatMap((r) => r?.stats ?? []),
        warnings: [...warnings],
        problem,
        errors,
        partial,
        tookMs: Date.now() - since,
      });
    };
    reportProgress();
    let next = 0;
    const worker = async () => {
      for (let i = next++; i < parts.length; i = next++) {
        const part = parts[i]!;
        try {
          results[i] = await queryRange(
            part,
            {
              progress: (n, of) => {
                done[i] = { done: n, of };
                reportProgress();
              },
              partial: (r) => {
                results[i] = r;
                showResult(true);
              },
              warning: (text) => warnings.add(text),
            },
            controller.signal,
          );
        } catch (err) {
          if (controller.signal.aborted) throw err;
          throw new Failure(asProblem(err), part);
        }
        if (next < parts.length) showResult(true);
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(maxConcurrent, parts.length) }, worker));
      showResult(false);
    } catch (err) {
      if (err instanceof Failure) {
        const errors =
          err.problem.code === 'bad_data'
            ? [errorAt(err.problem.message, err.part.query, question.q, err.part.before)]
            : [];
        showResult(true, err.problem, errors);
      } else showResult(true, new Problem(0, 'cancelled', 'The query was cancelled.'));
      controller.abort();
    }
    if (abort.current === controller) {
      abort.current = null;
      setProgress(null);
    }
  }, []);

  return { outcome, progress, run, cancel };
}

class Failure extends Error {
  readonly problem: Problem;
  readonly part: QueryPart;
  constructor(problem: Problem, part: QueryPart) {
    super(problem.message);
    this.problem = problem;
    this.part = part;
  }
}
