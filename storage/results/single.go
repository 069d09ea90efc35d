package results

import (
	"context"
	"fmt"
	"slices"

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
	var c record.Columns
	for _, err := range c.Scan(ctx, p, singleColumns...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("reading executions from %s: %w", name, err)
		}
		fillBatch(&all.Batch, &c)
		all.Connection, all.Seq, all.Step, all.Retries = c.Connection, c.Seq, c.Step, c.Retries
		all.StartedNs, all.DecodeNs, all.RolledBack = c.Started, c.Decode, c.RolledBack
		all.ElapsedMs, all.LagMs, all.WaitMs = c.Elapsed, c.Lag, c.Wait
		all.Message, all.QueryID = c.Message, c.QueryID
		if err := fn(&all); err != nil {
			return err
		}
	}
	return nil
}

// singleColumns are all that single executions have besides.
var singleColumns = append(slices.Clone(batchColumns), record.ColConnectionID, record.ColSeq, record.ColStep,
	record.ColRetries, record.ColErrorMessage, record.ColServerQueryID, record.ColStartedAt, record.ColDecodeNs,
	record.ColScheduleLagMs, record.ColPoolWaitMs, record.ColRolledBack)
