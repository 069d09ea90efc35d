package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/load"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Load is the load of one run worker: what a node needs of engine/load.
type Load interface {
	Start(phase engine.Phase)
	SetPhase(phase engine.Phase)
	SetTarget(connections int, ramp time.Duration)
	// SetRate takes the whole run's rate.
	SetRate(rate float64, ramp time.Duration)
	SetStep(n uint16)
	Connections() (open, target int)
	Collect(s *engine.WorkerSnapshot)
	Stop()
	// DropQueued drops what is due and not begun, when a run is given up.
	DropQueued()
	Drain(ctx context.Context) error
	Close() error
	Failed() <-chan error
	// Done is closed when nothing is left to do: after Stop, or when the workload's stream has ended.
	Done() <-chan struct{}
	Totals() control.Totals
	Error(id uint32) engine.ExecutionError
}

// LoadConfig is what the load of a run worker is made of.
type LoadConfig struct {
	Plan        *engine.Plan
	Workload    engine.Workload
	Stream      plugin.Stream
	Database    target.Database
	Sink        load.Sink
	Connections int
	Share       load.Share
	Clock       *engine.Clock
	Log         zerolog.Logger
}

// OpenLoad opens all connections, or none and returns an error.
type OpenLoad func(ctx context.Context, cfg LoadConfig, progress func(open, want int)) (Load, error)

// group is a load.Group whose totals speak the language of the stream.
type group struct{ *load.Group }

func (g group) Totals() control.Totals {
	t := g.Group.Totals()
	return control.Totals{Scheduled: t.Scheduled, Dropped: t.Dropped, Started: t.Started, Succeeded: t.Succeeded,
		Failed: t.Failed, Warmup: t.Warmup,
		Drops: t.Drops, WarmupScheduled: t.WarmupScheduled, WarmupDrops: t.WarmupDrops, Connections: t.Connections,
		KeysReplaced: t.KeysReplaced}
}

func openGroup(ctx context.Context, cfg LoadConfig, progress func(open, want int)) (Load, error) {
	g, err := load.Open(ctx, load.Config{Plan: cfg.Plan, Workload: cfg.Workload, Stream: cfg.Stream,
		Database: cfg.Database, Sink: cfg.Sink, Share: cfg.Share, Clock: cfg.Clock, Log: cfg.Log},
		cfg.Connections, progress)
	if err != nil {
		return nil, err
	}
	return group{g}, nil
}
