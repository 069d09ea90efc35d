// Package host runs plugins: it implements engine/plugin over WebAssembly with
// wazero's compiler.
//
// A module passes three stations. The gate (gate.go) reads the bytes with a
// parser of its own before wazero sees them: sizes, counts, imports and export
// signatures. Compiling (runtime.go) happens on two runtimes: the cold one can
// interrupt a guest when a deadline passes, which costs too much where load is
// generated; the hot one cannot, and runs ls_fill only after the cold one has
// rehearsed ls_open and a first batch with the same document. What a guest
// returns (decode.go, manifest.go) is checked byte by byte against what was frozen.
//
// Trust: a guest may be hostile. It has linear memory up to a limit, a log with
// a limited rate, a clock that does not tell the time, and nothing else. Every
// failure of a guest is an error that wraps one of the sentinels of
// engine/plugin and an *engine.Error with a sentence; the instance is gone after
// it. A guest that loops forever in a later ls_fill holds its run worker: fuel,
// which belongs into the gate, is what will end it.
package host
