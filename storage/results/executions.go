package results

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/worker/replay"
)

// Executions implements replay.Executions.
func (f *Results) Executions(ctx context.Context, runID string, fn func(replay.Execution) error) error {
	parts, err := f.executionParts(ctx, runID)
	if err != nil {
		return err
	}
	for _, at := range parts {
		if err := partExecutions(ctx, at, fn); err != nil {
			return err
		}
	}
	return nil
}

func partExecutions(ctx context.Context, at part, fn func(replay.Execution) error) (err error) {
	p, err := at.open(ctx)
	if err != nil {
		return fmt.Errorf("opening a part: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	transaction := engine.KindTransaction.String()
	for group := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := readRows(p, group, replayColumns...)
		if err != nil {
			return err
		}
		for i := range r.n {
			if r.position[i] != 0 {
				continue // a statement inside a transaction
			}
			if err := fn(replay.Execution{Worker: r.worker.at(i), Statement: r.statement.at(i),
				Transaction: r.kind.at(i) == transaction,
				Due:         r.due[i], Connection: uint32(r.connection[i]), Seq: uint32(r.seq[i])}); err != nil {
				return err
			}
		}
	}
	return nil
}
