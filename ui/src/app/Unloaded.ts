/** A page whose file could not be fetched because the server is away. */
export class Unloaded extends Error {
  /** Has the file fetched anew when the page is next shown. */
  readonly again: () => void;
  constructor(again: () => void, cause: unknown) {
    super('The server does not answer.', { cause });
    this.again = again;
  }
}
