import {
  BATCH_VERSION,
  HEADER_SIZE,
  MAX_BATCH_BYTES,
  STATEMENT_BEGIN,
  STATEMENT_COMMIT,
  STATEMENT_DELAY,
  STATEMENT_ROLLBACK,
  TYPE_BOOL,
  TYPE_BYTES,
  TYPE_F64,
  TYPE_I64,
  TYPE_NULL,
  TYPE_REF,
  TYPE_TEXT,
  TYPE_TIMESTAMP,
  abort,
  pack,
} from "./abi";

/** Takes operations, or sample rows, in wire format. */
@final
export class Batch {
  private base: usize = 0;
  private at: usize = 0;
  private end: usize = 0;
  private args: usize = 0;
  private ops: i32 = 0;
  private first: i32 = 0;

  /** Empties the batch; the host does so before each call. */
  reset(): void {
    this.at = this.base;
    this.args = 0;
    this.ops = 0;
    this.first = 0;
    store<u64>(this.take(HEADER_SIZE), BATCH_VERSION);
  }

  /** The number of operations so far: BEGIN, COMMIT, ROLLBACK and DELAY count. */
  @inline
  get length(): i32 {
    return this.ops;
  }

  /** Where the finished batch lies and how long it is, as the host takes it; 0 when it is empty. */
  finish(): i64 {
    if (!this.ops) return 0;
    store<u32>(this.base, this.ops, 4);
    return pack(this.base, <u32>(this.at - this.base));
  }

  private grow(n: u32): void {
    const used = <u32>(this.at - this.base);
    if (n > MAX_BATCH_BYTES || used + n > MAX_BATCH_BYTES) abort("a batch of the plugin is larger than 8 MB", null, 0, 0);
    const size = 2 * (used + n) + 4096;
    const grown = heap.alloc(size);
    memory.copy(grown, this.base, used);
    if (this.base) {
      if (this.args) this.args += grown - this.base;
      heap.free(this.base);
    }
    this.base = grown;
    this.at = grown + used;
    this.end = grown + size;
  }

  @inline
  private take(n: u32): usize {
    if (<u32>(this.end - this.at) < n) this.grow(n);
    const p = this.at;
    this.at = p + n;
    return p;
  }

  @inline
  private argument(): void {
    const p = this.args;
    if (!p) abort("an argument stands before the first operation of a batch", null, 0, 0);
    store<u8>(p, load<u8>(p) + 1);
  }

  /** Begins an operation: the statement's place in the manifest. Its arguments follow. */
  @inline
  op(statement: u16): void {
    const p = this.take(3);
    store<u16>(p, statement);
    store<u8>(p, 0, 2);
    this.args = p + 2;
    this.ops++;
  }

  /** Begins a sample row; its columns follow. */
  @inline
  row(): void {
    this.op(0);
  }

  @inline
  private eight(type: u8, v: u64): void {
    const p = this.take(9);
    store<u8>(p, type);
    store<u64>(p, v, 1);
    this.argument();
  }

  /** Adds a NULL. */
  @inline
  null(): void {
    store<u8>(this.take(1), TYPE_NULL);
    this.argument();
  }

  /** Adds an integer. */
  @inline
  i64(v: i64): void {
    this.eight(TYPE_I64, <u64>v);
  }

  /** Adds a float. */
  @inline
  f64(v: f64): void {
    this.eight(TYPE_F64, reinterpret<u64>(v));
  }

  /** Adds a time in microseconds since 1970, UTC. */
  @inline
  timestamp(micros: i64): void {
    this.eight(TYPE_TIMESTAMP, <u64>micros);
  }

  /** Adds a boolean. */
  @inline
  bool(v: bool): void {
    const p = this.take(2);
    store<u8>(p, TYPE_BOOL);
    store<u8>(p, u8(v), 1);
    this.argument();
  }

  /**
   * Adds column c of the first row that operation k of the running transaction
   * returned, both counted from 0. That statement must declare its columns.
   */
  @inline
  ref(k: u8, c: u8): void {
    const p = this.take(3);
    store<u8>(p, TYPE_REF);
    store<u8>(p, k, 1);
    store<u8>(p, c, 2);
    this.argument();
  }

  @inline
  private space(type: u8, n: u32): usize {
    if (n > MAX_BATCH_BYTES) abort("a text of the plugin is larger than 8 MB", null, 0, 0);
    const p = this.take(n + 5);
    store<u8>(p, type);
    store<u32>(p, n, 1);
    this.argument();
    return p + 5;
  }

  /** Adds a text of n bytes and returns where it lies, to be filled at once with UTF-8. */
  @inline
  textSpace(n: u32): usize {
    return this.space(TYPE_TEXT, n);
  }

  /** textSpace for bytes. */
  @inline
  bytesSpace(n: u32): usize {
    return this.space(TYPE_BYTES, n);
  }

  /** Adds a text, which is copied. */
  text(s: string): void {
    const n = String.UTF8.byteLength(s);
    String.UTF8.encodeUnsafe(changetype<usize>(s), s.length, this.textSpace(n));
  }

  /** Adds bytes, which are copied. */
  bytes(v: Uint8Array): void {
    memory.copy(this.bytesSpace(v.length), v.dataStart, v.length);
  }

  /**
   * Begins a transaction. commit or rollback must end it in the same batch, after
   * 1 to 256 operations; one that began before max may end past it.
   */
  @inline
  begin(): void {
    this.op(STATEMENT_BEGIN);
    this.first = this.ops;
  }

  /** Ends a transaction. */
  @inline
  commit(): void {
    this.op(STATEMENT_COMMIT);
  }

  /** Ends a transaction whose changes are to be undone; that is a success. */
  @inline
  rollback(): void {
    this.op(STATEMENT_ROLLBACK);
  }

  /** The k by which ref knows the operation begun last. */
  @inline
  last(): u8 {
    return <u8>(this.ops - this.first - 1);
  }

  /** Adds think time in microseconds for whoever takes the next operation. */
  @inline
  delay(micros: i64): void {
    this.op(STATEMENT_DELAY);
    this.i64(micros);
  }
}
