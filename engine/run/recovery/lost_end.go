package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	resultsrecord "github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// lastPersisted is the time of the last persisted second, or of the start.
func (s *Service) lastPersisted(ctx context.Context, run engine.Run) (time.Time, error) {
	// As few points as there can be, the last of which is that of the last second: a long run has 604 800.
	points, _, err := s.opts.Store.Series(ctx, run.RunID, store.Window{MaxPoints: 1})
	if err != nil {
		return time.Time{}, err
	}
	if n := len(points); n > 0 {
		return points[n-1].Timestamp.Time, nil
	}
	for _, t := range []engine.Time{run.WarmupStartTime, run.StartTime, run.UpdatedAt} {
		if !t.IsZero() {
			return t.Time, nil
		}
	}
	return time.Now(), nil
}

// recordParts are the parts of executions that a run has left: those that nodes hold, and
// those that were stored beside its load.
func (s *Service) recordParts(ctx context.Context, runID string) ([]engine.Artifact, error) {
	stored, err := s.opts.Store.Artifacts(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("looking for the record of run %s: %w", runID, err)
	}
	record := slices.DeleteFunc(stored, func(a engine.Artifact) bool { return a.Kind != resultsrecord.KindExecutions })
	s.mu.Lock()
	parts := s.parts.ofRun(runID)
	s.mu.Unlock()
	if parts, err = s.trustedParts(ctx, runID, parts); err != nil {
		return nil, err
	}
	for _, p := range parts {
		if p.Artifact.Kind != resultsrecord.KindParams {
			record = append(record, p.Artifact)
		}
	}
	return record, nil
}

// recordEnd is when the record of a killed run ends on the first of its workers:
// what its parts do not hold was in memory, and is lost. A worker without a part
// lost everything since the load began; before that there is nothing to lose but
// the seconds after last.
func recordEnd(run engine.Run, last time.Time, parts []engine.Artifact) time.Time {
	if run.WarmupStartTime.IsZero() {
		return last
	}
	ends := map[string]time.Time{}
	for _, a := range parts {
		if end := a.MaxTime.Time; end.After(ends[a.WorkerID]) {
			ends[a.WorkerID] = end
		}
	}
	// Every run worker that ever had a target has a record, also one that has left.
	if len(ends) < max(run.WorkersExpected, len(run.WorkerTargets)) {
		return run.WarmupStartTime.Time
	}
	first := last
	for _, end := range ends {
		if end.Before(first) {
			first = end
		}
	}
	return first
}

// lastSeen is when a run that is lost was last heard of: by the last second of it that was persisted, or what is
// recorded behind that. One whose load had not begun told of itself by its row, which was last written at told.
func lastSeen(run engine.Run, last, told, now time.Time, parts []engine.Artifact) time.Time {
	if run.WarmupStartTime.IsZero() {
		// The row has the time of the store, whose clock may be ahead.
		if told.After(now) {
			told = now
		}
		if told.After(run.StartTime.Time) {
			return told
		}
		return last
	}
	for _, a := range parts {
		if a.MaxTime.After(last) {
			last = a.MaxTime.Time
		}
	}
	return last
}

// mayContinue reports whether the load of a run may go on without the process that carried it: nodes end it when they
// hear that it is over, or have heard of nobody for as long as they go on alone.
func (s *Service) mayContinue(ctx context.Context, runID string) (bool, error) {
	rows, err := s.opts.Store.Workers(ctx, runID)
	return slices.ContainsFunc(rows, func(w store.WorkerRow) bool {
		return Worker{Status: w.Status, NodeID: w.NodeID}.MayBeRemote()
	}), err
}

// pendingStop is a STOP of the run that nobody has answered, nil where there is none: its owner has ended before it
// could.
func (s *Service) pendingStop(ctx context.Context, runID string) (*lifecycle.StopRequested, error) {
	commands, err := s.opts.Store.PendingRunCommands(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for a STOP of run %s: %w", runID, err)
	}
	for _, w := range commands {
		if w.RunID == runID && w.Kind == store.CommandStop {
			stop := lifecycle.UserStop(w.By)
			return &stop, nil
		}
	}
	return nil, nil
}

// cancel stores that a live run with nobody to end its load is cancelled as it was asked for.
func (s *Service) cancel(ctx context.Context, run engine.Run, last time.Time, stop lifecycle.StopRequested) (
	engine.Run, error) {
	cooldown := engine.PhaseCooldown
	t := store.Transition{RunID: run.RunID, Epoch: run.OwnerEpoch, From: []engine.Status{run.Status},
		To: engine.StatusCancelling, Phase: &cooldown, StopReason: stop.Reason, CancellationReason: stop.Message,
		Events: []engine.Event{{Type: engine.EventStop, Data: engine.EventData{Scope: engine.ScopeRun,
			Reason: string(stop.Reason), Detail: stop.Message, InitiatedBy: stop.By}}}}
	if run.Status == engine.StatusCancelling {
		t.To = ""
	}
	if run.Phase == engine.PhaseMeasurement {
		t.MeasurementEndTime = last
	}
	if _, err := s.opts.Store.Transition(ctx, t); err != nil {
		return run, err
	}
	return s.opts.Store.Run(ctx, run.RunID)
}

// TakeOverToStop takes a run over whose owner has not heard that it is to be stopped, by the number of that command. It
// returns when the stop is under way, and goes on without ctx.
func (s *Service) TakeOverToStop(ctx context.Context, runID string, command int64) error {
	if s.opts.Runs.Closed() {
		return nil
	}
	begun, ended := make(chan struct{}), make(chan error, 1)
	s.opts.Routines.Go(func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), writer.StoreTimeout)
		defer cancel()
		defer context.AfterFunc(s.opts.Lifetime, cancel)() //nolint:contextcheck // the process ends what outlives its request
		run, err := s.opts.Store.Run(limited, runID)
		if err == nil && run.Status.Live() {
			err = s.takeOver(limited, run, "The server that carried it did not answer", takeover{
				Claim:    store.Claim{RunID: runID, Owner: s.opts.Owner, Command: command},
				stopping: func() { close(begun) }})
		}
		if errors.Is(err, store.ErrLeaseHeld) || errors.Is(err, errAlreadyHandled) {
			err = nil // another server does it, or this one is at it
		}
		ended <- err // room: one answer, and the channel holds one
	})
	select {
	case <-begun:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lostEnd is what is known of the end of a run that lost its owner: why that was, as finish says it; when its load was
// last seen, and when it was last heard of; its end, which is that unless its load may go on; from when to when its
// record may be incomplete.
type lostEnd struct {
	reason                        string
	last, lastSeen, end, from, to time.Time
}

// endLost moves a live run to its terminal status, through the transitions that
// the contract allows.
func (s *Service) endLost(ctx context.Context, run engine.Run, epoch int64, l lostEnd) (engine.Run, error) {
	// What was decided before, by a user or a guardrail, stays decided.
	stop := run.StopReason
	if run.Status != engine.StatusCancelling || stop == "" {
		stop = engine.StopWorkerFailure
		cooldown := engine.PhaseCooldown
		at := func(t time.Time) string { return t.UTC().Format(engine.TimeLayout) }
		reason := fmt.Sprintf("%s while the run was %s, last heard of at %s; its executions from %s to %s are not recorded",
			l.reason, run.Status, at(l.lastSeen), at(l.from), at(l.to))
		if run.WarmupStartTime.IsZero() {
			reason = fmt.Sprintf("%s while the run was %s, before its load began; it was last heard of at %s", l.reason,
				run.Status, at(l.lastSeen))
		}
		t := store.Transition{RunID: run.RunID, Epoch: epoch, From: []engine.Status{run.Status}, To: engine.StatusCancelling,
			Phase: &cooldown, StopReason: stop, CancellationReason: reason,
			Events: []engine.Event{{Type: engine.EventStop,
				Data: engine.EventData{Scope: engine.ScopeRun, Reason: string(stop), Detail: reason, InitiatedBy: "server"}}}}
		if run.Status == engine.StatusCancelling {
			t.To = ""
		}
		if run.Phase == engine.PhaseMeasurement {
			t.MeasurementEndTime = l.last
		}
		if _, err := s.opts.Store.Transition(ctx, t); err != nil {
			return run, err
		}
	}
	processing := engine.PhaseProcessing
	if _, err := s.opts.Store.Transition(ctx,
		store.Transition{RunID: run.RunID, Epoch: epoch, From: []engine.Status{engine.StatusCancelling}, To: stop.Outcome(),
			Phase: &processing, EndTime: l.end}); err != nil {
		return run, err
	}
	return s.opts.Store.Run(ctx, run.RunID)
}
