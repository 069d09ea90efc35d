package rollup

import (
	"time"

	"github.com/loadstone-db/loadstone/engine/results/record"
)

// Executions are rows of a record with all that is known of each, by column.
type Executions struct {
	Batch
	Connection, Seq, Step, Retries []int32
	StartedNs, DecodeNs            []int64
	ElapsedMs, LagMs, WaitMs       []float64
	RolledBack                     []bool
	Message, QueryID               record.Texts
}

// DueMicro is when an execution was due, in whole microseconds since the epoch of Unix. Digits below are cut off,
// unless that let the execution end in the second before the one in which it is counted: then it is a microsecond
// later. So whoever has this and the elapsed time alone finds every execution in the second of the roll-ups. startNs is
// when the run started.
func (e *Executions) DueMicro(row int, startNs int64) int64 {
	due := e.DueNs[row]
	micro := due / int64(time.Microsecond)
	ended := due + e.ElapsedNs[row] - startNs
	if ended >= 0 && ended%int64(time.Second) < due%int64(time.Microsecond) {
		micro++
	}
	return micro
}

// Staged are the single executions of a run, as they are to count with the rest of it.
type Staged struct {
	// Table holds them, "" when there are to be none.
	Table string
	// Fingerprint is of the parts that they come from, Rows is how many there are.
	Fingerprint string
	Rows        int64
	// Unchanged: what is there already is the same.
	Unchanged bool
}
