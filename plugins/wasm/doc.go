// Package wasm reads WebAssembly modules that nobody trusts, and rewrites them so
// that they cannot run for ever.
//
// Parse reads the whole binary with a parser of its own, before any compiler sees
// it. Each count is bounded by the bytes that remain and by a limit of Limits;
// each instruction is decoded with its immediates, and each index is checked
// against what it points into. What Parse does not check is types: that a module
// is well-typed is decided by the compiler that runs what Meter writes.
//
// Meter writes the module again with two more globals, exported under names that
// Parse refuses in a plugin, and one more import. Fuel is charged at the entry of
// every function, at the header of every loop, inside straight code whenever what
// was paid for is used up, and by the length of bulk-memory instructions. Where it
// is below zero the guest calls the host, through ImportSlice, which gives more or
// ends the call: at the next entry, header or bulk-memory instruction, in straight
// code now and then, between a call and the function's end, and when an imported
// function, which may charge for its own work, returns. Long copies and fills are
// done in pieces (bulk.go). Depth counts calls that can be part of a recursion, by
// the size of their frames, and traps at zero. The host fills both before each call
// and reads them after a trap, which tells the reason. A start function is not run
// by itself any more: it is exported under NameStart, so that it runs on fuel like
// everything else.
//
// Costs are in units of about one simple instruction. What a guest executes
// between two charges never costs more than was charged before; it may cost less,
// because a charge is for the longest path ahead (see walk.go).
package wasm
