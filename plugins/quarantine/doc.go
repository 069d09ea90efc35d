// Package quarantine examines plugin files of strangers where they can do no harm.
//
// WebAssembly compilers trust the size of their input: a file of a few bytes can
// ask for gigabytes, and wazero's CompileModule listens to no context. So a file
// goes through two stations before anything else of Loadstone touches it. The
// gate (host.Gate) reads it with a parser of our own, in process, at a cost
// bounded by its length. What is left goes to a child process of the same binary,
// which limits itself before it reads the first byte, compiles and smoke-tests
// the file (trial.SmokeTest), and answers one JSON document. Whatever happens to
// the child, the parent gets a sentence for the user out of it.
//
// # Trust
//
// The child has no environment, no files but its three pipes, no arguments that
// depend on the file, may write no file and opens at most a few descriptors. Its
// memory, processor time and wall time end it. Everything the parent reads of it
// is bounded, and the answer's hash and size are replaced by the parent's own.
//
// # Order
//
// One child at a time, at a low priority, so that runs beside it keep their
// rate. Callers wait in a short queue, which honours their context; past its end
// they are told that the server is busy (engine.CodeUnavailable).
//
// # Other systems
//
// RLIMIT_DATA counts private mappings on Linux only. On macOS and the BSDs the
// child has the processor limit and Go's own soft memory limit, elsewhere the
// soft limit alone; the wall timeout and the gate hold everywhere.
package quarantine
