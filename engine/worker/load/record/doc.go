// Package record takes what connections have measured to figures and to a file, behind
// their back. Each writer has a Recorder, which places records of fixed size into a
// chunk that it alone writes; a Collector reads the chunks, counts them for the
// live figures, and hands them to the Sink. Placing a record allocates nothing and
// takes no lock; when the Sink cannot keep up, the Pool of chunks runs dry and
// writers wait for a chunk, which is reported: memory is bounded, and no record is dropped.
package record
