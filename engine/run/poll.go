package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// poller follows the warehouse of the run.
type poller struct {
	*live
	// warehouse is as last polled, nil before the first poll and where there is none.
	warehouse *engine.Warehouse
	polls     chan Poll
	spent     Spending
	failures  int // since the last poll that did not fail
	stop      context.CancelFunc
}

// watch begins to poll the run's warehouse, until the run's loop cancels it.
func (l *poller) watch(ctx context.Context) {
	if !l.svc.traits(l.plan.Plan).Warehouses {
		return
	}
	ctx, l.poller.stop = context.WithCancel(l.svc.heard(ctx, l.runID))
	run, plan, every := l.run, l.plan.Plan, Pace(l.svc.opts.PollEvery, l.sc, l.life.Search() != nil)
	l.svc.routines.Go(func() { Watch(ctx, every, l.svc.deps(), run, plan, l.poller.polls) })
}

// pollFailures in a row are written into the run's log: the first, and then every so many.
const pollFailures = 12

// take takes a poll into the run.
func (l *poller) take(p Poll) {
	switch {
	case p.Absent:
		return
	case p.Err != nil:
		if l.poller.failures++; l.poller.failures%pollFailures == 1 {
			l.note(engine.LogWarning, nil, "The warehouse could not be polled: %s", engine.Sentences(p.Err))
		}
		w := engine.Warehouse{}
		if l.poller.warehouse != nil {
			w = *l.poller.warehouse
		}
		w.Error = engine.Sentences(p.Err)
		l.poller.warehouse = &w
		return
	}
	l.poller.failures = 0
	was := l.poller.warehouse
	l.poller.warehouse = p.Warehouse
	l.poller.warehouse.PolledAt = engine.At(l.clock.Place(p.At))
	if was == nil || was.StartedClusters != p.Warehouse.StartedClusters && was.Name != "" {
		l.note(engine.LogInfo, nil, "%s", Words(p.Warehouse))
	}
	// Queueing counts for a step when it is seen after the step has settled.
	if s := l.life.Search(); s != nil && p.Warehouse.Queued > 0 && s.Settled(l.search.meter.Number(), p.At) {
		l.search.meter.Queued()
	}
	at := l.clock.Place(p.At)
	perHour, known := l.svc.opts.Prices().PerHour(*p.Warehouse)
	l.poller.spent.Polled(at, perHour, known)
	point := engine.WarehousePoint{Timestamp: engine.At(at), ElapsedSeconds: at.Sub(l.run.StartTime.Time).Seconds(),
		Warehouse: *p.Warehouse}
	l.rules.Hub().Poll(l.runID, point)
	l.keeper.Add("a poll of the warehouse", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveWarehouse(ctx, l.runID, l.epoch, point)
	})
}

// setBack undoes what the preparation of a run started, unless another run may need it; it says when that failed.
func (s *Service) setBack(run engine.Run, plan *engine.Plan) (failed string) {
	return SetBack(s.deps(), run, plan, s.runs.Others(run.RunID) > 0, s.opts.Log)
}
