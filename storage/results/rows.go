package results

import (
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

func readRows(p *artifact.Part, group int) (*rows, error) {
	r := &rows{n: p.Rows(group)}
	for col, t := range map[artifact.Column]*text{
		artifact.ColRunID: &r.run, artifact.ColResultID: &r.result, artifact.ColWorkerID: &r.worker,
		artifact.ColPhase: &r.phase, artifact.ColKind: &r.kind, artifact.ColStatementID: &r.statement,
		artifact.ColErrorClass: &r.class, artifact.ColErrorCode: &r.code, artifact.ColErrorMessage: &r.message,
		artifact.ColServerQueryID: &r.queryID,
	} {
		var err error
		if t.indexes, t.values, err = p.Strings(group, col, nil); err != nil {
			return nil, err
		}
	}
	for col, v := range map[artifact.Column]*[]int32{
		artifact.ColConnectionID: &r.connection, artifact.ColSeq: &r.seq, artifact.ColStep: &r.step,
		artifact.ColRows: &r.rows, artifact.ColRetries: &r.retries,
		artifact.ColPosition: &r.position,
	} {
		var err error
		if *v, err = p.Int32s(group, col, nil); err != nil {
			return nil, err
		}
	}
	for col, v := range map[artifact.Column]*[]int64{artifact.ColDueAt: &r.due, artifact.ColStartedAt: &r.started,
		artifact.ColDecodeNs: &r.decode} {
		var err error
		if *v, err = p.Int64s(group, col, nil); err != nil {
			return nil, err
		}
	}
	for col, v := range map[artifact.Column]*[]float64{
		artifact.ColAppElapsedMs: &r.elapsed, artifact.ColScheduleLagMs: &r.lag, artifact.ColPoolWaitMs: &r.wait,
	} {
		var err error
		if *v, err = p.Doubles(group, col, nil); err != nil {
			return nil, err
		}
	}
	for col, v := range map[artifact.Column]*[]bool{artifact.ColWarmup: &r.warmup, artifact.ColSuccess: &r.success,
		artifact.ColRolledBack: &r.rolledBack} {
		var err error
		if *v, err = p.Bools(group, col, nil); err != nil {
			return nil, err
		}
	}
	return r, nil
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
