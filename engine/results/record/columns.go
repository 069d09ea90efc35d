package record

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loadstone-db/loadstone/engine"
)

// rowGroupRows is the size of a row group: large enough that its headers and
// dictionaries weigh nothing, small enough that its columns stay near the CPU
// while they are encoded (about 5 MB a writer).
const rowGroupRows = 64 << 10

// columns holds the executions of the row group being filled, transposed. Its
// arrays are allocated once and reused.
type columns struct {
	n int

	due, started, elapsed, lag, wait  []int64
	decode                            []int64
	seq, conn, rows, step, retries    []int32
	statement, kind, warmup, errorIDs []int32
	position                          []int32
	failed, rolledBack                []uint8
	// queryIDs is allocated when the first execution has one: most databases give none.
	queryIDs []engine.QueryID

	// The or-ed differences tell which columns are constant in this row group,
	// so that they cost nothing to encode.
	dueDiffers, anyLag, anyWait, anyDecode int64
	anyError                               uint32
	anyFailed, anyRolledBack               uint8
	anyPosition                            int32
	anyQueryID                             uint64

	minDue, maxEnd             int64
	minStarted, maxStarted     int64
	maxDue                     int64
	minElapsed, maxElapsed     int64
	maxConnection, maxKindSeen uint32
}

func (c *columns) allocate() {
	int64s := make([]int64, 6*rowGroupRows)
	for i, p := range []*[]int64{&c.due, &c.started, &c.elapsed, &c.lag, &c.wait, &c.decode} {
		*p = int64s[i*rowGroupRows : (i+1)*rowGroupRows : (i+1)*rowGroupRows]
	}
	int32s := make([]int32, 10*rowGroupRows)
	for i, p := range []*[]int32{&c.seq, &c.conn, &c.rows, &c.step, &c.retries, &c.statement, &c.kind, &c.warmup,
		&c.errorIDs, &c.position} {
		*p = int32s[i*rowGroupRows : (i+1)*rowGroupRows : (i+1)*rowGroupRows]
	}
	c.failed, c.rolledBack = make([]uint8, rowGroupRows), make([]uint8, rowGroupRows)
	c.reset()
}

func (c *columns) reset() {
	c.n = 0
	c.dueDiffers, c.anyLag, c.anyWait, c.anyError, c.anyFailed = 0, 0, 0, 0, 0
	c.anyRolledBack, c.anyPosition, c.anyDecode = 0, 0, 0
	if c.anyQueryID != 0 {
		clear(c.queryIDs)
		c.anyQueryID = 0
	}
	c.minDue, c.minStarted, c.minElapsed = math.MaxInt64, math.MaxInt64, math.MaxInt64
	c.maxDue, c.maxEnd, c.maxStarted, c.maxElapsed = math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64
	c.maxConnection, c.maxKindSeen = 0, 0
}

// add transposes recs into the row group and returns how many fitted.
func (c *columns) add(recs []engine.Execution) (int, error) {
	if c.due == nil {
		c.allocate()
	}
	recs = recs[:min(len(recs), rowGroupRows-c.n)]
	lo, hi := c.n, c.n+len(recs)
	// Slices of one length let the compiler drop the bounds checks.
	due, started, elapsed := c.due[lo:hi], c.started[lo:hi], c.elapsed[lo:hi]
	lag, wait, decode := c.lag[lo:hi], c.wait[lo:hi], c.decode[lo:hi]
	seq, conn, rows, step := c.seq[lo:hi], c.conn[lo:hi], c.rows[lo:hi], c.step[lo:hi]
	retries, statement, kind := c.retries[lo:hi], c.statement[lo:hi], c.kind[lo:hi]
	warmup, errorIDs, failed := c.warmup[lo:hi], c.errorIDs[lo:hi], c.failed[lo:hi]
	position, rolledBack := c.position[lo:hi], c.rolledBack[lo:hi]

	queryID := uint64(0)
	for i := range recs {
		r := &recs[i]
		due[i], started[i], elapsed[i] = r.DueAt, r.StartedAt, r.Elapsed
		lag[i], wait[i], decode[i] = r.ScheduleLag, r.PoolWait, r.Decode
		seq[i], conn[i], rows[i], step[i] = int32(r.Seq), int32(r.ConnectionID), r.Rows, int32(r.Step)
		retries[i], statement[i], kind[i] = int32(r.Retries), int32(r.Statement), int32(r.Kind)
		errorIDs[i] = int32(r.ErrorID)
		position[i] = int32(r.Position)
		w, f, b := int32(0), uint8(0), uint8(0)
		if r.RolledBack {
			b = 1
		}
		if r.Warmup {
			w = 1
		}
		if !r.Success {
			f = 1
		}
		warmup[i], failed[i], rolledBack[i] = w, f, b

		c.dueDiffers |= r.DueAt ^ r.StartedAt
		c.anyLag |= r.ScheduleLag
		c.anyWait |= r.PoolWait
		c.anyDecode |= r.Decode
		c.anyError |= r.ErrorID
		c.anyFailed |= f
		c.anyRolledBack |= b
		c.anyPosition |= int32(r.Position)
		queryID |= binary.NativeEndian.Uint64(r.QueryID[:8]) | binary.NativeEndian.Uint64(r.QueryID[8:])
		c.minDue, c.maxDue = min(c.minDue, r.DueAt), max(c.maxDue, r.DueAt)
		c.minStarted, c.maxStarted = min(c.minStarted, r.StartedAt), max(c.maxStarted, r.StartedAt)
		c.minElapsed, c.maxElapsed = min(c.minElapsed, r.Elapsed), max(c.maxElapsed, r.Elapsed)
		c.maxEnd = max(c.maxEnd, r.DueAt+r.Elapsed)
		c.maxConnection = max(c.maxConnection, r.ConnectionID)
		c.maxKindSeen = max(c.maxKindSeen, uint32(r.Kind))
	}
	if c.maxKindSeen >= uint32(engine.NumKinds) {
		return 0, fmt.Errorf("execution with unknown kind %d", c.maxKindSeen)
	}
	if queryID != 0 {
		c.anyQueryID |= queryID
		c.addQueryIDs(recs)
	}
	c.n = hi
	return len(recs), nil
}

// addQueryIDs adds those of the executions that come after the first n.
func (c *columns) addQueryIDs(recs []engine.Execution) {
	if c.queryIDs == nil {
		c.queryIDs = make([]engine.QueryID, rowGroupRows)
	}
	ids := c.queryIDs[c.n : c.n+len(recs)]
	for i := range recs {
		ids[i] = recs[i].QueryID
	}
}
