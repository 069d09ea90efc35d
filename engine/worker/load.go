package worker

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// Load is the load of one run worker: what a node needs of engine/worker/load.
type Load interface {
	Start(phase engine.Phase)
	SetPhase(phase engine.Phase)
	SetTarget(connections int, ramp time.Duration)
	// SetRate takes the whole run's rate.
	SetRate(rate float64, ramp time.Duration)
	SetStep(n uint16)
	Connections() (open, target int)
	Collect(s *engine.WorkerSnapshot)
	// SetDeadline says until when operations may be issued; see load.Group.
	SetDeadline(until time.Time)
	Stop()
	// DropQueued drops what is due and not begun, when a run is given up.
	DropQueued()
	Drain(ctx context.Context) error
	Close() error
	Failed() <-chan error
	// Done is closed when nothing is left to do: after Stop, or when the workload's stream has ended.
	Done() <-chan struct{}
	Totals() engine.Totals
	Error(id uint32) engine.ExecutionError
}

// OpenLoad opens all connections, or none and returns an error; progress may be called from several goroutines.
type OpenLoad func(ctx context.Context, cfg load.Config, connections int, progress func(open, want int)) (Load, error)

func openLoad(
	ctx context.Context, cfg load.Config, connections int, progress func(open, want int),
) (Load, error) {
	g, err := load.Open(ctx, cfg, connections, progress)
	if err != nil {
		return nil, err // not a Load that is nil
	}
	return g, nil
}
