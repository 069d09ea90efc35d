package store

import (
	"maps"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// ApplyTo makes of a run in memory what the transition, at that time, makes of the stored one.
func (t Transition) ApplyTo(r *engine.Run, at time.Time) {
	if t.To != "" {
		r.Status = t.To
	}
	if t.Phase != nil {
		r.Phase = *t.Phase
	}
	set := func(into *engine.Time, to time.Time) {
		if !to.IsZero() {
			*into = engine.At(to)
		}
	}
	set(&r.WarmupStartTime, t.WarmupStartTime)
	set(&r.WarmupEndTime, t.WarmupEndTime)
	set(&r.MeasurementEndTime, t.MeasurementEndTime)
	set(&r.EndTime, t.EndTime)
	if t.StopReason != "" {
		r.StopReason = t.StopReason
	}
	if t.CancellationReason != "" {
		reason := t.CancellationReason
		r.CancellationReason = &reason
	}
	if t.Rules != nil {
		r.Rules = t.Rules
	}
	t.applyTargets(r)
	r.UpdatedAt = engine.At(at)
}

// applyTargets makes the targets of a change those of the run in memory.
func (t Transition) applyTargets(r *engine.Run) {
	if t.WorkersExpected > 0 {
		r.WorkersExpected = t.WorkersExpected
	}
	if len(t.WorkerTargets) == 0 {
		return
	}
	all := maps.Clone(r.WorkerTargets)
	if all == nil {
		all = map[string]engine.WorkerTarget{}
	}
	maps.Copy(all, t.WorkerTargets)
	r.WorkerTargets = all
}
