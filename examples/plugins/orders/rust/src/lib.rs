//! The example workload "orders" in Rust. The same generator stands beside it in
//! Go, C and AssemblyScript, and the golden files of the folder above prove that
//! all four give the same stream.

use loadstone::{Batch, Json, Rand, Request, Scramble, Workload, Zipf};

loadstone::workload!(Orders, rows);

// The statements, in the order of the manifest; batches name them by this number.
const BY_ID: u16 = 0;
const FOLLOWING: u16 = 1;
const ADD: u16 = 2;
const OPEN: u16 = 3;
const PAY: u16 = 4;

// A bind that is a word is a column of the table. The adapter writes the SQL of
// the first three statements; that of the last two is the plugin's own.
const MANIFEST: &str = r#"{
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
      "sql": {"postgres": "UPDATE {table} SET paid = true, note = $1, total = $2 WHERE id = $3"}}]}"#;

fn note(b: &mut Batch, r: &mut Rand, length: i64) {
    let n = r.between(0, length) as usize;
    r.letters(b.text_space(n));
}

/// Writes the columns of one order.
fn order(b: &mut Batch, r: &mut Rand, id: i64, note_length: i64) {
    const YEAR_2024: i64 = 1_704_067_200_000_000;
    const YEAR_MICROS: i64 = 31_536_000_000_000;
    b.i64(id);
    b.i64(r.between(1, 1000));
    b.f64(r.between(100, 100_000) as f64 / 100.0);
    if r.below(8) == 0 {
        b.null();
    } else {
        note(b, r, note_length);
    }
    b.bool(r.below(2) == 1);
    b.timestamp(YEAR_2024 + r.below(YEAR_MICROS));
    r.noise(b.bytes_space(16));
}

struct Orders {
    rand: Rand,
    /// None when keys are uniform.
    hot: Option<(Zipf, Scramble)>,
    paused: bool,
    lowest: i64,
    keys: i64,
    next: i64,
    step: i64,
    note_length: i64,
    pause: i64,
    pay: f64,
    list: f64,
    add: f64,
    rollback: f64,
}

impl Orders {
    fn key(&mut self) -> i64 {
        self.lowest
            + match &self.hot {
                None => self.rand.below(self.keys),
                Some((zipf, place)) => place.at(zipf.next(&mut self.rand)),
            }
    }
}

impl Workload for Orders {
    fn describe() -> String {
        MANIFEST.to_string()
    }

    // What row n holds depends on the parameters and n alone.
    fn rows(params: &Json, b: &mut Batch, _table: usize, first: i64, max: usize) -> Result<(), String> {
        let note_length = params.get("note_length").int().unwrap_or(40);
        for id in first + 1..=first + max as i64 {
            b.row();
            order(b, &mut Rand::new(1, id), id, note_length);
        }
        Ok(())
    }

    // The stream may depend on the request and on nothing else.
    fn open(request: &Request) -> Result<Orders, String> {
        let (lowest, highest) = request.tables[0]
            .key_range
            .ok_or("the table of orders is empty: have it loaded with target.prepare")?;
        let keys = highest - lowest + 1;
        let p = &request.params;
        let share = |name| p.get(name).float().unwrap_or(0.0);
        let count = |name| p.get(name).int().unwrap_or(0);
        Ok(Orders {
            rand: Rand::new(request.seed, request.key_slot),
            hot: (p.get("keys").str() != "uniform").then(|| (Zipf::new(keys, share("theta")), Scramble::new(keys))),
            paused: false,
            lowest,
            keys,
            // No two streams of a run have the same slot, so new keys never collide.
            next: highest + 1 + request.key_slot,
            step: request.key_slots,
            note_length: count("note_length"),
            pause: count("pause_us"),
            pay: share("pay"),
            list: share("list"),
            add: share("add"),
            rollback: share("rollback"),
        })
    }

    // Writes operations while there is room; the last transaction may end past it.
    fn fill(&mut self, b: &mut Batch, max: usize) -> Result<(), String> {
        while b.len() < max {
            if self.pause > 0 && !self.paused {
                b.delay(self.pause);
                self.paused = true;
                continue;
            }
            self.paused = false;
            let x = self.rand.unit();
            if x < self.pay {
                b.begin();
                b.op(OPEN);
                b.i64(self.key());
                let opened = b.last();
                b.op(PAY);
                note(b, &mut self.rand, self.note_length);
                b.reference(opened, 1);
                b.reference(opened, 0);
                if self.rand.unit() < self.rollback {
                    b.rollback();
                } else {
                    b.commit();
                }
            } else if x < self.pay + self.list {
                b.op(FOLLOWING);
                b.i64(self.key());
            } else if x < self.pay + self.list + self.add {
                b.op(ADD);
                order(b, &mut self.rand, self.next, self.note_length);
                self.next += self.step;
            } else {
                b.op(BY_ID);
                b.i64(self.key());
            }
        }
        Ok(())
    }
}
