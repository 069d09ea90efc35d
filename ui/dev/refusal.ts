import type { FieldError } from '../src/api/types';

/** What the mock server answers in place of what was asked for. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly hint = '',
    readonly errors: FieldError[] = [],
  ) {
    super(detail);
  }
}
