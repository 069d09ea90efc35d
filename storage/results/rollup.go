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
	r := &batchReader{p: p}
	for group := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.read(group); err != nil {
			return fmt.Errorf("reading executions from %s: %w", name, err)
		}
		into.Add(&r.batch)
	}
	return nil
}

// batchReader reads row group after row group into the same memory.
type batchReader struct {
	p       *record.Part
	batch   rollup.Batch
	elapsed []float64
}

func (r *batchReader) read(group int) (err error) {
	r.elapsed, err = readBatch(r.p, group, &r.batch, r.elapsed)
	return err
}

// readBatch reads the columns that seconds are made of; elapsed is memory for milliseconds, and comes back with them.
func readBatch(p *record.Part, group int, b *rollup.Batch, elapsed []float64) (_ []float64, err error) {
	for _, c := range [...]struct {
		col  record.Column
		into *rollup.Texts
	}{{record.ColWorkerID, &b.Worker}, {record.ColKind, &b.Kind}, {record.ColStatementID, &b.Statement},
		{record.ColErrorClass, &b.Class}, {record.ColErrorCode, &b.Code}} {
		if c.into.Index, c.into.Values, err = p.Strings(group, c.col, c.into.Index); err != nil {
			return nil, err
		}
	}
	if b.Rows, err = p.Int32s(group, record.ColRows, b.Rows); err != nil {
		return nil, err
	}
	if b.Position, err = p.Int32s(group, record.ColPosition, b.Position); err != nil {
		return nil, err
	}
	if b.DueNs, err = p.Int64s(group, record.ColDueAt, b.DueNs); err != nil {
		return nil, err
	}
	if elapsed, err = p.Doubles(group, record.ColAppElapsedMs, elapsed); err != nil {
		return nil, err
	}
	b.ElapsedNs = b.ElapsedNs[:0]
	for _, ms := range elapsed {
		b.ElapsedNs = append(b.ElapsedNs, nanoseconds(ms))
	}
	if b.Warmup, err = p.Bools(group, record.ColWarmup, b.Warmup); err != nil {
		return nil, err
	}
	b.Success, err = p.Bools(group, record.ColSuccess, b.Success)
	return elapsed, err
}
