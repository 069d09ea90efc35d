package results

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// rows are columns of one row group, for what needs whole rows.
type rows struct{ record.Columns }

// slowColumns are those that slow needs, replayColumns those of what is replayed, failureColumns those that tell what
// failed, shownColumns all that are shown.
var (
	slowColumns = []record.Column{record.ColWorkerID, record.ColConnectionID, record.ColSeq, record.ColKind,
		record.ColStatementID, record.ColStartedAt, record.ColAppElapsedMs, record.ColRows, record.ColSuccess,
		record.ColErrorClass, record.ColErrorMessage, record.ColServerQueryID}
	replayColumns = []record.Column{record.ColWorkerID, record.ColStatementID, record.ColKind, record.ColDueAt,
		record.ColConnectionID, record.ColSeq, record.ColPosition}
	failureColumns = []record.Column{record.ColWorkerID, record.ColKind, record.ColStatementID, record.ColErrorClass,
		record.ColErrorCode, record.ColErrorMessage, record.ColPosition, record.ColDueAt, record.ColAppElapsedMs,
		record.ColWarmup}
	shownColumns = append(slices.Clone(failureColumns), record.ColPhase, record.ColServerQueryID, record.ColConnectionID,
		record.ColSeq, record.ColStep, record.ColRows, record.ColRetries, record.ColStartedAt, record.ColDecodeNs,
		record.ColScheduleLagMs, record.ColPoolWaitMs, record.ColSuccess, record.ColRolledBack)
	csvColumns = append(slices.Clone(shownColumns), record.ColRunID, record.ColResultID)
)

func (r *rows) slow(i int) engine.SlowExecution {
	kind, err := engine.ParseKind(r.Kind.At(i))
	if err != nil {
		kind = engine.KindGenericSQL // the first pass has refused such a part
	}
	return engine.SlowExecution{
		WorkerID: r.Worker.At(i), ConnectionID: uint32(r.Connection[i]), Seq: uint32(r.Seq[i]),
		Kind: kind, StatementID: r.Statement.At(i), StartedAt: engine.At(time.Unix(0, r.Started[i])),
		AppElapsedMs: r.Elapsed[i], Rows: r.Rows[i], Success: r.Success[i],
		ErrorClass: r.Class.At(i), ErrorMessage: r.Message.At(i), ServerQueryID: r.QueryID.At(i),
	}
}
