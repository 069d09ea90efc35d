package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// RollUp adds the executions of a stored part to the seconds of its run. On an error some may have been added.
func (f *Results) RollUp(ctx context.Context, runID, name string, into *rollup.Seconds) error {
	p, err := part{f.objects, runID, name}.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	var c record.Columns
	var batch rollup.Batch
	for _, err := range c.Scan(ctx, p, batchColumns...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("reading executions from %s: %w", name, err)
		}
		fillBatch(&batch, &c)
		into.Add(&batch)
	}
	return nil
}

// batchColumns are those that seconds are made of.
var batchColumns = []record.Column{record.ColWorkerID, record.ColKind, record.ColStatementID, record.ColErrorClass,
	record.ColErrorCode, record.ColRows, record.ColPosition, record.ColDueAt, record.ColAppElapsedMs, record.ColWarmup,
	record.ColSuccess}

func fillBatch(b *rollup.Batch, c *record.Columns) {
	b.Worker, b.Kind, b.Statement, b.Class, b.Code = c.Worker, c.Kind, c.Statement, c.Class, c.Code
	b.Rows, b.Position, b.DueNs, b.Warmup, b.Success = c.Rows, c.Position, c.Due, c.Warmup, c.Success
	b.ElapsedNs = b.ElapsedNs[:0]
	for _, ms := range c.Elapsed {
		b.ElapsedNs = append(b.ElapsedNs, record.Nanoseconds(ms))
	}
}
