//! {{name}}: a workload plugin for Loadstone.

use loadstone::{Batch, Json, Rand, Request, Workload, Zipf};

loadstone::workload!(Items, rows);

// The statements, in the order of the manifest; batches name them by this number.
const READ: u16 = 0;
const ADD: u16 = 1;

// Statements without SQL of their own get it from the adapter of the table type.
const MANIFEST: &str = r#"{
  "kind": "workload", "name": "{{name}}", "version": "1.0.0", "description": "Reads items and adds new ones.",
  "parameters": {"type": "object", "additionalProperties": false, "properties": {
    "add": {"type": "number", "title": "Share of new items", "minimum": 0, "maximum": 1, "default": 0.1}}},
  "tables": [{"name": "items", "key": ["id"], "columns": ["id i64", "label text"]}],
  "statements": [
    {"id": "read item", "kind": "POINT_LOOKUP", "table": "items", "binds": ["id"], "columns": ["label"]},
    {"id": "add item", "kind": "INSERT", "table": "items", "writes": true, "binds": ["id", "label"]}]}"#;

/// Writes the columns of one item.
fn item(b: &mut Batch, r: &mut Rand, id: i64) {
    b.i64(id);
    let n = r.between(5, 20) as usize;
    r.letters(b.text_space(n));
}

struct Items {
    rand: Rand,
    hot: Zipf,
    lowest: i64,
    next: i64,
    step: i64,
    share_of_added: f64,
}

impl Workload for Items {
    fn describe() -> String {
        MANIFEST.to_string()
    }

    // Sample rows: what a row holds depends on its number alone.
    fn rows(_params: &Json, b: &mut Batch, _table: usize, first: i64, max: usize) -> Result<(), String> {
        for id in first + 1..=first + max as i64 {
            b.row();
            item(b, &mut Rand::new(1, id), id);
        }
        Ok(())
    }

    // Starts a stream.
    fn open(request: &Request) -> Result<Items, String> {
        let (lowest, highest) = request.tables[0]
            .key_range
            .ok_or("the table of items is empty: have it loaded with target.prepare")?;
        Ok(Items {
            rand: Rand::new(request.seed, request.key_slot),
            hot: Zipf::new(highest - lowest + 1, 0.99),
            lowest,
            // No two streams of a run have the same slot, so new keys never collide.
            next: highest + 1 + request.key_slot,
            step: request.key_slots,
            share_of_added: request.params.get("add").float().unwrap_or(0.0),
        })
    }

    // Writes the next operations.
    fn fill(&mut self, b: &mut Batch, max: usize) -> Result<(), String> {
        while b.len() < max {
            if self.rand.unit() < self.share_of_added {
                b.op(ADD);
                item(b, &mut self.rand, self.next);
                self.next += self.step;
            } else {
                b.op(READ);
                b.i64(self.lowest + self.hot.next(&mut self.rand));
            }
        }
        Ok(())
    }
}
