package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/results/cost"
)

// poller follows the warehouse of a run: it knows how the warehouse was last, and what it has cost.
type poller struct {
	// warehouse is as last polled, nil before the first poll and where there is none.
	warehouse *engine.Warehouse
	polls     chan WarehousePoll
	usage     CreditUsage
	failures  int // since the last poll that did not fail
	stop      context.CancelFunc
}

func newPoller() poller { return poller{polls: make(chan WarehousePoll), stop: func() {}} }

// start begins to poll the warehouse of a run in a goroutine, until ctx ends or stop is called.
func (p *poller) start(ctx context.Context, goroutine func(func()), every time.Duration, deps prepare.Deps,
	run engine.Run, plan *engine.Plan) {
	ctx, p.stop = context.WithCancel(ctx)
	polls := p.polls
	goroutine(func() { PollWarehouse(ctx, every, deps, run, plan, polls) })
}

// failureLogInterval in a row are written into the run's log: the first, and then every so many.
const failureLogInterval = 12

// pollResult is what a poll is to the run.
type pollResult struct {
	level engine.LogLevel
	line  string // for the log; empty is none
	// warehouse is nil where the poll has failed.
	warehouse *engine.Warehouse
}

// onPoll takes a poll that was made at a time of the run.
func (p *poller) onPoll(poll WarehousePoll, at time.Time, prices cost.Prices) (out pollResult) {
	switch {
	case poll.Absent:
		return out
	case poll.Err != nil:
		text := engine.ErrorText(poll.Err)
		if p.failures++; p.failures%failureLogInterval == 1 {
			out.level, out.line = engine.LogWarning, "The warehouse could not be polled: "+text
		}
		w := engine.Warehouse{}
		if p.warehouse != nil {
			w = *p.warehouse
		}
		w.Error = text
		p.warehouse = &w
		return out
	}
	p.failures = 0
	was := p.warehouse
	p.warehouse = poll.Warehouse
	p.warehouse.PolledAt = engine.At(at)
	if was == nil || was.Clusters() != poll.Warehouse.Clusters() && was.Name != "" {
		out.level, out.line = engine.LogInfo, DescribeWarehouse(poll.Warehouse)
	}
	perHour, known := prices.PerHour(*poll.Warehouse)
	p.usage.RecordPoll(at, perHour, known)
	out.warehouse = poll.Warehouse
	return out
}

// watchWarehouse begins to poll the run's warehouse, if it has one.
func (l *runLoop) watchWarehouse(ctx context.Context) {
	if !l.svc.opts.Drivers.Traits(l.plan.Plan).Warehouses {
		return
	}
	every := WarehousePollInterval(l.svc.opts.PollInterval, l.sc, l.life.Search() != nil)
	l.poller.start(l.svc.LogContext(ctx, l.runID), l.svc.routines.Go, every,
		l.svc.deps(), l.run, l.plan.Plan)
}

// onPoll takes a poll into the run.
func (l *runLoop) onPoll(p WarehousePoll) {
	at := l.clock.At(p.At)
	taken := l.poller.onPoll(p, at, l.svc.opts.Prices.Prices())
	if taken.line != "" {
		l.writeLog(taken.level, nil, "%s", taken.line)
	}
	if taken.warehouse == nil {
		return
	}
	// Queueing counts for a step when it is seen after the step has settled.
	if s := l.life.Search(); s != nil && taken.warehouse.Queued > 0 && s.Settled(l.search.meter.Number(), p.At) {
		l.search.meter.Queued()
	}
	point := engine.WarehousePoint{Timestamp: engine.At(at), ElapsedSeconds: at.Sub(l.run.StartTime.Time).Seconds(),
		Warehouse: *taken.warehouse}
	l.rules.Hub().Poll(l.runID, point)
	l.writer.Add("a poll of the warehouse", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveWarehouse(ctx, l.runID, l.epoch, point)
	})
}

// restoreTarget undoes what the preparation of a run started, unless another run may need it; it says when that failed.
func (s *Service) restoreTarget(run engine.Run, plan *engine.Plan) (failed string) {
	return RestoreTarget(s.deps(), run, plan, s.runs.CountOthers(run.RunID) > 0, s.opts.Log)
}
