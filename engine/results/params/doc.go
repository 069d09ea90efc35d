// Package params keeps the parameters of a few executions of a run: the first of each error of a statement, and the
// slowest of each statement. Of all others nothing is kept, and they cost a comparison.
//
//	connections ── Sampler.Wants, Record──▶ Sampler ── Write ──▶ binds-WORKER-00001.parquet ──▶ record of the run
//	(engine/worker/load)   one comparison         bounded           (10 s apart, and at the end)       Read, Merge, Mask
//
// # What is bounded
//
// A Sampler has a budget of bytes, its part of what a run may keep (MaxBytes), and everything that it keeps counts
// against it. Texts are cut at MaxTextBytes, with their true length beside them; of the parameters of one execution
// MaxValues are kept. Who reads merges what all run workers kept down to what one may keep.
//
// # What is private
//
// The template says what of a parameter is written (Mode): Masked keeps its type and its length and never its
// value, Plain keeps the value too, which Mask takes off again for everybody who did not ask for it. Values that
// are not to be seen are never copied out of the operation.
package params
