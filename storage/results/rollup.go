package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/rollup"
)

// RollUp adds the executions of a stored part to the seconds of its run. On an error some may have been added.
func (f *Results) RollUp(ctx context.Context, runID, name string, into *rollup.Seconds) error {
	p, err := part{f.objects, runID, name}.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	for group := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := rollUpGroup(p, group, into); err != nil {
			return fmt.Errorf("reading executions from %s: %w", name, err)
		}
	}
	return nil
}

func rollUpGroup(p *artifact.Part, group int, into *rollup.Seconds) error {
	r := &rows{n: p.Rows(group)}
	for col, t := range map[artifact.Column]*text{artifact.ColWorkerID: &r.worker, artifact.ColKind: &r.kind,
		artifact.ColStatementID: &r.statement, artifact.ColErrorClass: &r.class, artifact.ColErrorCode: &r.code} {
		var err error
		if t.indexes, t.values, err = p.Strings(group, col, nil); err != nil {
			return err
		}
	}
	var err error
	if r.rows, err = p.Int32s(group, artifact.ColRows, nil); err != nil {
		return err
	}
	if r.position, err = p.Int32s(group, artifact.ColPosition, nil); err != nil {
		return err
	}
	if r.due, err = p.Int64s(group, artifact.ColDueAt, nil); err != nil {
		return err
	}
	if r.elapsed, err = p.Doubles(group, artifact.ColAppElapsedMs, nil); err != nil {
		return err
	}
	if r.warmup, err = p.Bools(group, artifact.ColWarmup, nil); err != nil {
		return err
	}
	if r.success, err = p.Bools(group, artifact.ColSuccess, nil); err != nil {
		return err
	}
	for i := range r.n {
		into.Add(&rollup.Execution{DueNs: r.due[i], ElapsedNs: nanoseconds(r.elapsed[i]), Rows: r.rows[i],
			Warmup: r.warmup[i], Success: r.success[i], Inside: r.position[i] != 0, Kind: r.kind.at(i),
			Statement: r.statement.at(i), Worker: r.worker.at(i), Class: r.class.at(i), Code: r.code.at(i)})
	}
	return nil
}
