package rollup

// Executions are rows of a record with all that is known of each, by column.
type Executions struct {
	Batch
	Connection, Seq, Step, Retries []int32
	StartedNs, DecodeNs            []int64
	ElapsedMs, LagMs, WaitMs       []float64
	RolledBack                     []bool
	Message, QueryID               Texts
}

// Staged are the single executions of a run, as they are to count with the rest of it.
type Staged struct {
	// Table holds them, "" when there are to be none.
	Table string
	// Fingerprint is of the parts that they come from, Rows is how many there are.
	Fingerprint string
	Rows        int64
	// Keep: what is there already is the same.
	Keep bool
}
