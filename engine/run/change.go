package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// ChangeLoad changes the rate or the connections of a run that goes on here, and returns its event when that is stored.
func (s *Service) ChangeLoad(ctx context.Context, runID, by string, to scaling.LoadRequest) (engine.Event, error) {
	l := s.runs.Get(runID)
	if l == nil {
		run, err := s.Run(ctx, runID)
		if err == nil {
			err = scaling.NotLocalError(run)
		}
		return engine.Event{}, err
	}
	var event engine.Event
	err := query.FinishedError(l.Current()) // should its loop not come to it any more
	select {
	case <-l.enqueue(func(context.Context) { event, err = l.changeLoad(by, to) }):
		return event, err
	case <-ctx.Done():
		return engine.Event{}, ctx.Err()
	}
}
