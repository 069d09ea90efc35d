import { useCallback, useEffect, useRef, useState } from 'react';
import { asProblem, Problem } from '../api/client';
import type { FieldError } from '../api/types';
import { ask, type Result, type Stats } from './ask';
import type { Answered } from './model';
import { errorAt } from './promql';
import type { Part } from './times';

/** How many queries of the page are under way at once; a browser has six connections to a server. */
const atOnce = 4;

export interface Outcome {
  /** What was asked, as it was written. */
  q: string;
  step: number;
  /** The time that is shown, in seconds. */
  seconds: number;
  zero: number;
  answers: Answered[];
  stats: Stats[];
  warnings: string[];
  problem?: Problem;
  errors: FieldError[];
  /** What is there is not all. */
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
  parts: Part[];
  step: number;
  seconds: number;
  name: (run: string) => string;
}

/** Asks, shows what is there as it comes in, and ends what is under way when something else is asked. */
export function useAnswers() {
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const abort = useRef<AbortController | null>(null);

  const cancel = useCallback(() => abort.current?.abort(), []);
  useEffect(() => cancel, [cancel]);

  const run = useCallback(async (question: Question) => {
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    const since = Date.now();
    const { parts } = question;
    const done = parts.map(() => ({ done: 0, of: 0 }));
    const results: (Result | undefined)[] = parts.map(() => undefined);
    const warnings = new Set<string>();
    const said = () => {
      const sum = (of: 'done' | 'of') => done.reduce((n, d) => n + d[of], 0);
      if (abort.current === mine) setProgress({ since, done: sum('done'), of: sum('of') });
    };
    const shown = (partial: boolean, problem?: Problem, errors: FieldError[] = []) => {
      if (abort.current !== mine) return;
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
    said();
    let next = 0;
    const worker = async () => {
      for (let i = next++; i < parts.length; i = next++) {
        const part = parts[i]!;
        try {
          results[i] = await ask(
            part,
            {
              progress: (n, of) => {
                done[i] = { done: n, of };
                said();
              },
              partial: (r) => {
                results[i] = r;
                shown(true);
              },
              warning: (text) => warnings.add(text),
            },
            mine.signal,
          );
        } catch (err) {
          if (mine.signal.aborted) throw err;
          throw new Failure(asProblem(err), part);
        }
        if (next < parts.length) shown(true);
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(atOnce, parts.length) }, worker));
      shown(false);
    } catch (err) {
      if (err instanceof Failure) {
        const errors =
          err.problem.code === 'bad_data'
            ? [errorAt(err.problem.message, err.part.query, question.q, err.part.before)]
            : [];
        shown(true, err.problem, errors);
      } else shown(true, new Problem(0, 'cancelled', 'The query was cancelled.'));
      mine.abort();
    }
    if (abort.current === mine) {
      abort.current = null;
      setProgress(null);
    }
  }, []);

  return { outcome, progress, run, cancel };
}

class Failure extends Error {
  readonly problem: Problem;
  readonly part: Part;
  constructor(problem: Problem, part: Part) {
    super(problem.message);
    this.problem = problem;
    this.part = part;
  }
}
