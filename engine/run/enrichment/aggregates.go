package enrichment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/enrich"
	"github.com/loadstone-db/loadstone/engine/store"
)

// aggregatesRetryDelay is when to look again for what could not be asked now: the store
// was away, or the run's enrichment was under way.
const aggregatesRetryDelay = time.Minute

// awaitAggregates has the account's aggregates of a run asked for again, from a time
// on, until they are whole or their latency has passed. They come hours after a run: its
// enrichment is over before. A process that ends leaves that to the next one.
func (s *Service) awaitAggregates(runID string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.awaiting[runID] {
		return
	}
	s.awaiting[runID] = true
	s.opts.Routines.Go(func() {
		for !at.IsZero() {
			timer := time.NewTimer(time.Until(at))
			select {
			case <-timer.C:
				at = s.pollAggregates(runID)
			case <-s.opts.Lifetime.Done():
				timer.Stop()
				at = time.Time{}
			}
		}
		s.mu.Lock()
		delete(s.awaiting, runID)
		s.mu.Unlock()
	})
}

// pollAggregates asks once and stores the answer. It returns when to ask again, zero for never.
func (s *Service) pollAggregates(runID string) time.Time {
	log := s.opts.Log.With().Str("run_id", runID).Logger()
	d, err := s.opts.Runs.Detail(s.opts.Lifetime, runID)
	switch {
	case engine.HasCode(err, engine.CodeNotFound):
		return time.Time{} // it was deleted
	case err != nil:
		log.Warn().Err(err).Msg("the account's aggregates of a run cannot be asked for now")
		return time.Now().Add(aggregatesRetryDelay)
	case !d.Enrichment.Status.Terminal():
		return time.Now().Add(aggregatesRetryDelay) // a retry asks for them too
	case d.Enrichment.Aggregate == nil || d.Enrichment.Aggregate.Status != engine.EnrichmentPending ||
		!s.HasHistory(d.Plan):
		return time.Time{}
	}
	e, ctx := s.reserve(runID, d.Enrichment)
	if e == nil {
		return time.Now().Add(aggregatesRetryDelay)
	}
	defer s.release(runID, e)
	got := d.Enrichment
	got.Aggregate = s.fetchAggregates(ctx, d)
	if s.opts.Lifetime.Err() != nil {
		return time.Time{} // the next process asks
	}
	if e.stopped.Load() {
		got.Aggregate.Status, got.Aggregate.Reason, got.Aggregate.NextPollAt = engine.EnrichmentPartial,
			e.whyStopped("Asking for the aggregates was stopped by a user."), engine.Time{}
	}
	got.Retryable = got.Matched < got.Executions || got.Aggregate.Status != engine.EnrichmentCompleted
	e.state.Store(&got)
	if s.saveEnrichment(s.opts.Lifetime, runID, got) != nil {
		return time.Time{}
	}
	log.Info().Str("status", string(got.Aggregate.Status)).Int64("calls", got.Aggregate.Calls).Int64("executions",
		got.Aggregate.Expected).Msg("the account's aggregates of a run were asked for again")
	d.Enrichment = got
	s.opts.Runs.PublishFinished(&d)
	return got.Aggregate.NextPollAt.Time
}

// fetchAggregates asks the account. What goes wrong on the way is told as a reason.
func (s *Service) fetchAggregates(ctx context.Context, d engine.RunDetail) *engine.AggregateEnrichment {
	before := *d.Enrichment.Aggregate
	source := &historySource{svc: s, run: d.Run, plan: d.Plan}
	defer source.close()
	_, err := source.open(ctx)
	if err == nil && source.enrich.Aggregate == "" {
		err = &enrich.SkipError{Reason: "The adapter does not say any more how the aggregates are read."}
	}
	from, to := executionInterval(d.Run)
	if err == nil {
		return s.aggregates(ctx, d.Run, d.Plan, source, from, to, before.Polls)
	}
	sentence, forGood := source.isPermanent(err)
	var skip *enrich.SkipError
	forGood = forGood || errors.As(err, &skip)
	before.Polls++
	before.Reason = fmt.Sprintf("The aggregates could not be asked for: %s", sentence)
	before.NextPollAt = engine.At(enrich.NextAggregate(lastExecutionEnd(d.Run), before.AvailableAt.Time, time.Now()))
	if forGood || before.NextPollAt.IsZero() {
		before.Status, before.NextPollAt = engine.EnrichmentFailed, engine.Time{}
	}
	return &before
}

// reserve takes a run's place among the enrichments under way, so that no other
// is begun and the run is not deleted meanwhile; nil when it is taken.
func (s *Service) reserve(runID string, state engine.Enrichment) (*Job, context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[runID] != nil || s.closing {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(s.opts.Lifetime)
	e := &Job{cancel: cancel, done: make(chan struct{})}
	e.state.Store(&state)
	s.jobs[runID] = e
	return e, ctx
}

func (s *Service) release(runID string, e *Job) {
	e.cancel()
	s.mu.Lock()
	delete(s.jobs, runID)
	s.mu.Unlock()
	close(e.done)
}

// ResumeAggregates goes on asking for those that an earlier process waited for.
func (s *Service) ResumeAggregates(ctx context.Context) error {
	ids, err := s.opts.Store.PendingAggregates(ctx)
	if err != nil {
		return fmt.Errorf("looking for aggregates that are awaited: %w", err)
	}
	for _, id := range ids {
		d, err := s.opts.Runs.Detail(ctx, id)
		if err != nil {
			return err
		}
		if a := d.Enrichment.Aggregate; a != nil && s.HasHistory(d.Plan) {
			at := a.NextPollAt.Time
			if now := time.Now(); at.Before(now) {
				at = now
			}
			switch err := s.opts.Runs.Claim(ctx, id); {
			case errors.Is(err, store.ErrLeaseHeld):
				// Its owner asks for them.
			case err != nil:
				return fmt.Errorf("claiming run %s: %w", id, err)
			default:
				s.awaitAggregates(id, at)
			}
		}
	}
	return nil
}
