package matrix

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// carry makes the runs of a matrix in the background. stopped: it only ends them.
func (s *Service) carry(m engine.MatrixRun, by string, stopped bool) {
	stopping, stop := context.WithCancel(context.Background())
	g := &going{by: by, stop: stop, done: make(chan struct{})}
	s.mu.Lock()
	if _, there := s.going[m.MatrixID]; there {
		s.mu.Unlock()
		stop()
		return
	}
	s.going[m.MatrixID] = g
	s.mu.Unlock()
	if stopped {
		stop()
	}
	s.routines.Go(func() {
		defer stop()
		s.runs(stopping, m, by)
		s.mu.Lock()
		delete(s.going, m.MatrixID)
		s.mu.Unlock()
		close(g.done)
	})
}

// runs makes the runs in order and ends the matrix. When the service's life
// ends it returns and leaves everything as it is.
func (s *Service) runs(stopping context.Context, m engine.MatrixRun, by string) {
	log := s.opts.Log.With().Str("matrix_id", m.MatrixID).Logger()
	var members []store.RunRow
	if !s.insist(func(ctx context.Context) (err error) {
		members, err = s.opts.Store.MatrixRuns(ctx, m.MatrixID)
		return err
	}) {
		return
	}
	failed := false
	for _, member := range members {
		status, ok := s.one(stopping, member, by, failed && m.StopOnFailure)
		if !ok {
			return
		}
		failed = failed || status != engine.StatusCompleted
		log.Info().Str("run_id", member.RunID).Str("status", string(status)).Msg("a run of the matrix has ended")
	}
	outcome := engine.StatusCompleted
	switch {
	case stopping.Err() != nil:
		outcome = engine.StatusCancelled
	case failed:
		outcome = engine.StatusFailed
	}
	s.insist(func(ctx context.Context) error {
		return s.opts.Store.MoveMatrix(ctx, m.MatrixID, []engine.Status{engine.StatusPrepared, engine.StatusRunning, engine.StatusCancelling}, outcome, time.Now())
	})
}

// one makes one run and returns its status when its figures are there; ok is
// false when the service's life ended before. One that must not start is cancelled.
func (s *Service) one(stopping context.Context, member store.RunRow, by string, skip bool) (status engine.Status, ok bool) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	asked, told := false, false
	for {
		var d engine.RunDetail
		if !s.insist(func(ctx context.Context) (err error) { d, err = s.opts.Runs.Detail(ctx, member.RunID); return err }) {
			return "", false
		}
		stop := skip || stopping.Err() != nil
		switch {
		case d.Status == "":
			return engine.StatusFailed, true // deleted meanwhile
		case d.Status.Terminal() && (d.Phase != engine.PhaseProcessing || d.Summary != nil):
			// The enrichment may go on for minutes; it is the server's alone, and asks every 10 s.
			return d.Status, true
		case d.Status == engine.StatusPrepared && !stop:
			if _, err := s.opts.Runs.Start(s.lifetime, member.RunID, by); err != nil && s.lifetime.Err() == nil {
				// What cannot be started now is a failure of this target only.
				s.opts.Log.Warn().Err(err).Str("run_id", member.RunID).Msg("a run of a matrix could not be started")
				skip = engine.AsError(err).Code != engine.CodeConflict
			}
		case !d.Status.Terminal() && stop && !asked:
			if _, err := s.opts.Runs.Stop(s.lifetime, member.RunID, by); err == nil {
				asked = true
			}
		}
		stopped := stopping.Done()
		if told {
			stopped = nil // from then on the clock is enough
		}
		select {
		case <-tick.C:
		case <-stopped:
			told = true
		case <-s.lifetime.Done():
			return "", false
		}
	}
}

// insist repeats f until it succeeds or the answer will not change; ok is false
// when the service's life ended before.
func (s *Service) insist(f func(ctx context.Context) error) (ok bool) {
	for {
		ctx, cancel := context.WithTimeout(s.lifetime, 30*time.Second)
		err := storeError(f(ctx))
		cancel()
		if s.lifetime.Err() != nil {
			return false
		}
		if err == nil {
			return true
		}
		if engine.HasCode(err, engine.CodeNotFound) || engine.HasCode(err, engine.CodeConflict) {
			return true
		}
		s.opts.Log.Warn().Err(err).Msg("a matrix waits for the control store")
		select {
		case <-time.After(time.Second):
		case <-s.lifetime.Done():
			return false
		}
	}
}
