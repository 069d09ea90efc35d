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
	var r rows
	for _, err := range r.Scan(ctx, p, replayColumns...) {
		if err != nil {
			return err
		}
		for i := range r.N {
			if r.Position[i] != 0 {
				continue // a statement inside a transaction
			}
			if err := fn(replay.Execution{Worker: r.Worker.At(i), Statement: r.Statement.At(i),
				Transaction: r.Kind.At(i) == transaction,
				Due:         r.Due[i], Connection: uint32(r.Connection[i]), Seq: uint32(r.Seq[i])}); err != nil {
				return err
			}
		}
	}
	return nil
}
