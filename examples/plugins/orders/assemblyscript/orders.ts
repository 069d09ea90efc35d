// The example workload "orders" in AssemblyScript. The same generator stands
// beside it in Go, C and Rust, and the golden files of the folder above prove
// that all four give the same stream.
import { Batch, Json, Rand, Request, Scramble, Workload, Zipf, fail, serve } from "../../../../sdk/assemblyscript/assembly/index";

export { ls_abi, ls_alloc, ls_describe, ls_error, ls_fill, ls_open, ls_rows } from "../../../../sdk/assemblyscript/assembly/index";

// The statements, in the order of the manifest; batches name them by this number.
const BY_ID: u16 = 0;
const FOLLOWING: u16 = 1;
const ADD: u16 = 2;
const OPEN: u16 = 3;
const PAY: u16 = 4;

// A bind that is a word is a column of the table. The adapter writes the SQL of
// the first three statements; that of the last two is the plugin's own.
const manifest = `{
  "kind": "workload", "name": "orders", "version": "1.0.0", "title": "Orders", "author": "Loadstone",
  "description": "Looks orders up, lists them, adds some and pays some, in a transaction.",
  "parameters": {"type": "object", "additionalProperties": false, "properties": {
    "pay": {"type": "number", "title": "Share of payments", "description": "How many of the operations are payments: transactions that read an order and change it.", "minimum": 0, "maximum": 1, "default": 0.1},
    "list": {"type": "number", "title": "Share of lists", "description": "How many of the operations read twenty orders in a row.", "minimum": 0, "maximum": 1, "default": 0.1},
    "add": {"type": "number", "title": "Share of new orders", "description": "How many of the operations add an order. The rest look one up.", "minimum": 0, "maximum": 1, "default": 0.1},
    "rollback": {"type": "number", "title": "Share of rollbacks", "description": "How many of the payments are undone.", "minimum": 0, "maximum": 1, "default": 0.01},
    "keys": {"type": "string", "title": "Keys", "description": "Whether some orders are wanted more than others.", "enum": ["zipfian", "uniform"], "default": "zipfian"},
    "theta": {"type": "number", "title": "Skew", "description": "The exponent of the zipfian distribution.", "minimum": 0, "maximum": 5, "default": 0.99},
    "note_length": {"type": "integer", "title": "Length of notes", "description": "The most characters that a note has.", "minimum": 0, "maximum": 200, "default": 40},
    "pause_us": {"type": "integer", "title": "Pause", "description": "Think time before each operation, in microseconds.", "minimum": 0, "maximum": 60000000, "default": 0}}},
  "tables": [{"name": "orders", "key": ["id"], "columns": ["id i64", "customer i64", "total f64",
    {"name": "note", "type": "text", "nullable": true, "db_type": {"postgres": "varchar(200)"}},
    "paid bool", "ordered_at timestamp", "receipt bytes"]}],
  "statements": [
    {"id": "order by id", "kind": "POINT_LOOKUP", "table": "orders", "binds": ["id"], "columns": ["customer", "total", "note"]},
    {"id": "orders from id", "kind": "RANGE_SCAN", "table": "orders", "binds": ["id"], "columns": ["id", "total"], "limit": 20},
    {"id": "add order", "kind": "INSERT", "table": "orders", "writes": true, "binds": ["id", "customer", "total", "note", "paid", "ordered_at", "receipt"]},
    {"id": "open payment", "kind": "POINT_LOOKUP", "table": "orders", "binds": ["id"], "columns": ["id", "total"], "transaction": "payment",
      "sql": {"postgres": "SELECT id, total FROM {table} WHERE id = $1 FOR UPDATE"}},
    {"id": "pay order", "kind": "UPDATE", "table": "orders", "writes": true, "binds": ["note", "total", "id"],
      "sql": {"postgres": "UPDATE {table} SET paid = true, note = $1, total = $2 WHERE id = $3"}}]}`;

function note(b: Batch, r: Rand, length: i64): void {
  const n = <u32>r.between(0, length);
  r.letters(b.textSpace(n), n);
}

// order writes the columns of one order.
function order(b: Batch, r: Rand, id: i64, noteLength: i64): void {
  b.i64(id);
  b.i64(r.between(1, 1000));
  b.f64(<f64>r.between(100, 100000) / 100);
  if (r.below(8) == 0) b.null();
  else note(b, r, noteLength);
  b.bool(r.below(2) == 1);
  const year2024: i64 = 1704067200000000;
  const yearMicros: i64 = 31536000000000;
  b.timestamp(year2024 + r.below(yearMicros));
  r.noise(b.bytesSpace(16), 16);
}

@final
class Orders extends Workload {
  rand: Rand = new Rand();
  hot: Zipf = new Zipf(1, 0);
  place: Scramble = new Scramble(1);
  uniform: bool = false;
  paused: bool = false;
  lowest: i64 = 0;
  keys: i64 = 0;
  next: i64 = 0;
  step: i64 = 0;
  noteLength: i64 = 0;
  pause: i64 = 0;
  pay: f64 = 0;
  list: f64 = 0;
  add: f64 = 0;
  undone: f64 = 0;

  describe(): string {
    return manifest;
  }

  // What row n holds depends on the parameters and n alone.
  rows(b: Batch, params: Json, table: i32, first: i64, max: i32): bool {
    const noteLength = params.get("note_length").int(40);
    const r = new Rand();
    for (let id = first + 1; id <= first + max; id++) {
      r.seed(1, id);
      b.row();
      order(b, r, id, noteLength);
    }
    return true;
  }

  // The stream may depend on the request and on nothing else.
  open(request: Request): bool {
    const t = request.tables[0];
    if (!t.hasRange) return fail("the table of orders is empty: have it loaded with target.prepare");
    const p = request.params;
    this.rand.seed(request.seed, request.keySlot);
    this.paused = false;
    this.lowest = t.keyMin;
    this.keys = t.keyMax - t.keyMin + 1;
    // No two streams of a run have the same slot, so new keys never collide.
    this.next = t.keyMax + 1 + request.keySlot;
    this.step = request.keySlots;
    this.pay = p.get("pay").float(0);
    this.list = p.get("list").float(0);
    this.add = p.get("add").float(0);
    this.undone = p.get("rollback").float(0);
    this.noteLength = p.get("note_length").int(0);
    this.pause = p.get("pause_us").int(0);
    this.uniform = p.get("keys").text == "uniform";
    if (!this.uniform) {
      this.hot = new Zipf(this.keys, p.get("theta").float(0));
      this.place = new Scramble(this.keys);
    }
    return true;
  }

  key(): i64 {
    if (this.uniform) return this.lowest + this.rand.below(this.keys);
    return this.lowest + this.place.at(this.hot.next(this.rand));
  }

  // Writes operations while there is room; the last transaction may end past it.
  fill(b: Batch, max: i32): bool {
    while (b.length < max) {
      if (this.pause > 0 && !this.paused) {
        b.delay(this.pause);
        this.paused = true;
        continue;
      }
      this.paused = false;
      const x = this.rand.unit();
      if (x < this.pay) {
        b.begin();
        b.op(OPEN);
        b.i64(this.key());
        const opened = b.last();
        b.op(PAY);
        note(b, this.rand, this.noteLength);
        b.ref(opened, 1);
        b.ref(opened, 0);
        if (this.rand.unit() < this.undone) b.rollback();
        else b.commit();
      } else if (x < this.pay + this.list) {
        b.op(FOLLOWING);
        b.i64(this.key());
      } else if (x < this.pay + this.list + this.add) {
        b.op(ADD);
        order(b, this.rand, this.next, this.noteLength);
        this.next += this.step;
      } else {
        b.op(BY_ID);
        b.i64(this.key());
      }
    }
    return true;
  }
}

serve(new Orders());
