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
	case <-l.enqueue(func(context.Context) { event, err = l.scale.change(by, to) }):
		return event, err
	case <-ctx.Done():
		return engine.Event{}, ctx.Err()
	}
}

func (l *scaler) change(by string, to scaling.LoadRequest) (engine.Event, error) {
	now := l.clock.Now()
	s := scaling.State{Scenario: l.sc, Started: l.life.Started(), Stopping: l.life.Stopping(), Joining: l.scale.joining,
		Connections: l.scale.pool, Workers: len(l.ActiveWorkers()), Elapsed: now.Sub(l.run.StartTime.Time),
		MaxConnections: l.plan.MaxConnections()}
	c, err := scaling.Decide(s, to, by)
	if err != nil {
		return c.Event, err
	}
	l.sc.Workload, l.scale.pool, l.scale.userChanged = c.Workload, c.Connections, true
	c.Event = scaling.WithEventID(c.Event)
	workers := l.ActiveWorkers()
	l.scale.distribute(now, workers, l.scale.sharedLoad(now))
	l.sender.sendTargets(scaling.TargetChange{Reason: engine.TargetChange, At: now}, workers, c.Event)
	l.writeLog(engine.LogWarning, nil, "%s", c.Message)
	l.validity.LoadChanged(c.Message)
	c.Event.RunID, c.Event.CreatedAt, c.Event.SequenceID = l.runID, engine.At(now), l.sender.sequence
	return c.Event, nil
}
