package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/rollup"
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

func readSingle(p *artifact.Part, group int, e *rollup.Executions) (err error) {
	if e.ElapsedMs, err = readBatch(p, group, &e.Batch, e.ElapsedMs); err != nil {
		return err
	}
	for _, c := range [...]struct {
		col  artifact.Column
		into *[]int32
	}{{artifact.ColConnectionID, &e.Connection}, {artifact.ColSeq, &e.Seq}, {artifact.ColStep, &e.Step},
		{artifact.ColRetries, &e.Retries}} {
		if *c.into, err = p.Int32s(group, c.col, *c.into); err != nil {
			return err
		}
	}
	for _, c := range [...]struct {
		col  artifact.Column
		into *rollup.Texts
	}{{artifact.ColErrorMessage, &e.Message}, {artifact.ColServerQueryID, &e.QueryID}} {
		if c.into.Index, c.into.Values, err = p.Strings(group, c.col, c.into.Index); err != nil {
			return err
		}
	}
	if e.StartedNs, err = p.Int64s(group, artifact.ColStartedAt, e.StartedNs); err != nil {
		return err
	}
	if e.DecodeNs, err = p.Int64s(group, artifact.ColDecodeNs, e.DecodeNs); err != nil {
		return err
	}
	if e.LagMs, err = p.Doubles(group, artifact.ColScheduleLagMs, e.LagMs); err != nil {
		return err
	}
	if e.WaitMs, err = p.Doubles(group, artifact.ColPoolWaitMs, e.WaitMs); err != nil {
		return err
	}
	e.RolledBack, err = p.Bools(group, artifact.ColRolledBack, e.RolledBack)
	return err
}
