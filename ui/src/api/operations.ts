// What each address of the server takes and answers, from the generated types.
import type { paths } from './schema';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** The addresses that take a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never;
}[keyof paths];

type Json<R> = R extends { content: { 'application/json': infer T } } ? T : undefined;

/** What an address answers. */
export type Answer<P extends keyof paths, M extends Method> = paths[P][M] extends { responses: infer R }
  ? Json<R[keyof R]>
  : never;

type PathFields<O> = O extends { parameters: { path: infer V } } ? { path: V } : { path?: undefined };
type QueryFields<O> = O extends { parameters: { query?: infer V } }
  ? [V] extends [never]
    ? { query?: undefined }
    : { query?: V }
  : O extends { parameters: { query: infer V } }
    ? { query: V }
    : { query?: undefined };
type BodyField<O> = O extends { requestBody: { content: { 'application/json': infer T } } }
  ? { body: T }
  : { body?: undefined };

/** What an address is asked with. */
export type Asked<P extends keyof paths, M extends Method> = PathFields<paths[P][M]> &
  QueryFields<paths[P][M]> &
  BodyField<paths[P][M]> & {
    signal?: AbortSignal;
    /** Of documents that are edited or sent back: they are wanted as they are stored. */
    asStored?: boolean;
  };

/** The second argument of a request, which may be left out where nothing has to be said. */
export type Rest<A> = object extends A ? [asked?: A] : [asked: A];
