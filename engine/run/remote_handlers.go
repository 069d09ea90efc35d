package run

import (
	"context"
	"errors"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/store"
)

// handleRemoteCommand does what was wanted of a run at another server, if this one carries it.
func (s *Service) handleRemoteCommand(ctx context.Context, w store.RunCommand) (done bool, err error) {
	switch w.Kind {
	case store.CommandStopEnrichment:
		if s.enrichments.Job(w.RunID) != nil {
			_, err := s.enrichments.Stop(ctx, w.RunID, w.By)
			return err == nil, err
		}
		d, err := s.Detail(ctx, w.RunID)
		return err == nil && d.Enrichment.Status.Terminal(), ignoreNotFound(err)
	default:
		if l := s.runs.Get(w.RunID); l != nil && !l.Current().Status.Terminal() {
			select {
			case <-l.submit(lifecycle.UserStop(w.By)):
			case <-l.done:
			case <-ctx.Done():
			}
		}
		// What counts is what is stored: this server may own the run no longer, and not know it. A run that is being
		// cancelled needs an owner that ends it.
		run, err := s.opts.Store.Run(ctx, w.RunID)
		return err == nil && (run.Status == engine.StatusCancelling && s.carries(w) || run.Status.Terminal()),
			ignoreNotFound(err)
	}
}

// carries implements remoteHandler.
func (s *Service) carries(w store.RunCommand) bool {
	if w.Kind == store.CommandStopEnrichment {
		return s.enrichments.Job(w.RunID) != nil
	}
	return s.recovery.IsHandling(w.RunID)
}

// carriesAny implements remoteHandler.
func (s *Service) carriesAny() bool { return s.recovery.HandlesAny() }

// takeOverToStop implements remoteHandler.
func (s *Service) takeOverToStop(ctx context.Context, w store.RunCommand) error {
	return s.recovery.TakeOverToStop(ctx, w.RunID, w.Seq)
}

// ignoreNotFound takes that a run is deleted for no error: nothing is wanted of it any more.
func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// stopRemote has the server that carries a run stop it.
func (s *Service) stopRemote(ctx context.Context, runID, by string) (engine.Run, error) {
	if err := s.remoteCommands.Request(ctx, runID, store.CommandStop, by); err != nil {
		return engine.Run{}, query.StoreError(err)
	}
	run, err := s.Run(ctx, runID)
	if err == nil && run.Status.Terminal() && run.StopReason != engine.StopUserRequested {
		return engine.Run{}, query.FinishedError(run) // it has ended by itself meanwhile
	}
	return run, err
}

// Enrichments are those under way on this server, by run.
func (s *Service) Enrichments() map[string]enrichment.Origin { return s.enrichments.Origins() }

// RevokeEnrichment ends an enrichment on this server whose user has lost the right to it; why is a sentence.
func (s *Service) RevokeEnrichment(ctx context.Context, runID, why string) error {
	return s.enrichments.Revoke(ctx, runID, why)
}

// StopEnrichment ends the enrichment of a run; what was found is kept.
func (s *Service) StopEnrichment(ctx context.Context, runID, by string) (engine.Enrichment, error) {
	if s.enrichments.Job(runID) != nil {
		return s.enrichments.Stop(ctx, runID, by)
	}
	d, err := s.Detail(ctx, runID)
	if err != nil {
		return engine.Enrichment{}, err
	}
	if d.Enrichment.Status.Terminal() || !d.Status.Terminal() {
		return s.enrichments.Stop(ctx, runID, by) // which says that none is under way
	}
	if err := s.remoteCommands.Request(ctx, runID, store.CommandStopEnrichment, by); err != nil {
		return engine.Enrichment{}, query.StoreError(err)
	}
	d, err = s.Detail(ctx, runID)
	return d.Enrichment, err
}
