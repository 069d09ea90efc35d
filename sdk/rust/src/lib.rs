//! The Rust SDK for Loadstone plugins; no other crate is needed.
//!
//! A plugin is a `cdylib` for `wasm32-unknown-unknown` that implements
//! [`Workload`] or [`Adapter`] and names it once:
//!
//! ```ignore
//! struct Mine { rand: loadstone::Rand }
//! impl loadstone::Workload for Mine { … }
//! loadstone::workload!(Mine, rows);
//! ```
//!
//! after the type stand the optional exports: `rows` when it has sample rows,
//! `call` when it answers documents.
//!
//! What a workload generates must depend on the [`Request`] alone; there is no
//! clock, and [`Rand`] is the source of random numbers. The numbers and
//! distributions are those of the Go, C and AssemblyScript SDKs, bit for bit.
//!
//! A plugin is single-threaded and has at most 32 MB. A panic ends the instance;
//! its message is in the plugin's log.

mod batch;
mod guest;
mod json;
mod random;
mod request;

pub use batch::Batch;
pub use guest::{Adapter, AdapterGuest, Guest, Single, Workload};
pub use json::{quote, Json};
pub use random::{mix, pow, Rand, Scramble, Zipf};
pub use request::{Request, Table};

// The wire format; package sdk/abi explains it, and a test compares the two.
pub const ABI_VERSION: i32 = 0x10000;
pub const BATCH_VERSION: u64 = 1;
pub const TYPE_NULL: u8 = 0;
pub const TYPE_I64: u8 = 1;
pub const TYPE_F64: u8 = 2;
pub const TYPE_TEXT: u8 = 3;
pub const TYPE_BYTES: u8 = 4;
pub const TYPE_BOOL: u8 = 5;
pub const TYPE_TIMESTAMP: u8 = 6;
pub const TYPE_REF: u8 = 7;
pub const STATEMENT_BEGIN: u16 = 0xFF00;
pub const STATEMENT_COMMIT: u16 = 0xFF01;
pub const STATEMENT_ROLLBACK: u16 = 0xFF02;
pub const STATEMENT_DELAY: u16 = 0xFF03;
pub const FILL_ERROR: i64 = -1;
pub const MAX_BATCH_BYTES: usize = 8388608;
pub const MAX_DOCUMENT: usize = 4194304;
pub const HEADER_SIZE: usize = 8;

// Levels of [`log`].
pub const LOG_DEBUG: i32 = 0;
pub const LOG_INFO: i32 = 1;
pub const LOG_WARNING: i32 = 2;
pub const LOG_ERROR: i32 = 3;

/// Writes a line to the plugin's log: 1024 bytes at most, some lines a second.
/// Outside of a module, under `cargo test`, it does nothing.
pub fn log(level: i32, line: &str) {
    #[cfg(target_arch = "wasm32")]
    {
        #[link(wasm_import_module = "ls")]
        extern "C" {
            #[link_name = "log"]
            fn host_log(level: i32, at: *const u8, length: usize);
        }
        unsafe { host_log(level, line.as_ptr(), line.len()) }
    }
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (level, line);
}
