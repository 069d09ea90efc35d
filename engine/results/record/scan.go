package record

import (
	"context"
	"iter"
)

// Texts is a text column of a row group.
type Texts struct {
	// Index says which of Values a row has, -1 is null.
	Index  []int32
	Values []string
}

// At returns the text of a row, "" for null.
func (t *Texts) At(row int) string { return t.Value(t.Index[row]) }

// Value returns the text of an index, "" for null.
func (t *Texts) Value(index int32) string {
	if index < 0 {
		return ""
	}
	return t.Values[index]
}

// Columns are the columns of a row group that were read, in memory that is used again for the next one. Times are in
// nanoseconds, durations in milliseconds, but for Decode, which is in nanoseconds.
type Columns struct {
	N                                                                          int // rows
	Run, Result, Worker, Phase, Kind, Statement, Class, Code, Message, QueryID Texts
	Connection, Seq, Step, Rows, Retries, Position                             []int32
	Due, Started, Decode                                                       []int64
	Elapsed, Lag, Wait                                                         []float64
	Warmup, Success, RolledBack                                                []bool
}

// of returns where a column is read to.
func (c *Columns) of(col Column) any {
	return [numColumns]any{ColRunID: &c.Run, ColResultID: &c.Result, ColWorkerID: &c.Worker,
		ColConnectionID: &c.Connection, ColSeq: &c.Seq, ColStep: &c.Step, ColPhase: &c.Phase, ColWarmup: &c.Warmup,
		ColKind: &c.Kind, ColStatementID: &c.Statement, ColDueAt: &c.Due, ColStartedAt: &c.Started,
		ColAppElapsedMs: &c.Elapsed, ColScheduleLagMs: &c.Lag, ColPoolWaitMs: &c.Wait, ColRows: &c.Rows,
		ColSuccess: &c.Success, ColErrorClass: &c.Class, ColErrorCode: &c.Code, ColErrorMessage: &c.Message,
		ColRetries: &c.Retries, ColServerQueryID: &c.QueryID, ColPosition: &c.Position, ColRolledBack: &c.RolledBack,
		ColDecodeNs: &c.Decode}[col]
}

// Read reads columns of a row group. Others stay as they are.
func (c *Columns) Read(p *Part, group int, cols ...Column) (err error) {
	c.N = p.Rows(group)
	for _, col := range cols {
		switch into := c.of(col).(type) {
		case *Texts:
			into.Index, into.Values, err = p.Strings(group, col, into.Index)
		case *[]int32:
			*into, err = p.Int32s(group, col, *into)
		case *[]int64:
			*into, err = p.Int64s(group, col, *into)
		case *[]float64:
			*into, err = p.Doubles(group, col, *into)
		case *[]bool:
			*into, err = p.Bools(group, col, *into)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Scan reads columns of one row group of a part after the other, and yields their numbers. It ends with the first
// error, and with ctx.
func (c *Columns) Scan(ctx context.Context, p *Part, cols ...Column) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for group := range p.RowGroups() {
			err := ctx.Err()
			if err == nil {
				err = c.Read(p, group, cols...)
			}
			if !yield(group, err) || err != nil {
				return
			}
		}
	}
}
