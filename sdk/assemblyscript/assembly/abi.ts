// The wire format; package sdk/abi explains it, and a test compares the two.
export const ABI_VERSION: i32 = 0x10000;
export const BATCH_VERSION: u64 = 1;
export const TYPE_NULL: u8 = 0;
export const TYPE_I64: u8 = 1;
export const TYPE_F64: u8 = 2;
export const TYPE_TEXT: u8 = 3;
export const TYPE_BYTES: u8 = 4;
export const TYPE_BOOL: u8 = 5;
export const TYPE_TIMESTAMP: u8 = 6;
export const TYPE_REF: u8 = 7;
export const STATEMENT_BEGIN: u16 = 0xff00;
export const STATEMENT_COMMIT: u16 = 0xff01;
export const STATEMENT_ROLLBACK: u16 = 0xff02;
export const STATEMENT_DELAY: u16 = 0xff03;
export const FILL_ERROR: i64 = -1;
export const MAX_BATCH_BYTES: u32 = 8388608;
export const MAX_DOCUMENT: u32 = 4194304;
export const HEADER_SIZE: u32 = 8;

// Levels of log.
export const LOG_DEBUG: i32 = 0;
export const LOG_INFO: i32 = 1;
export const LOG_WARNING: i32 = 2;
export const LOG_ERROR: i32 = 3;

@external("ls", "log")
declare function hostLog(level: i32, at: usize, length: i32): void;

/** Writes a line to the plugin's log: 1024 bytes at most, some lines a second. */
export function log(level: i32, line: string): void {
  const bytes = String.UTF8.encode(line);
  hostLog(level, changetype<usize>(bytes), bytes.byteLength);
}

/** What the compiler calls when the program is wrong: the line is in the log, the instance ends. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  log(LOG_ERROR, (message ? message : "the plugin was aborted") + " (" + (file ? file : "") + ":" + line.toString() + ")");
  unreachable();
}

export let lastError: ArrayBuffer = String.UTF8.encode("");

/** Keeps a sentence for the user and returns false. */
export function fail(message: string): bool {
  lastError = String.UTF8.encode(message);
  return false;
}

/** A pointer and a length as exports return them. */
@inline
export function pack(at: usize, length: u32): i64 {
  return <i64>((<u64>at << 32) | <u64>length);
}
