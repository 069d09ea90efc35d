// {{name}}: a workload plugin for Loadstone.
import { Batch, Json, Rand, Request, Workload, Zipf, fail, serve } from "./loadstone/index";

export { ls_abi, ls_alloc, ls_describe, ls_error, ls_fill, ls_open, ls_rows } from "./loadstone/index";

// The statements, in the order of the manifest; batches name them by this number.
const READ: u16 = 0;
const ADD: u16 = 1;

// Statements without SQL of their own get it from the adapter of the table type.
const manifest = `{
  "kind": "workload", "name": "{{name}}", "version": "1.0.0", "description": "Reads items and adds new ones.",
  "parameters": {"type": "object", "additionalProperties": false, "properties": {
    "add": {"type": "number", "title": "Share of new items", "minimum": 0, "maximum": 1, "default": 0.1}}},
  "tables": [{"name": "items", "key": ["id"], "columns": ["id i64", "label text"]}],
  "statements": [
    {"id": "read item", "kind": "POINT_LOOKUP", "table": "items", "binds": ["id"], "columns": ["label"]},
    {"id": "add item", "kind": "INSERT", "table": "items", "writes": true, "binds": ["id", "label"]}]}`;

// item writes the columns of one item.
function item(b: Batch, r: Rand, id: i64): void {
  const n = <u32>r.between(5, 20);
  b.i64(id);
  r.letters(b.textSpace(n), n);
}

@final
class Items extends Workload {
  rand: Rand = new Rand();
  hot: Zipf = new Zipf(1, 0);
  lowest: i64 = 0;
  next: i64 = 0;
  step: i64 = 0;
  shareOfAdded: f64 = 0;

  describe(): string {
    return manifest;
  }

  // Sample rows: what a row holds depends on its number alone.
  rows(b: Batch, params: Json, table: i32, first: i64, max: i32): bool {
    const r = new Rand();
    for (let id = first + 1; id <= first + max; id++) {
      r.seed(1, id);
      b.row();
      item(b, r, id);
    }
    return true;
  }

  // Starts a stream.
  open(request: Request): bool {
    const t = request.tables[0];
    if (!t.hasRange) return fail("the table of items is empty: have it loaded with target.prepare");
    this.rand.seed(request.seed, request.keySlot);
    this.hot = new Zipf(t.keyMax - t.keyMin + 1, 0.99);
    this.lowest = t.keyMin;
    // No two streams of a run have the same slot, so new keys never collide.
    this.next = t.keyMax + 1 + request.keySlot;
    this.step = request.keySlots;
    this.shareOfAdded = request.params.get("add").float(0);
    return true;
  }

  // Writes the next operations.
  fill(b: Batch, max: i32): bool {
    while (b.length < max) {
      if (this.rand.unit() < this.shareOfAdded) {
        b.op(ADD);
        item(b, this.rand, this.next);
        this.next += this.step;
      } else {
        b.op(READ);
        b.i64(this.lowest + this.hot.next(this.rand));
      }
    }
    return true;
  }
}

serve(new Items());
