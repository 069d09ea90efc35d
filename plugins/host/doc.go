// Package host runs plugins: it implements engine/plugin over WebAssembly with
// wazero's compiler.
//
// A module passes three stations. The gate (gate.go) reads the bytes with a
// parser of our own before wazero sees them (plugins/wasm): sizes, counts, every
// instruction, imports and export signatures. The module is then rewritten so that
// it runs on fuel and counts its nested calls, and only that is compiled
// (runtime.go). What a guest returns is checked byte by byte against what was frozen
// (batch_decode.go), and what it says of itself against the contract (plugins/manifest).
// What the gate said of a file is kept for the next start of the same program, beside the
// compiled code (approval.go, code.go).
//
// Trust: a guest may be hostile. It has linear memory up to a limit, fuel for each
// call (fuel.go), a handful of host functions that do a bounded amount of work and
// take fuel for it (wasi.go), a log with a limited rate, a clock that does not tell
// the time, and nothing else. Bundled plugins and uploaded ones go through the same
// door. Every failure of a guest is an error that wraps one of the sentinels of
// engine/plugin and an *engine.Error with a sentence; the instance is gone after it.
//
// A guest cannot be interrupted while it computes, not even by the garbage
// collector. So it gets its fuel in slices (fuel.go), and calls the host after each,
// which lets others run and ends it when its fuel or its time is used up.
package host
