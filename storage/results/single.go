package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// ReadExecutions calls fn with all rows of a stored part, some thousands at a time. They are valid until fn returns.
func (f *Results) ReadExecutions(ctx context.Context, runID, name string, fn func(*rollup.Executions) error) error {
	p, err := part{f.objects, runID, name}.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	var all rollup.Executions
	for group := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := readSingle(p, group, &all); err != nil {
			return fmt.Errorf("reading executions from %s: %w", name, err)
		}
		if err := fn(&all); err != nil {
			return err
		}
	}
	return nil
}

func readSingle(p *record.Part, group int, e *rollup.Executions) (err error) {
	if e.ElapsedMs, err = readBatch(p, group, &e.Batch, e.ElapsedMs); err != nil {
		return err
	}
	for _, c := range [...]struct {
		col  record.Column
		into *[]int32
	}{{record.ColConnectionID, &e.Connection}, {record.ColSeq, &e.Seq}, {record.ColStep, &e.Step},
		{record.ColRetries, &e.Retries}} {
		if *c.into, err = p.Int32s(group, c.col, *c.into); err != nil {
			return err
		}
	}
	for _, c := range [...]struct {
		col  record.Column
		into *rollup.Texts
	}{{record.ColErrorMessage, &e.Message}, {record.ColServerQueryID, &e.QueryID}} {
		if c.into.Index, c.into.Values, err = p.Strings(group, c.col, c.into.Index); err != nil {
			return err
		}
	}
	if e.StartedNs, err = p.Int64s(group, record.ColStartedAt, e.StartedNs); err != nil {
		return err
	}
	if e.DecodeNs, err = p.Int64s(group, record.ColDecodeNs, e.DecodeNs); err != nil {
		return err
	}
	if e.LagMs, err = p.Doubles(group, record.ColScheduleLagMs, e.LagMs); err != nil {
		return err
	}
	if e.WaitMs, err = p.Doubles(group, record.ColPoolWaitMs, e.WaitMs); err != nil {
		return err
	}
	e.RolledBack, err = p.Bools(group, record.ColRolledBack, e.RolledBack)
	return err
}
