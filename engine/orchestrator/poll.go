package orchestrator

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/prepare"
)

// pollEvery is how often a run's warehouse is asked for. A search whose steps are
// short asks as often as it takes to see each of them three times.
const (
	pollEvery    = 5 * time.Second
	shortestPoll = time.Second
	pollsPerStep = 3
)

func (l *live) pollEvery() time.Duration {
	every := l.svc.opts.PollEvery
	if l.life.Search() != nil {
		every = min(every, max(shortestPoll, l.sc.FindMax.StepDuration()/pollsPerStep))
	}
	return every
}

// polled is what one poll of a run's warehouse gave.
type polled struct {
	at        time.Time
	warehouse *engine.Warehouse
	// err is why there is none. absent: the adapter knows no warehouse, and is not asked again.
	err    error
	absent bool
}

// watchWarehouse begins to poll the run's warehouse, on connections of its own,
// until the run's loop cancels it. A poll that fails is told and changes nothing.
func (l *live) watchWarehouse(ctx context.Context) {
	if !l.svc.traits(l.plan.Plan).Warehouses {
		return
	}
	ctx, l.stopPolling = context.WithCancel(ctx)
	run, plan, every := l.run, l.plan.Plan, l.pollEvery()
	l.svc.routines.Go(func() {
		var a *prepare.Attached
		defer func() {
			if a != nil {
				a.Close()
			}
		}()
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			var p polled
			a, p = l.svc.pollWarehouse(ctx, a, run, plan)
			select {
			case <-ctx.Done():
				return
			case l.polls <- p:
			}
			if p.absent {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

func (s *Service) pollWarehouse(ctx context.Context, a *prepare.Attached, run engine.Run,
	plan *engine.Plan) (*prepare.Attached, polled) {
	ctx = s.heard(ctx, run.RunID)
	p := polled{at: time.Now()}
	if a == nil {
		if a, p.err = prepare.Attach(ctx, s.deps(), run.Scenario, plan, "poller"); p.err != nil {
			return nil, p
		}
	}
	actx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	answer, err := a.Ask(actx, plugin.AdapterRequest{Op: plugin.OpPoll, Warehouse: plan.Warehouse})
	p.at = time.Now()
	switch {
	case err != nil:
		p.err = err
	case answer.Warehouse == nil:
		p.absent = true
	default:
		p.warehouse = answer.Warehouse
	}
	return a, p
}

// pollFailures in a row are told in the run's log: the first, and then every so many.
const pollFailures = 12

// warehousePolled takes a poll into the run.
func (l *live) warehousePolled(p polled) {
	switch {
	case p.absent:
		return
	case p.err != nil:
		if l.pollErrors++; l.pollErrors%pollFailures == 1 {
			l.note(engine.LogWarning, nil, "The warehouse could not be polled: %s", engine.Sentences(p.err))
		}
		w := engine.Warehouse{}
		if l.warehouse != nil {
			w = *l.warehouse
		}
		w.Error = engine.Sentences(p.err)
		l.warehouse = &w
		return
	}
	l.pollErrors = 0
	was := l.warehouse
	l.warehouse = p.warehouse
	l.warehouse.PolledAt = engine.At(l.clock.Place(p.at))
	if was == nil || was.StartedClusters != p.warehouse.StartedClusters && was.Name != "" {
		kind := p.warehouse.Type
		if g := p.warehouse.Generation; g != "" && kind == "STANDARD" {
			kind += " of generation " + g
		}
		l.note(engine.LogInfo, nil, "The warehouse %s (%s, %s) is %s with %d of %d cluster(s)", p.warehouse.Name,
			p.warehouse.Size, kind, p.warehouse.State,
			p.warehouse.StartedClusters, max(1, p.warehouse.MaxClusterCount))
	}
	// Queueing counts for a step when it is seen after the step has settled.
	if s := l.life.Search(); s != nil && p.warehouse.Queued > 0 && s.Settled(l.meter.Number(), p.at) {
		l.meter.Queued()
	}
	at := l.clock.Place(p.at)
	perHour, known := l.svc.opts.Prices().PerHour(*p.warehouse)
	l.spent.polled(at, perHour, known)
	point := engine.WarehousePoint{Timestamp: engine.At(at), ElapsedSeconds: at.Sub(l.run.StartTime.Time).Seconds(),
		Warehouse: *p.warehouse}
	l.keeper.Add("a poll of the warehouse", func(ctx context.Context) error {
		return l.svc.opts.Store.SaveWarehouse(ctx, l.runID, l.epoch, point)
	})
}

// askLimit bounds one conversation with an adapter beside the load.
const askLimit = 30 * time.Second

// setBackLimit bounds setting a target back.
const setBackLimit = 20 * time.Second

// setBack undoes what the preparation of a run started: a warehouse that was
// suspended is suspended again, unless another run may need it. It returns a sentence when that failed.
func (s *Service) setBack(run engine.Run, plan *engine.Plan) (failed string) {
	if plan == nil || len(plan.Restore) == 0 {
		return ""
	}
	log := s.opts.Log.With().Str("run_id", run.RunID).Logger()
	if s.runs.others(run.RunID) > 0 {
		log.Info().Msg("the warehouse is left running: another run is live")
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), setBackLimit)
	defer cancel()
	a, err := prepare.Attach(ctx, s.deps(), run.Scenario, plan, "set back")
	if err == nil {
		defer a.Close()
		err = a.Database().Exec(ctx, plan.Restore...)
	}
	if err != nil {
		log.Warn().Err(err).Msg("the warehouse could not be set back")
		return "The warehouse could not be set back to how it was before the run: " + engine.Sentences(err)
	}
	log.Info().Msg("the warehouse is suspended again, as it was before the run")
	return ""
}
