/** PageLoadError is a page chunk that could not be fetched because the server is down. */
export class PageLoadError extends Error {
  /** Fetches the chunk again when the page is next shown. */
  readonly again: () => void;
  constructor(again: () => void, cause: unknown) {
    super('The server does not answer.', { cause });
    this.again = again;
  }
}
