// The AssemblyScript SDK for Loadstone plugins.
//
// A plugin extends Workload, registers itself with serve, and names the exports
// that the host calls:
//
//	import { Workload, Batch, Request, serve } from "@loadstone-db/assemblyscript";
//	export { ls_abi, ls_alloc, ls_describe, ls_error, ls_open, ls_fill } from "@loadstone-db/assemblyscript";
//
//	class Mine extends Workload { … }
//	serve(new Mine());
//
// with ls_rows when it has sample rows and ls_call when it overrides call. Build it with
//
//	asc mine.ts -o mine.wasm -O3 --runtime minimal --exportStart _initialize --use abort=…/abi/abort
//
// A method that cannot do its work returns fail("a sentence for the user"). What
// a workload generates must depend on the request of open alone; there is no
// clock, and Rand is the source of random numbers. The numbers and distributions
// are those of the Go, C and Rust SDKs, bit for bit.
//
// A plugin has at most 32 MB. Objects are collected between batches, so a fill
// that makes strings works; one that makes none is faster.

import { ABI_VERSION, FILL_ERROR, MAX_DOCUMENT, abort, fail, lastError, pack } from "./abi";
import { Batch } from "./batch";
import { Json, Request, missing } from "./documents";

export { LOG_DEBUG, LOG_ERROR, LOG_INFO, LOG_WARNING, fail, log } from "./abi";
export { Batch } from "./batch";
export { Json, Kind, Request, Table, quote } from "./documents";
export { Rand, Scramble, Zipf, mix, pow } from "./random";

/** A plugin. An adapter is one too: its describe says so, and it overrides call only. */
export abstract class Workload {
  /** The manifest: one JSON document. */
  abstract describe(): string;

  /** Starts a stream. */
  open(request: Request): bool {
    return fail("this plugin has no stream to open");
  }

  /** Adds operations while batch.length < max, at least one; none ends the stream. */
  fill(batch: Batch, max: i32): bool {
    return fail("this plugin has no stream");
  }

  /**
   * Adds sample rows first … first+max-1 of a table (its place in the manifest);
   * fewer are fine, none means that there are no more. A row depends on the
   * parameters and its number only.
   */
  rows(batch: Batch, params: Json, table: i32, first: i64, max: i32): bool {
    return fail("this plugin has no sample rows");
  }

  /** Answers a request document by one JSON document; null, with fail's message, is an error. */
  call(op: string, request: Json): string | null {
    fail("this plugin has no operation " + op);
    return null;
  }
}

let plugin: Workload | null = null;
const batch = new Batch();
let params: Json = missing;
let document: ArrayBuffer = lastError;
let input: usize = 0;
let inputSize: i32 = 0;
let fills: u32 = 0;

/** Makes w the plugin of this module. Call it once, outside of any function. */
export function serve(w: Workload): void {
  plugin = w;
}

function the(): Workload {
  const w = plugin;
  if (w == null) abort("the plugin registered nothing: call serve", null, 0, 0);
  return w as Workload;
}

function take(length: i32): Json | null {
  if (!input || length < 0 || length > inputSize) {
    fail("the document was not written to what ls_alloc returned");
    return null;
  }
  const text = String.UTF8.decodeUnsafe(input, length);
  heap.free(input);
  input = 0;
  return Json.parse(text);
}

export function ls_abi(): i32 {
  return ABI_VERSION;
}

export function ls_describe(): i64 {
  document = String.UTF8.encode(the().describe());
  return pack(changetype<usize>(document), document.byteLength);
}

export function ls_alloc(n: i32): i32 {
  if (n <= 0 || <u32>n > MAX_DOCUMENT) return 0;
  // No object is on the stack between two calls of the host.
  __collect();
  if (input) heap.free(input);
  input = heap.alloc(n);
  inputSize = n;
  return <i32>input;
}

export function ls_open(at: i32, length: i32): i32 {
  const doc = take(length);
  if (doc == null) return 1;
  const request = new Request(doc);
  params = request.params;
  if (!request.tables.length) {
    // It only tells the parameters of ls_rows, when the workload has tables.
    const manifest = Json.parse(the().describe());
    if (manifest != null && manifest.get("tables").length > 0) return 0;
  }
  return the().open(request) ? 0 : 1;
}

export function ls_fill(max: i32): i64 {
  if ((++fills & 0xff) == 0) __collect();
  batch.reset();
  return the().fill(batch, max) ? batch.finish() : FILL_ERROR;
}

export function ls_rows(table: i32, first: i64, max: i32): i64 {
  __collect();
  batch.reset();
  return the().rows(batch, params, table, first, max) ? batch.finish() : FILL_ERROR;
}

export function ls_call(at: i32, length: i32): i64 {
  const doc = take(length);
  if (doc == null) return FILL_ERROR;
  const answer = the().call(doc.get("op").text, doc);
  if (answer == null) return FILL_ERROR;
  document = String.UTF8.encode(answer);
  return pack(changetype<usize>(document), document.byteLength);
}

export function ls_error(): i64 {
  return pack(changetype<usize>(lastError), lastError.byteLength);
}
