package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
)

// publish makes the payload of this moment and offers it to the subscribers.
func (l *runLoop) publish(last bool) {
	p := l.snapshot(l.clock.Now())
	l.liveState.Store(p)
	l.svc.hub.Publish(l.runID, p, last)
}

// snapshot is the whole live state. It shares no memory that changes later.
func (l *runLoop) snapshot(now time.Time) *engine.LiveState {
	p := runlive.BaseState(l.run, now)
	l.second.Fill(p)
	if l.plan != nil {
		p.Simulated, p.Emulated = l.plan.Server.Simulated, l.plan.Server.Emulated
	}
	if l.life.Preparing() && l.progress != nil {
		progress := *l.progress
		p.Prepare = &progress
	} else if l.life.Placed() && !l.life.Started() && !l.life.Status().Terminal() {
		p.Prepare = runlive.ConnectProgress(l.ConnectionProgress())
	}
	if !l.preparedAt.IsZero() {
		p.Timing.PrepareElapsedSeconds = new(l.preparedAt.Sub(l.run.StartTime.Time).Seconds())
	}
	if l.plan != nil {
		p.Enrichment = l.svc.enrichments.State(l.runID, nil, l.plan.Plan)
	}
	if l.finisher.enriching != nil {
		p.Enrichment = l.finisher.enriching.State()
	}
	switch {
	case l.poller.warehouse != nil:
		runlive.ApplyWarehouse(p, l.poller.warehouse, l.poller.usage.Credits(now))
	case l.plan != nil && l.svc.opts.Drivers.Traits(l.plan.Plan).Warehouses:
		// It has not been polled yet; that is no warehouse with nothing to do.
		p.CustomMetrics.SFBench = map[string]any{"warehouse": l.plan.Plan.Warehouse, "running": nil, "queued": nil,
			"clusters": nil, "credits": nil}
	}
	p.Validity = l.validity.Verdict()
	if sum := l.summary.Load(); sum != nil {
		p.Validity = sum.ValidityDetail
	}
	p.Guardrails, p.Rules = l.guard.State(), append([]engine.RuleState{}, l.rules.States()...)
	p.FindMax = l.search.state(now)
	p.Logs, p.LogsDropped = l.Buffer.Newest(now), l.Buffer.MissingLines(l.writer.LinesLost())
	return p
}
