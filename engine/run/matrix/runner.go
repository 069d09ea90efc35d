package matrix

import (
	"context"
	"errors"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// runMatrix makes the runs of a matrix that this owner holds, in the background. One
// that is being cancelled is only ended.
func (s *Service) runMatrix(m engine.MatrixRun, by string) {
	stopping, stop := context.WithCancel(context.Background())
	life, lose := context.WithCancel(s.lifetime)
	g := &activeMatrix{stop: stop, abandon: lose, done: make(chan struct{})}
	g.leaseHeld()
	s.mu.Lock()
	if _, there := s.active[m.MatrixID]; there {
		s.mu.Unlock()
		stop()
		lose()
		return
	}
	s.active[m.MatrixID] = g
	s.mu.Unlock()
	if m.Status == engine.StatusCancelling {
		stop()
	}
	s.routines.Go(func() {
		defer stop()
		defer lose()
		c := runner{Service: s, activeMatrix: g, life: life, stopping: stopping, by: by}
		c.runs(m)
		s.mu.Lock()
		delete(s.active, m.MatrixID)
		s.mu.Unlock()
		close(g.done)
	})
}

// runner makes the runs of one matrix.
type runner struct {
	*Service
	*activeMatrix
	life     context.Context // ends with the service's, or with the lease
	stopping context.Context // ends when the matrix is to end
	by       string
}

// runs makes the runs in order and ends the matrix. When its life ends it returns
// and leaves everything as it is.
func (c runner) runs(m engine.MatrixRun) {
	log := c.opts.Log.With().Str("matrix_id", m.MatrixID).Logger()
	var members []store.RunRow
	if !c.retry(func(ctx context.Context) (err error) {
		members, err = c.opts.Store.MatrixRuns(ctx, m.MatrixID)
		return err
	}) {
		return
	}
	failed := false
	for _, member := range members {
		status, ok := c.runOne(member, failed && m.StopOnFailure)
		if !ok {
			return
		}
		failed = failed || status != engine.StatusCompleted
		log.Info().Str("run_id", member.RunID).Str("status", string(status)).Msg("a run of the matrix has ended")
	}
	outcome := engine.StatusCompleted
	switch {
	case c.stopping.Err() != nil:
		outcome = engine.StatusCancelled
	case failed:
		outcome = engine.StatusFailed
	}
	c.retry(func(ctx context.Context) error {
		return c.opts.Store.TransitionMatrix(ctx,
			store.MatrixTransition{MatrixID: m.MatrixID,
				From: []engine.Status{engine.StatusPrepared, engine.StatusRunning, engine.StatusCancelling},
				To:   outcome, At: time.Now(), Holder: c.opts.Owner})
	})
}

// runOne makes one run and returns its status when its figures are there; ok is
// false when the carrier's life ended before. One that must not start is cancelled.
func (c runner) runOne(member store.RunRow, skip bool) (status engine.Status, ok bool) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	asked, told := false, false
	for {
		var d engine.RunDetail
		if !c.retry(func(ctx context.Context) (err error) { d, err = c.opts.Runs.Detail(ctx, member.RunID); return err }) {
			return "", false
		}
		stop := skip || c.stopping.Err() != nil
		switch {
		case d.Status == "":
			return engine.StatusFailed, true // deleted meanwhile
		case d.Status.Terminal() && (d.Phase != engine.PhaseProcessing || d.Summary != nil):
			// The enrichment may go on for minutes; it is the server's alone, and asks every 10 s.
			return d.Status, true
		case d.Status == engine.StatusPrepared && !stop && !c.leaseValid():
			// Another process may have taken the matrix over; the next renewal tells.
		case d.Status == engine.StatusPrepared && !stop && d.Waiting != nil:
			// It is in the queue for the nodes, and is started in its turn.
		case d.Status == engine.StatusPrepared && !stop:
			may, ended := c.authorize(member.RunID)
			if ended {
				return engine.StatusCancelled, true
			}
			if !may {
				break
			}
			if _, err := c.opts.Runs.Start(c.life, member.RunID, c.by); err != nil && c.life.Err() == nil {
				// What cannot be started now is a failure of this target only.
				c.opts.Log.Warn().Err(err).Str("run_id", member.RunID).Msg("a run of a matrix could not be started")
				skip = engine.AsError(err).Code != engine.CodeConflict
			}
		case !d.Status.Terminal() && stop && !asked:
			if _, err := c.opts.Runs.Stop(c.life, member.RunID, c.by); err == nil {
				asked = true
			}
		}
		stopped := c.stopping.Done()
		if told {
			stopped = nil // from then on the clock is enough
		}
		select {
		case <-tick.C:
		case <-stopped:
			told = true
		case <-c.life.Done():
			return "", false
		}
	}
}

// authorize tells whether a run may begin still; ended tells that it may not, and is over.
func (c runner) authorize(runID string) (may, ended bool) {
	if c.opts.Authorizer == nil {
		return true, false
	}
	err := c.opts.Authorizer.Authorize(c.life, runID)
	log := c.opts.Log.With().Str("run_id", runID).Logger()
	switch {
	case err == nil:
		return true, false
	case !engine.HasCode(err, engine.CodeForbidden):
		log.Warn().Err(err).Msg("whether a run of a matrix may begin is not known; it is asked again")
		return false, false
	}
	why := engine.AsError(err).Message
	if err := c.opts.Runs.Cancel(c.life, runID, engine.StopSetupFailure, why); err != nil {
		log.Warn().Err(err).Msg("a run that may not begin could not be ended")
		return false, false
	}
	log.Info().Str("reason", why).Msg("a run of a matrix may not begin any more")
	return false, true
}

// retry repeats f until it succeeds or the answer will not change; ok is false
// when the carrier's life ended before.
func (c runner) retry(f func(ctx context.Context) error) (ok bool) {
	for {
		ctx, cancel := context.WithTimeout(c.life, 30*time.Second)
		err := storeError(f(ctx))
		cancel()
		if c.life.Err() != nil {
			return false
		}
		if err == nil {
			return true
		}
		if engine.HasCode(err, engine.CodeNotFound) || engine.HasCode(err, engine.CodeConflict) ||
			errors.Is(err, store.ErrLeaseHeld) {
			return true
		}
		c.opts.Log.Warn().Err(err).Msg("a matrix waits for the control store")
		select {
		case <-time.After(time.Second):
		case <-c.life.Done():
			return false
		}
	}
}
