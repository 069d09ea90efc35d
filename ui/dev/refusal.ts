import type { FieldError } from '../src/api/types';

/** Refusal is an error response of the mock server. */
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
