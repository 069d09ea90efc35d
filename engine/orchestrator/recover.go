package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
	"github.com/loadstone-db/loadstone/engine/store"
)

// recover finds the runs that an earlier process left behind. It returns when
// none of them is live any more, or the store does not answer.
func (s *Service) recover(ctx context.Context) error {
	runs, err := s.opts.Store.LiveRuns(ctx)
	if err != nil {
		return storeError(fmt.Errorf("looking for live runs: %w", err))
	}
	for _, run := range runs {
		if err := s.recoverRun(ctx, run); err != nil {
			return storeError(fmt.Errorf("recovering run %s: %w", run.RunID, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[string]bool{}
	for _, run := range runs {
		known[run.RunID] = true
	}
	for id, parts := range s.salvaged {
		if !known[id] {
			s.opts.Log.Warn().Str("run_id", id).Int("parts", len(parts)).Msg("parts of a run that is over are left in the spool")
		}
	}
	return nil
}

// recoverRun ends a run whose process was killed, and has its results computed.
func (s *Service) recoverRun(ctx context.Context, run engine.Run) error {
	epoch, err := s.opts.Store.TakeOver(ctx, run.RunID)
	if err != nil {
		return err
	}
	last, err := s.lastSign(ctx, run)
	if err != nil {
		return err
	}
	now := time.Now()
	e := ending{validity: aggregate.NewValidity()}
	if run.Status.Live() {
		e.lostFrom, e.lostTo = last, now
		if run, err = s.endLost(ctx, run, epoch, last, now); err != nil {
			return err
		}
	}
	e.run = run
	e.keeper = newKeeper(s.opts.Store, run.RunID, s.opts.Log)
	if err := s.remember(ctx, &e); err != nil {
		return err
	}
	s.mu.Lock()
	e.parts = s.salvaged[run.RunID]
	delete(s.salvaged, run.RunID)
	s.mu.Unlock()
	s.opts.Log.Warn().Str("run_id", run.RunID).Str("status", string(run.Status)).Int("parts", len(e.parts)).Msg("a run of an earlier process is finished")
	s.routines.Go(func() { e.keeper.run(s.lifetime) })
	s.routines.Go(func() {
		defer e.keeper.close()
		s.finishRecovered(e, epoch)
	})
	return nil
}

// lastSign is the time of the last persisted second, or of the start.
func (s *Service) lastSign(ctx context.Context, run engine.Run) (time.Time, error) {
	points, err := s.opts.Store.Points(ctx, run.RunID)
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

// endLost moves a live run to its terminal status, through the transitions that
// the contract allows.
func (s *Service) endLost(ctx context.Context, run engine.Run, epoch int64, last, now time.Time) (engine.Run, error) {
	reason := fmt.Sprintf("The server restarted while the run was %s; what happened from %s to %s is lost", run.Status, last.UTC().Format(engine.TimeLayout), now.UTC().Format(engine.TimeLayout))
	stop := engine.StopWorkerFailure
	to := engine.StatusFailed
	if run.Status == engine.StatusCancelling && run.StopReason == engine.StopUserRequested {
		// The user's decision was acknowledged before the restart.
		stop, to = run.StopReason, engine.StatusCancelled
		reason = reasonUser
	}
	if run.Status != engine.StatusCancelling {
		cooldown := engine.PhaseCooldown
		t := store.Transition{RunID: run.RunID, Epoch: epoch, From: []engine.Status{run.Status}, To: engine.StatusCancelling, Phase: &cooldown, StopReason: stop, CancellationReason: reason,
			Events: []engine.Event{{Type: engine.EventStop, Data: engine.EventData{Scope: engine.ScopeRun, Reason: string(stop), Detail: reason, InitiatedBy: "server"}}}}
		if run.Phase == engine.PhaseMeasurement {
			t.MeasurementEndTime = last
		}
		if _, err := s.opts.Store.Transition(ctx, t); err != nil {
			return run, err
		}
	}
	processing := engine.PhaseProcessing
	if _, err := s.opts.Store.Transition(ctx, store.Transition{RunID: run.RunID, Epoch: epoch, From: []engine.Status{engine.StatusCancelling}, To: to, Phase: &processing, EndTime: now, StopReason: stop, CancellationReason: reason}); err != nil {
		return run, err
	}
	return s.opts.Store.Run(ctx, run.RunID)
}

// remember reads what the earlier process had stored of the run's results.
func (s *Service) remember(ctx context.Context, e *ending) error {
	rows, err := s.opts.Store.Results(ctx, e.run.RunID)
	if err != nil {
		return err
	}
	e.environment = environment(s.opts.Version)
	for _, r := range rows {
		if r.TestID == e.run.RunID {
			e.plan = r.Plan
			if r.Environment != nil {
				e.environment = *r.Environment
			}
			if r.Validity != nil {
				for _, c := range r.Validity.Causes {
					e.validity.Add(c.Cause, c.Detail, c.From.Time, c.To.Time)
				}
			}
			continue
		}
		c := child{workerID: r.WorkerID, testID: r.TestID}
		if r.WorkerGroupID != nil {
			c.group = *r.WorkerGroupID
		}
		e.children = append(e.children, c)
	}
	return nil
}

// lastLog is the number of the last line of a run's log.
func (s *Service) lastLog(runID string) (seq int64) {
	ctx, cancel := context.WithTimeout(s.lifetime, storeLimit)
	defer cancel()
	for {
		lines, err := s.opts.Store.Logs(ctx, runID, seq, "", 0)
		if err != nil || len(lines) == 0 {
			return seq
		}
		seq = lines[len(lines)-1].Seq
	}
}

// finishRecovered computes the results and takes the last step of the run.
func (s *Service) finishRecovered(e ending, epoch int64) {
	o := s.process(s.lifetime, e)
	if o.summary == nil {
		return
	}
	none := engine.PhaseNone
	logs := []engine.LogEntry{}
	seq := s.lastLog(e.run.RunID)
	reason := "The run was finished after a restart of the server"
	if e.run.CancellationReason != nil {
		reason = *e.run.CancellationReason
	}
	for _, text := range append([]string{reason}, o.problems...) {
		seq++
		logs = append(logs, engine.LogEntry{Seq: seq, RunID: e.run.RunID, TestID: e.run.RunID, Level: engine.LogError, Message: text, Timestamp: engine.At(time.Now())})
	}
	e.keeper.saveTick(&store.Tick{RunID: e.run.RunID, Epoch: epoch, Logs: logs, TotalOps: e.run.TotalOps, ErrorCount: e.run.ErrorCount, WorkersRegistered: e.run.WorkersRegistered, WorkersCompleted: e.run.WorkersCompleted})
	j := e.keeper.transition(store.Transition{RunID: e.run.RunID, Epoch: epoch, From: []engine.Status{e.run.Status}, Phase: &none}, nil)
	select {
	case <-j.done:
	case <-s.lifetime.Done():
		return
	}
	s.publish(e.run.RunID, restingPayload(engine.RunDetail{Run: e.run, Summary: o.summary}), true)
}
