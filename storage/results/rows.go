package results

import (
	"errors"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
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
	slowColumns = []artifact.Column{artifact.ColWorkerID, artifact.ColConnectionID, artifact.ColSeq, artifact.ColKind,
		artifact.ColStatementID, artifact.ColStartedAt, artifact.ColAppElapsedMs, artifact.ColRows, artifact.ColSuccess,
		artifact.ColErrorClass, artifact.ColErrorMessage, artifact.ColServerQueryID}
	replayColumns = []artifact.Column{artifact.ColWorkerID, artifact.ColStatementID, artifact.ColKind, artifact.ColDueAt,
		artifact.ColConnectionID, artifact.ColSeq, artifact.ColPosition}
)

// readRows reads these columns of a row group, all without any; the others are left empty.
func readRows(p *artifact.Part, group int, only ...artifact.Column) (*rows, error) {
	r := &rows{n: p.Rows(group)}
	return r, errors.Join(
		columns(only, map[artifact.Column]*text{
			artifact.ColRunID: &r.run, artifact.ColResultID: &r.result, artifact.ColWorkerID: &r.worker,
			artifact.ColPhase: &r.phase, artifact.ColKind: &r.kind, artifact.ColStatementID: &r.statement,
			artifact.ColErrorClass: &r.class, artifact.ColErrorCode: &r.code, artifact.ColErrorMessage: &r.message,
			artifact.ColServerQueryID: &r.queryID,
		}, func(col artifact.Column) (t text, err error) {
			t.indexes, t.values, err = p.Strings(group, col, nil)
			return t, err
		}),
		columns(only, map[artifact.Column]*[]int32{
			artifact.ColConnectionID: &r.connection, artifact.ColSeq: &r.seq, artifact.ColStep: &r.step,
			artifact.ColRows: &r.rows, artifact.ColRetries: &r.retries, artifact.ColPosition: &r.position,
		}, func(col artifact.Column) ([]int32, error) { return p.Int32s(group, col, nil) }),
		columns(only, map[artifact.Column]*[]int64{artifact.ColDueAt: &r.due, artifact.ColStartedAt: &r.started,
			artifact.ColDecodeNs: &r.decode,
		}, func(col artifact.Column) ([]int64, error) { return p.Int64s(group, col, nil) }),
		columns(only, map[artifact.Column]*[]float64{artifact.ColAppElapsedMs: &r.elapsed,
			artifact.ColScheduleLagMs: &r.lag, artifact.ColPoolWaitMs: &r.wait,
		}, func(col artifact.Column) ([]float64, error) { return p.Doubles(group, col, nil) }),
		columns(only, map[artifact.Column]*[]bool{artifact.ColWarmup: &r.warmup, artifact.ColSuccess: &r.success,
			artifact.ColRolledBack: &r.rolledBack,
		}, func(col artifact.Column) ([]bool, error) { return p.Bools(group, col, nil) }))
}

// columns reads those of one type that are wanted.
func columns[T any](only []artifact.Column, into map[artifact.Column]*T, read func(artifact.Column) (T, error)) error {
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
