// Package record writes and reads the Parquet parts that hold a run's
// executions.
//
// A run worker owns one Writer. It appends its executions to a part; a part is
// finished after two million rows or ten seconds, so that a killed process loses
// at most the part it was writing. A part under construction is called
// NAME.parquet.tmp and has no meaning; a finished one is fsynced, renamed to
// NAME.parquet, and never changes again. Its SHA-256 is computed from the bytes
// on their way to the disk.
//
// Recording costs CPU that the load generator could have used, so the encoder
// is built for it: executions are transposed into columns as they arrive, and
// each full row group is encoded column by column with the encodings that cost
// least for such data: dictionary and run lengths for what hardly varies, delta
// bit-packing for times and counters, plain doubles for latencies, whose
// mantissas do not compress. No codec runs over the pages. Files follow
// the Parquet specification and are read by any reader of it.
package record
