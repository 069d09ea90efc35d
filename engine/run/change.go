package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/query"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// ChangeLoad changes the rate or the connections of a run that goes on here, and returns its event when that is stored.
func (s *Service) ChangeLoad(ctx context.Context, runID, by string, to scaling.Asked) (engine.Event, error) {
	l := s.runs.Find(runID)
	if l == nil {
		run, err := s.Run(ctx, runID)
		if err == nil {
			err = scaling.NotHere(run)
		}
		return engine.Event{}, err
	}
	var event engine.Event
	err := query.Finished(l.Current()) // should its loop not come to it any more
	select {
	case <-l.put(func(context.Context) { event, err = l.changeLoad(by, to) }):
		return event, err
	case <-ctx.Done():
		return engine.Event{}, ctx.Err()
	}
}
