use crate::Json;

/// The document of [`crate::Workload::open`].
pub struct Request {
    pub seed: i64,
    /// No two streams of a run have the same `key_slot`, and all have the same
    /// `key_slots`: `key_max + 1 + key_slot + n·key_slots` are new keys that never collide.
    pub key_slot: i64,
    pub key_slots: i64,
    /// The parameters of the template, with the defaults of the plugin's schema.
    pub params: Json,
    pub tables: Vec<Table>,
    /// Of `{table, columns, rows}`: sampled keys, where keys are not dense integers.
    pub pools: Json,
}

impl Request {
    /// Reads the document of `ls_open`.
    pub fn read(doc: &Json) -> Request {
        Request {
            seed: doc.get("seed").int().unwrap_or(0),
            key_slot: doc.get("key_slot").int().unwrap_or(0),
            key_slots: doc.get("key_slots").int().unwrap_or(1).max(1),
            params: doc.get("params").clone(),
            tables: doc.get("tables").items().iter().map(Table::read).collect(),
            pools: doc.get("pools").clone(),
        }
    }

    /// The table of that logical name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }
}

/// An existing table, under its logical name.
pub struct Table {
    pub name: String,
    pub physical_name: String,
    pub rows: i64,
    /// The lowest and the highest key, when the key is one integer column and the table is not empty.
    pub key_range: Option<(i64, i64)>,
    /// Every integer of `key_range` is a key.
    pub dense: bool,
    /// Every integer from the lowest key to this one is a key, if known.
    pub dense_max: Option<i64>,
    /// The names of the key's columns.
    pub key: Vec<String>,
    /// Of `{name, type, db_type, nullable, has_default, generated, unique, max_length}`.
    pub columns: Json,
}

impl Table {
    /// Reads a table.
    pub fn read(doc: &Json) -> Table {
        Table {
            name: doc.get("name").str().to_string(),
            physical_name: doc.get("physical_name").str().to_string(),
            rows: doc.get("rows").int().unwrap_or(0),
            key_range: doc.get("key_min").int().zip(doc.get("key_max").int()),
            dense: doc.get("dense").is_true(),
            dense_max: doc.get("dense_max").int(),
            key: doc.get("key").items().iter().map(|k| k.str().to_string()).collect(),
            columns: doc.get("columns").clone(),
        }
    }
}
