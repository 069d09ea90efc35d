package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Start starts a PREPARED run and returns it as RUNNING, or as PREPARED with what it waits
// for. A run that is not PREPARED is a conflict.
func (s *Service) Start(ctx context.Context, runID, by string) (engine.Run, error) {
	return s.start(ctx, runID, by, s.opts.MaxLivePerUser)
}

// start is Start, for a user who may have so many live runs; 0 means no bound.
func (s *Service) start(ctx context.Context, runID, by string, most int) (engine.Run, error) {
	end, err := s.runs.BeginStart(runID, by, s.admission.CountWaiting(by, runID), most)
	if err != nil {
		return engine.Run{}, err
	}
	defer end()
	run, err := s.Run(ctx, runID)
	if err != nil {
		return engine.Run{}, err
	}
	if run.Status != engine.StatusPrepared {
		return engine.Run{}, query.NotPreparedError(run)
	}
	shares, err := scaling.Shares(run.Scenario)
	if err != nil {
		return engine.Run{}, err
	}
	deps := s.requestDeps()
	_, dsn, _ := deps.Connections.OpenDSN(ctx, run.Scenario.Target.Ref()) // the preparation says why it cannot
	only := s.nodes.RequiredNode(run.Scenario.Workload, dsn)
	if err := s.admission.CheckCapacity(run.Scenario, only); err != nil && run.Waiting == nil {
		return engine.Run{}, err
	}
	room := s.admission.Demand(run.Scenario, shares, only)
	// The conditional update decides who starts; only the winner takes the run over.
	clock := clock.New(s.opts.Clock)
	now := clock.Now().Truncate(time.Millisecond) // as it is told: seconds that are counted from there are these
	preparing := engine.PhasePreparing
	_, err = s.opts.Store.Transition(ctx,
		store.Transition{RunID: runID, Epoch: run.OwnerEpoch, From: []engine.Status{engine.StatusPrepared},
			To: engine.StatusRunning, Phase: &preparing, StartTime: now, Owner: s.opts.Owner, Admission: room})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrNoCapacity):
		if err := s.admission.Enqueue(ctx, runID, by, room); err != nil {
			return engine.Run{}, query.StoreError(fmt.Errorf("letting the run wait: %w", err))
		}
		return s.Run(ctx, runID)
	case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced):
		if other, readErr := s.Run(ctx, runID); readErr == nil {
			return engine.Run{}, query.NotPreparedError(other)
		}
		return engine.Run{}, query.StoreError(fmt.Errorf("starting the run: %w", err))
	default:
		// The answer may be lost and the change made: then nobody owns the run.
		s.routines.Go(func() { s.recovery.EndUnowned(runID, now) })
		return engine.Run{}, query.StoreError(fmt.Errorf("starting the run: %w", err))
	}
	epoch, err := s.recovery.Claim(ctx, runID, true)
	if err != nil {
		if epoch, err = s.recovery.ClaimWithRetry(ctx, runID); err != nil {
			// RUNNING without an owner: it is ended as soon as the store answers.
			s.routines.Go(func() { s.recovery.EndUnowned(runID, now) })
			return engine.Run{}, query.StoreError(fmt.Errorf("taking the run over: %w", err))
		}
	}
	// Between the change and the claim this process may have stood still for longer than a lease: then another server
	// has found the run without an owner, and has ended it.
	if after, err := s.Run(ctx, runID); err != nil {
		s.routines.Go(func() { s.recovery.EndUnowned(runID, now) })
		return engine.Run{}, query.StoreError(fmt.Errorf("reading the run that was taken over: %w", err))
	} else if after.Status != engine.StatusRunning {
		return engine.Run{}, query.NotPreparedError(after)
	}
	run.Status, run.Phase, run.StartTime, run.OwnerEpoch = engine.StatusRunning, preparing, engine.At(now), epoch
	workers := InitialWorkers(run.Scenario, shares)
	run.Waiting = nil
	l := newLive(s, run, clock, workers, lifecycle.New(LifecyclePlan(run, WorkerIDs(workers))), by)
	l.deps = deps
	l.scale.reservedNodes = s.admission.Assignments(room)
	s.startLoop(l)
	return run, nil
}

// checkCapacity refuses a scenario, with the DSN of its database, that the nodes can never carry, or that cannot be
// sent to them.
func (s *Service) checkCapacity(sc engine.Scenario, dsn secret.Secret) error {
	only := s.nodes.RequiredNode(sc.Workload, dsn)
	if only == "" {
		if err := s.nodes.CheckSize(protocol.AssignRun{Workload: sc.Workload}); err != nil {
			return err
		}
	}
	return s.admission.CheckCapacity(sc, only)
}

// checkNodesReach refuses a scenario whose database, with that DSN, the nodes do not reach.
func (s *Service) checkNodesReach(sc engine.Scenario, dsn secret.Secret) error {
	return s.nodes.CheckReachable(sc, dsn)
}

// startLoop begins the loop of a run.
func (s *Service) startLoop(l *runLoop) {
	s.runs.Add(l.runID, l)
	s.routines.Go(func() { l.writer.Run(s.lifetime) })
	s.routines.Go(func() { l.loop(s.lifetime) })
	s.remoteCommands.Wake() // something may be wanted of a run that is taken over
}
