package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/inspect"
	"github.com/loadstone-db/loadstone/engine/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// notPrepared says why a run cannot start.
func notPrepared(run engine.Run) error {
	if run.Status.Live() {
		return &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("The run is %s since %s.", run.Status, run.StartTime.Format(engine.TimeLayout)),
			Hint:    "watch it, or create another run of the template"}
	}
	return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The run is %s already.", run.Status),
		Hint: "a run is started once; create another run of the template"}
}

// Start starts a PREPARED run and returns it as RUNNING. A run that is not
// PREPARED is a conflict.
func (s *Service) Start(ctx context.Context, runID, by string) (engine.Run, error) {
	end, err := s.runs.begin(runID, by, s.opts.MostLive)
	if err != nil {
		return engine.Run{}, err
	}
	defer end()
	run, err := s.Run(ctx, runID)
	if err != nil {
		return engine.Run{}, err
	}
	if run.Status != engine.StatusPrepared {
		return engine.Run{}, notPrepared(run)
	}
	shares, err := scaling.Shares(run.Scenario)
	if err != nil {
		return engine.Run{}, err
	}
	if err := s.fits(run.Scenario, s.runs.connections()); err != nil {
		return engine.Run{}, err
	}
	// The conditional update decides who starts; only the winner takes the run over.
	clock := engine.NewClock(s.opts.Clock)
	now := clock.Now()
	preparing := engine.PhasePreparing
	_, err = s.opts.Store.Transition(ctx,
		store.Transition{RunID: runID, Epoch: run.OwnerEpoch, From: []engine.Status{engine.StatusPrepared},
			To: engine.StatusRunning, Phase: &preparing, StartTime: now,
			Owner: s.opts.Owner})
	switch {
	case err == nil:
	case errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrFenced):
		if other, readErr := s.Run(ctx, runID); readErr == nil {
			return engine.Run{}, notPrepared(other)
		}
		return engine.Run{}, inspect.StoreError(fmt.Errorf("starting the run: %w", err))
	default:
		// The answer may be lost and the change made: then nobody owns the run.
		s.routines.Go(func() { s.recovery.Insist(runID, now) })
		return engine.Run{}, inspect.StoreError(fmt.Errorf("starting the run: %w", err))
	}
	epoch, err := s.recovery.Claim(ctx, runID, true)
	if err != nil {
		if epoch, err = s.recovery.TakeOver(ctx, runID); err != nil {
			// RUNNING without an owner: it is ended as soon as the store answers.
			s.routines.Go(func() { s.recovery.Insist(runID, now) })
			return engine.Run{}, inspect.StoreError(fmt.Errorf("taking the run over: %w", err))
		}
	}
	run.Status, run.Phase, run.StartTime, run.OwnerEpoch = engine.StatusRunning, preparing, engine.At(now), epoch
	l := newLive(s, run, clock, shares, by)
	s.runs.add(l)
	s.routines.Go(func() { l.keeper.Run(s.lifetime) })
	s.routines.Go(func() { l.loop(s.lifetime) })
	return run, nil
}
