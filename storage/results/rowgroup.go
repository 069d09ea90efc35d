package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
)

func openPart(ctx context.Context, kept objects.Store, runID, name string) (*record.Part, error) {
	file, err := kept.Open(ctx, runID, name)
	if err != nil {
		return nil, fmt.Errorf("opening part %s: %w", name, err)
	}
	return record.ReadPart(file, name)
}

// textLookup is a text column of a row group.
type textLookup struct {
	indexes []int32
	values  []string
}

// at returns the value of a row, "" for null.
func (t *textLookup) at(row int) string {
	if i := t.indexes[row]; i >= 0 {
		return t.values[i]
	}
	return ""
}

// rowGroupReader are columns of one row group after the other, in the same memory.
type rowGroupReader struct {
	n                                                        int
	worker, phase, kind, statement, class, code, message, id textLookup
	connection, seq, step, rows, retries, position           []int32
	due, started, decode                                     []int64
	elapsed, lag, wait                                       []float64
	warmup, success, rolledBack                              []bool
}

// readFailureColumns reads the columns that tell what failed.
func (g *rowGroupReader) readFailureColumns(p *record.Part, at int) (err error) {
	g.n = p.Rows(at)
	for _, c := range [...]struct {
		col  record.Column
		into *textLookup
	}{{record.ColWorkerID, &g.worker}, {record.ColKind, &g.kind}, {record.ColStatementID, &g.statement},
		{record.ColErrorClass, &g.class}, {record.ColErrorCode, &g.code}, {record.ColErrorMessage, &g.message}} {
		if c.into.indexes, c.into.values, err = p.Strings(at, c.col, c.into.indexes); err != nil {
			return err
		}
	}
	if g.position, err = p.Int32s(at, record.ColPosition, g.position); err != nil {
		return err
	}
	if g.due, err = p.Int64s(at, record.ColDueAt, g.due); err != nil {
		return err
	}
	if g.elapsed, err = p.Doubles(at, record.ColAppElapsedMs, g.elapsed); err != nil {
		return err
	}
	g.warmup, err = p.Bools(at, record.ColWarmup, g.warmup)
	return err
}

// readAll reads all columns that are shown.
func (g *rowGroupReader) readAll(p *record.Part, at int) (err error) {
	if err = g.readFailureColumns(p, at); err != nil {
		return err
	}
	for _, t := range [...]struct {
		col  record.Column
		into *textLookup
	}{{record.ColPhase, &g.phase}, {record.ColServerQueryID, &g.id}} {
		if t.into.indexes, t.into.values, err = p.Strings(at, t.col, t.into.indexes); err != nil {
			return err
		}
	}
	for _, c := range [...]struct {
		col  record.Column
		into *[]int32
	}{{record.ColConnectionID, &g.connection}, {record.ColSeq, &g.seq}, {record.ColStep, &g.step},
		{record.ColRows, &g.rows}, {record.ColRetries, &g.retries}} {
		if *c.into, err = p.Int32s(at, c.col, *c.into); err != nil {
			return err
		}
	}
	if g.started, err = p.Int64s(at, record.ColStartedAt, g.started); err != nil {
		return err
	}
	if g.decode, err = p.Int64s(at, record.ColDecodeNs, g.decode); err != nil {
		return err
	}
	if g.lag, err = p.Doubles(at, record.ColScheduleLagMs, g.lag); err != nil {
		return err
	}
	if g.wait, err = p.Doubles(at, record.ColPoolWaitMs, g.wait); err != nil {
		return err
	}
	if g.success, err = p.Bools(at, record.ColSuccess, g.success); err != nil {
		return err
	}
	g.rolledBack, err = p.Bools(at, record.ColRolledBack, g.rolledBack)
	return err
}

// kindOf reads the name of a kind; one of a later version is some statement.
func kindOf(name string) engine.Kind {
	kind, err := engine.ParseKind(name)
	if err != nil {
		return engine.KindGenericSQL
	}
	return kind
}

func lookupNanoseconds(ms float64) int64 { return record.Nanoseconds(ms) }
