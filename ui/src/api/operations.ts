// Request and response types of each path, from the generated types.
import type { paths } from './schema';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** PathOf is the paths that support a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never;
}[keyof paths];

type Json<R> = R extends { content: { 'application/json': infer T } } ? T : undefined;

/** ResponseBody is the response of a path. */
export type ResponseBody<P extends keyof paths, M extends Method> = paths[P][M] extends { responses: infer R }
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

/** RequestOptions is the path fields, query and body of a request. */
export type RequestOptions<P extends keyof paths, M extends Method> = PathFields<paths[P][M]> &
  QueryFields<paths[P][M]> &
  BodyField<paths[P][M]> & {
    signal?: AbortSignal;
    /** Returns the document as it is stored, for editing. */
    asStored?: boolean;
  };

/** OptionalArgs makes the options optional where nothing is required. */
export type OptionalArgs<A> = object extends A ? [options?: A] : [options: A];
