package results

import (
	"errors"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// text is a text column of a row group.
type text struct {
	indexes []int32
	values  []string
}

// at returns the value of a row, "" for null.
func (t text) at(row int) string {
	if i := t.indexes[row]; i >= 0 {
		return t.values[i]
	}
	return ""
}

// rows are all columns of one row group, for what needs whole rows.
type rows struct {
	n                                           int
	run, result, worker, phase, kind, statement text
	class, code, message, queryID               text
	connection, seq, step, rows, retries        []int32
	position                                    []int32
	due, started, decode                        []int64
	elapsed, lag, wait                          []float64
	warmup, success, rolledBack                 []bool
}

// slowColumns are those that slow needs, replayColumns those of what is replayed.
var (
	slowColumns = []record.Column{record.ColWorkerID, record.ColConnectionID, record.ColSeq, record.ColKind,
		record.ColStatementID, record.ColStartedAt, record.ColAppElapsedMs, record.ColRows, record.ColSuccess,
		record.ColErrorClass, record.ColErrorMessage, record.ColServerQueryID}
	replayColumns = []record.Column{record.ColWorkerID, record.ColStatementID, record.ColKind, record.ColDueAt,
		record.ColConnectionID, record.ColSeq, record.ColPosition}
)

// readRows reads these columns of a row group, all without any; the others are left empty.
func readRows(p *record.Part, group int, only ...record.Column) (*rows, error) {
	r := &rows{n: p.Rows(group)}
	return r, errors.Join(
		columns(only, map[record.Column]*text{
			record.ColRunID: &r.run, record.ColResultID: &r.result, record.ColWorkerID: &r.worker,
			record.ColPhase: &r.phase, record.ColKind: &r.kind, record.ColStatementID: &r.statement,
			record.ColErrorClass: &r.class, record.ColErrorCode: &r.code, record.ColErrorMessage: &r.message,
			record.ColServerQueryID: &r.queryID,
		}, func(col record.Column) (t text, err error) {
			t.indexes, t.values, err = p.Strings(group, col, nil)
			return t, err
		}),
		columns(only, map[record.Column]*[]int32{
			record.ColConnectionID: &r.connection, record.ColSeq: &r.seq, record.ColStep: &r.step,
			record.ColRows: &r.rows, record.ColRetries: &r.retries, record.ColPosition: &r.position,
		}, func(col record.Column) ([]int32, error) { return p.Int32s(group, col, nil) }),
		columns(only, map[record.Column]*[]int64{record.ColDueAt: &r.due, record.ColStartedAt: &r.started,
			record.ColDecodeNs: &r.decode,
		}, func(col record.Column) ([]int64, error) { return p.Int64s(group, col, nil) }),
		columns(only, map[record.Column]*[]float64{record.ColAppElapsedMs: &r.elapsed,
			record.ColScheduleLagMs: &r.lag, record.ColPoolWaitMs: &r.wait,
		}, func(col record.Column) ([]float64, error) { return p.Doubles(group, col, nil) }),
		columns(only, map[record.Column]*[]bool{record.ColWarmup: &r.warmup, record.ColSuccess: &r.success,
			record.ColRolledBack: &r.rolledBack,
		}, func(col record.Column) ([]bool, error) { return p.Bools(group, col, nil) }))
}

// columns reads those of one type that are wanted.
func columns[T any](only []record.Column, into map[record.Column]*T, read func(record.Column) (T, error)) error {
	for col, v := range into {
		if len(only) > 0 && !slices.Contains(only, col) {
			continue
		}
		var err error
		if *v, err = read(col); err != nil {
			return err
		}
	}
	return nil
}

func (r *rows) slow(i int) engine.SlowExecution {
	kind, err := engine.ParseKind(r.kind.at(i))
	if err != nil {
		kind = engine.KindGenericSQL // the first pass has refused such a part
	}
	return engine.SlowExecution{
		WorkerID: r.worker.at(i), ConnectionID: uint32(r.connection[i]), Seq: uint32(r.seq[i]),
		Kind: kind, StatementID: r.statement.at(i), StartedAt: engine.At(time.Unix(0, r.started[i])),
		AppElapsedMs: r.elapsed[i], Rows: r.rows[i], Success: r.success[i],
		ErrorClass: r.class.at(i), ErrorMessage: r.message.at(i), ServerQueryID: r.queryID.at(i),
	}
}
