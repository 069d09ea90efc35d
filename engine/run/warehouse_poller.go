package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// poller follows the warehouse of the run.
type poller struct {
	*runLoop
	// warehouse is as last polled, nil before the first poll and where there is none.
	warehouse *engine.Warehouse
	polls     chan WarehousePoll
	usage     CreditUsage
	failures  int // since the last poll that did not fail
	stop      context.CancelFunc
}

// start begins to poll the run's warehouse, until the run's loop cancels it.
func (l *poller) start(ctx context.Context) {
	if !l.svc.traits(l.plan.Plan).Warehouses {
		return
	}
	ctx, l.poller.stop = context.WithCancel(l.svc.logContext(ctx, l.runID))
	run, plan, every := l.run, l.plan.Plan, WarehousePollInterval(l.svc.opts.PollInterval, l.sc, l.life.Search() != nil)
	l.svc.routines.Go(func() { PollWarehouse(ctx, every, l.svc.deps(), run, plan, l.poller.polls) })
}

// failureLogInterval in a row are written into the run's log: the first, and then every so many.
const failureLogInterval = 12

// onPoll takes a poll into the run.
func (l *poller) onPoll(p WarehousePoll) {
	switch {
	case p.Absent:
		return
	case p.Err != nil:
		if l.poller.failures++; l.poller.failures%failureLogInterval == 1 {
			l.writeLog(engine.LogWarning, nil, "The warehouse could not be polled: %s", engine.ErrorText(p.Err))
		}
		w := engine.Warehouse{}
		if l.poller.warehouse != nil {
			w = *l.poller.warehouse
		}
		w.Error = engine.ErrorText(p.Err)
		l.poller.warehouse = &w
		return
	}
	l.poller.failures = 0
	was := l.poller.warehouse
	l.poller.warehouse = p.Warehouse
	l.poller.warehouse.PolledAt = engine.At(l.clock.At(p.At))
	if was == nil || was.StartedClusters != p.Warehouse.StartedClusters && was.Name != "" {
		l.writeLog(engine.LogInfo, nil, "%s", DescribeWarehouse(p.Warehouse))
	}
	// Queueing counts for a step when it is seen after the step has settled.
	if s := l.life.Search(); s != nil && p.Warehouse.Queued > 0 && s.Settled(l.search.meter.Number(), p.At) {
		l.search.meter.Queued()
	}
	at := l.clock.At(p.At)
	perHour, known := l.svc.opts.Prices().PerHour(*p.Warehouse)
	l.poller.usage.RecordPoll(at, perHour, known)
	point := engine.WarehousePoint{Timestamp: engine.At(at), ElapsedSeconds: at.Sub(l.run.StartTime.Time).Seconds(),
		Warehouse: *p.Warehouse}
	l.rules.Hub().Poll(l.runID, point)
	l.writer.Add("a poll of the warehouse", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveWarehouse(ctx, l.runID, l.epoch, point)
	})
}

// restoreTarget undoes what the preparation of a run started, unless another run may need it; it says when that failed.
func (s *Service) restoreTarget(run engine.Run, plan *engine.Plan) (failed string) {
	return RestoreTarget(s.deps(), run, plan, s.runs.CountOthers(run.RunID) > 0, s.opts.Log)
}
