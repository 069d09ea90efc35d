package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
	"github.com/loadstone-db/loadstone/engine/fleet"
	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/machine"
	"github.com/loadstone-db/loadstone/engine/outcome"
	"github.com/loadstone-db/loadstone/engine/payload"
	"github.com/loadstone-db/loadstone/engine/store"
)

// recover finds the runs that an earlier process of this owner left behind. It
// returns when none of them is live any more, or the store does not answer. Those of
// other owners stay theirs until their leases have expired, see leases.
func (s *Service) recover(ctx context.Context) error {
	runs, err := s.opts.Store.LiveRuns(ctx)
	if err != nil {
		return storeError(fmt.Errorf("looking for live runs: %w", err))
	}
	for _, run := range runs {
		if err := s.recoverRun(ctx, run, "The server restarted", true); err != nil && !errors.Is(err, store.ErrHeld) {
			return storeError(fmt.Errorf("recovering run %s: %w", run.RunID, err))
		}
	}
	return s.sweepSpool(ctx)
}

// sweepSpool lets nodes delete parts whose run was deleted, and takes in those of
// runs that had ended without them: their folder was full, or could not be written.
func (s *Service) sweepSpool(ctx context.Context) error {
	s.mu.Lock()
	left := maps.Clone(s.salvaged)
	s.mu.Unlock()
	return s.sweep(ctx, left)
}

// sweepPostponed is sweepSpool for the runs that another server held when it was looked at last.
func (s *Service) sweepPostponed(ctx context.Context) error {
	left := map[string][]fleet.Part{}
	s.mu.Lock()
	for id := range s.postponed {
		left[id] = s.salvaged[id]
	}
	s.mu.Unlock()
	return s.sweep(ctx, left)
}

// postpone leaves parts of a run that another server holds where they are, and says so.
func (s *Service) postpone(run engine.Run, parts int) {
	s.mu.Lock()
	known := s.postponed[run.RunID]
	s.postponed[run.RunID] = true
	s.mu.Unlock()
	if !known {
		s.opts.Log.Warn().Str("run_id", run.RunID).Str("owner", run.Owner).Int("parts", parts).
			Msg("parts of a run lie here that another server holds; they are taken in when it has let go")
	}
}

func (s *Service) sweep(ctx context.Context, left map[string][]fleet.Part) error {
	for id, parts := range left {
		run, err := s.opts.Store.Run(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			for _, p := range parts {
				p.Acknowledge()
			}
			s.mu.Lock()
			delete(s.salvaged, id)
			delete(s.postponed, id)
			s.mu.Unlock()
		case err != nil:
			return storeError(fmt.Errorf("looking for run %s: %w", id, err))
		case run.Status.Live() || run.Phase == engine.PhaseProcessing:
			// Another server carries it. Its parts are looked at again with the leases.
			s.postpone(run, len(parts))
		default:
			s.mu.Lock()
			delete(s.salvaged, id)
			s.mu.Unlock()
			err := s.takeIn(ctx, run, parts)
			s.mu.Lock()
			if err == nil {
				delete(s.postponed, id)
			} else {
				s.salvaged[id] = append(s.salvaged[id], parts...)
			}
			s.mu.Unlock()
			switch {
			case errors.Is(err, store.ErrHeld):
				s.postpone(run, len(parts)) // another server is at it
			case err != nil:
				return storeError(fmt.Errorf("taking in what run %s has left: %w", id, err))
			}
		}
	}
	return nil
}

// takeIn stores parts of a run that is over, and has its results computed anew.
func (s *Service) takeIn(ctx context.Context, run engine.Run, parts []fleet.Part) error {
	e := found{Evidence: outcome.Evidence{Run: run, Parts: parts, Validity: aggregate.NewValidity()}}
	if err := s.remember(ctx, &e); err != nil {
		return err
	}
	epoch, err := s.claim(ctx, run.RunID, true)
	if err != nil {
		return err
	}
	e.Keeper = keeper.New(s.opts.Store, run.RunID, s.opts.Log)
	s.opts.Log.Warn().Str("run_id", run.RunID).Int("parts", len(parts)).Msg("parts that a run has left are taken in")
	s.routines.Go(func() { e.Keeper.Run(s.lifetime) })
	s.routines.Go(func() {
		defer e.Keeper.Close()
		o := s.outcomes.Process(s.lifetime, e.Evidence)
		if o.Summary == nil {
			return
		}
		b := keeper.LogbookAfter(s.lastLog(run.RunID))
		add := func(level engine.LogLevel, text string, about details) { b.Add(lineAfter(run, level, text, about)) }
		if len(o.Stored) > 0 {
			add(engine.LogInfo, fmt.Sprintf("%d part(s) of the record that could not be stored when the run ended were taken "+
				"in, and the figures computed again: %d operations, %s",
				len(o.Stored), o.Summary.Operations, o.Summary.Validity),
				details{"parts": len(o.Stored), "operations": o.Summary.Operations, "validity": o.Summary.Validity})
		}
		for _, text := range o.Problems {
			add(engine.LogError, text, details{})
		}
		e.Keeper.SaveTick(&store.Tick{RunID: run.RunID, Epoch: epoch, Logs: b.Take(), TotalOps: o.Summary.Operations,
			ErrorCount:        o.Summary.Errors.Count,
			WorkersRegistered: run.WorkersRegistered, WorkersCompleted: run.WorkersCompleted})
	})
	return nil
}

// recoverRun ends a run that lost its owner, and has its results computed. why
// begins the sentence that users read. It is store.ErrHeld when another owner's
// lease goes on; reclaim says that this owner's own lease does not count.
func (s *Service) recoverRun(ctx context.Context, run engine.Run, why string, reclaim bool) (err error) {
	carrier := run.Owner
	epoch, err := s.claim(ctx, run.RunID, reclaim)
	if err != nil {
		return err
	}
	s.recovers(run.RunID, true)
	defer func() {
		if err != nil {
			s.recovers(run.RunID, false)
		}
	}()
	last, err := s.lastSign(ctx, run)
	if err != nil {
		return err
	}
	now := time.Now()
	e := found{Evidence: outcome.Evidence{Validity: aggregate.NewValidity()}}
	if run.Status.Live() {
		s.mu.Lock()
		e.LostFrom, e.LostTo = recordEnds(run, last, s.salvaged[run.RunID]), now
		s.mu.Unlock()
		if run, err = s.endLost(ctx, run, epoch, why, last, e.LostFrom, now); err != nil {
			return err
		}
	}
	e.Run = run
	e.Keeper = keeper.New(s.opts.Store, run.RunID, s.opts.Log)
	s.mu.Lock()
	e.Parts = s.salvaged[run.RunID]
	s.mu.Unlock()
	e.Elsewhere = carrier != "" && carrier != s.opts.Owner && len(e.Parts) == 0 && !run.WarmupStartTime.IsZero()
	if err := s.remember(ctx, &e); err != nil {
		return err
	}
	s.mu.Lock()
	delete(s.salvaged, run.RunID)
	s.mu.Unlock()
	s.opts.Log.Warn().Str("run_id", run.RunID).Str("status", string(run.Status)).Int("parts", len(e.Parts)).
		Msg("a run of an earlier process is finished")
	s.routines.Go(func() { e.Keeper.Run(s.lifetime) })
	s.routines.Go(func() {
		defer e.Keeper.Close()
		defer s.recovers(run.RunID, false)
		s.finishRecovered(e, epoch)
	})
	return nil
}

// lastSign is the time of the last persisted second, or of the start.
func (s *Service) lastSign(ctx context.Context, run engine.Run) (time.Time, error) {
	// As few points as there can be, the last of which is that of the last second: a long run has 604 800.
	points, _, err := s.opts.Store.Series(ctx, run.RunID, store.Window{Most: 1})
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

// recordEnds is when the record of a killed run ends on the first of its workers:
// what its parts do not hold was in memory, and is lost. A worker without a part
// lost everything since the load began; before that there is nothing to lose but
// the seconds after last.
func recordEnds(run engine.Run, last time.Time, parts []fleet.Part) time.Time {
	if run.WarmupStartTime.IsZero() {
		return last
	}
	ends := map[string]time.Time{}
	for _, p := range parts {
		if end := p.Artifact.MaxTime.Time; end.After(ends[p.Artifact.WorkerID]) {
			ends[p.Artifact.WorkerID] = end
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

// endLost moves a live run to its terminal status, through the transitions that
// the contract allows. Its load was last seen at last; from lost on, its record is incomplete.
func (s *Service) endLost(ctx context.Context, run engine.Run, epoch int64, why string, last, lost,
	now time.Time) (engine.Run, error) {
	// What was decided before, by a user or a guardrail, stays decided.
	stop := run.StopReason
	if run.Status != engine.StatusCancelling || stop == "" {
		stop = engine.StopWorkerFailure
		cooldown := engine.PhaseCooldown
		reason := fmt.Sprintf("%s while the run was %s; what happened from %s to %s is lost", why, run.Status,
			lost.UTC().Format(engine.TimeLayout), now.UTC().Format(engine.TimeLayout))
		t := store.Transition{RunID: run.RunID, Epoch: epoch, From: []engine.Status{run.Status}, To: engine.StatusCancelling,
			Phase: &cooldown, StopReason: stop, CancellationReason: reason,
			Events: []engine.Event{{Type: engine.EventStop,
				Data: engine.EventData{Scope: engine.ScopeRun, Reason: string(stop), Detail: reason, InitiatedBy: "server"}}}}
		if run.Status == engine.StatusCancelling {
			t.To = ""
		}
		if run.Phase == engine.PhaseMeasurement {
			t.MeasurementEndTime = last
		}
		if _, err := s.opts.Store.Transition(ctx, t); err != nil {
			return run, err
		}
	}
	processing := engine.PhaseProcessing
	if _, err := s.opts.Store.Transition(ctx,
		store.Transition{RunID: run.RunID, Epoch: epoch, From: []engine.Status{engine.StatusCancelling}, To: stop.Outcome(),
			Phase: &processing, EndTime: now}); err != nil {
		return run, err
	}
	return s.opts.Store.Run(ctx, run.RunID)
}

// found is a run that was found without its owner.
type found struct {
	outcome.Evidence
	// known is its row of the results as the earlier process left it.
	known engine.TestResult
}

// remember reads what the earlier process had stored of the run's results.
func (s *Service) remember(ctx context.Context, e *found) error {
	rows, err := s.opts.Store.Results(ctx, e.Run.RunID)
	if err != nil {
		return err
	}
	e.Environment = machine.Environment(s.opts.Version)
	if e.Run.Scenario.Workload.Searches() {
		state, err := s.opts.Store.FindMax(ctx, e.Run.RunID)
		if err != nil {
			return err
		}
		e.Search = lifecycle.RecoveredSearch(e.Run.Scenario, state)
	}
	for _, r := range rows {
		if r.TestID == e.Run.RunID {
			e.Plan, e.known = r.Plan, r
			if r.FindMax != nil {
				e.Search = r.FindMax
			}
			if r.Environment != nil {
				e.Environment = *r.Environment
			}
			if r.Figures != nil {
				e.MeasureAt = r.Figures.MeasuredFrom.Time
			}
			if r.Validity != nil {
				for _, n := range r.Validity.Seen {
					e.Validity.Note(n)
				}
				for _, c := range r.Validity.Causes {
					if judgedAgain(c) {
						continue
					}
					e.Validity.Add(c.Cause, c.Detail, c.From.Time, c.To.Time)
				}
			}
			continue
		}
		c := outcome.Worker{ID: r.WorkerID, TestID: r.TestID}
		if r.WorkerGroupID != nil {
			c.Group = *r.WorkerGroupID
		}
		if r.Figures != nil {
			c.Totals = &engine.Totals{Accounting: r.Figures.Accounting, KeysReplaced: r.Figures.KeysReplaced}
			if held := r.Figures.Connections; held != nil {
				c.Totals.Connections = *held
			}
		}
		e.Workers = append(e.Workers, c)
	}
	for i := range e.Workers {
		c := &e.Workers[i]
		for _, p := range e.Parts {
			if c.Totals == nil && p.Artifact.TestID == c.TestID {
				c.Totals = p.Totals
			}
		}
	}
	return nil
}

// judgedAgain reports whether processing finds a stored cause again, if it still holds.
func judgedAgain(c engine.ValidityCause) bool {
	switch c.Cause {
	case aggregate.CauseErrors, aggregate.CauseNothingMeasured, aggregate.CauseKindFailed:
		return true
	case aggregate.CauseIncompleteRecord:
		return c.Detail != outcome.ServerWasDown
	}
	return false
}

// lastLog is the number of the last line of a run's log.
func (s *Service) lastLog(runID string) (seq int64) {
	ctx, cancel := context.WithTimeout(s.lifetime, keeper.StoreLimit)
	defer cancel()
	for {
		lines, err := s.opts.Store.Logs(ctx, runID, seq, "", 0)
		if err != nil || len(lines) == 0 {
			return seq
		}
		seq = lines[len(lines)-1].Seq
	}
}

// finishEnrichment asks the history of a run whose figures are there, or goes on
// with it; false when the process ends before.
func (s *Service) finishEnrichment(e found, sum *engine.Summary) bool {
	if !s.enrichments.Keeps(e.Plan) || e.known.Enrichment != nil && e.known.Enrichment.Status.Over() {
		return true
	}
	under := s.enrichments.Begin(e.Run, e.Plan)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-under.Done():
			return !under.Interrupted()
		case <-ticker.C:
			s.board.Show(e.Run.RunID, payload.Resting(&engine.RunDetail{Run: e.Run, Summary: sum, Simulated: sum.Simulated,
				Emulated: sum.Emulated, Enrichment: under.State()}, time.Now()), false)
		}
	}
}

// finishRecovered computes the results and takes the last step of the run.
func (s *Service) finishRecovered(e found, epoch int64) {
	o := &outcome.Outcome{Summary: outcome.Summarize(e.Run, e.known)}
	// Figures that were stored before the restart are final.
	if o.Summary == nil {
		o = s.outcomes.Process(s.lifetime, e.Evidence)
	}
	if o.Summary == nil {
		return
	}
	none := engine.PhaseNone
	if !s.finishEnrichment(e, o.Summary) {
		return // the next process goes on with it
	}
	notSetBack := s.setBack(e.Run, e.Plan)
	logs := []engine.LogEntry{}
	seq := s.lastLog(e.Run.RunID)
	add := func(level engine.LogLevel, text string, about details) {
		seq++
		line := lineAfter(e.Run, level, text, about)
		line.Seq = seq
		logs = append(logs, line)
	}
	if e.Run.CancellationReason != nil {
		add(engine.LogWarning, told(e.Run.Status)+": "+*e.Run.CancellationReason,
			details{"reason": *e.Run.CancellationReason})
	}
	s.mu.Lock()
	for _, p := range s.aside[e.Run.RunID] {
		add(engine.LogError, fmt.Sprintf("A part of %s, %s, cannot be opened and was moved aside: %s", p.WorkerID, p.Name,
			p.Reason), details{"worker_id": p.WorkerID, "part": p.Name, "error": p.Reason})
	}
	s.mu.Unlock()
	add(engine.LogInfo, "The run was finished after a restart of the server", details{})
	if e.Elsewhere {
		add(engine.LogWarning, outcome.RecordElsewhere, details{"record": "elsewhere"})
	}
	for _, text := range o.Problems {
		add(engine.LogError, text, details{})
	}
	if notSetBack != "" {
		add(engine.LogError, notSetBack, details{"restore": e.Plan.Restore})
	}
	e.Keeper.SaveTick(&store.Tick{RunID: e.Run.RunID, Epoch: epoch, Logs: logs, TotalOps: e.Run.TotalOps,
		ErrorCount: e.Run.ErrorCount, WorkersRegistered: e.Run.WorkersRegistered, WorkersCompleted: e.Run.WorkersCompleted})
	j := e.Keeper.Transition(store.Transition{RunID: e.Run.RunID, Epoch: epoch, From: []engine.Status{e.Run.Status},
		Phase: &none}, nil)
	select {
	case <-j.Done():
	case <-s.lifetime.Done():
		return
	}
	s.board.Show(e.Run.RunID, payload.Resting(&engine.RunDetail{Run: e.Run, Summary: o.Summary,
		Simulated: o.Summary.Simulated, Emulated: o.Summary.Emulated,
		Enrichment: s.enrichments.State(e.Run.RunID, s.enrichments.Stored(e.Run.RunID), e.Plan)}, time.Now()), true)
}
