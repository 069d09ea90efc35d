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
	case <-l.put(func(context.Context) { event, err = l.scale.change(by, to) }):
		return event, err
	case <-ctx.Done():
		return engine.Event{}, ctx.Err()
	}
}

func (l *scaler) change(by string, to scaling.Asked) (engine.Event, error) {
	now := l.clock.Now()
	s := scaling.State{Scenario: l.sc, Started: l.life.Started(), Stopping: l.life.Stopping(), Joining: l.scale.joining,
		Connections: l.scale.pool, Workers: len(l.Carrying()), Elapsed: now.Sub(l.run.StartTime.Time),
		MaxConnections: l.plan.Allowed()}
	c, err := scaling.Decide(s, to, by)
	if err != nil {
		return c.Event, err
	}
	l.sc.Workload, l.scale.pool, l.scale.steered = c.Workload, c.Connections, true
	c.Event = scaling.Named(c.Event)
	workers := l.Carrying()
	l.scale.divide(now, workers, l.scale.load(now))
	l.sendTargets(scaling.ScalingChange{Reason: engine.TargetChange, At: now}, workers, c.Event)
	l.note(engine.LogWarning, nil, "%s", c.Words)
	l.validity.LoadChanged(c.Words)
	c.Event.RunID, c.Event.CreatedAt, c.Event.SequenceID = l.runID, engine.At(now), l.sender.sequence
	return c.Event, nil
}
