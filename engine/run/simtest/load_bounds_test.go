package simtest

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// borne is what the loads of a run may bear together, from a time on.
type borne struct {
	at          time.Time
	connections int
	rate        float64
}

// most is the most that a run may ever bear: connections in a closed loop, and a rate in an open one; 0 is no bound.
func (s *simulation) most(run string) (connections int, rate float64) {
	sc := s.runs[run]
	w := sc.Workload
	switch {
	case w.IsSearch() && sc.FindMax.Unit == engine.FindMaxRate:
		return 0, *sc.FindMax.MaxRate
	case w.IsSearch():
		return max(*sc.FindMax.MaxConcurrency, w.ConcurrentConnections), 0
	case w.LoadMode == engine.LoadConcurrency:
		return sc.PeakConnections(0), 0
	case w.TargetQPS != nil:
		return 0, *w.TargetQPS
	}
	for _, st := range w.Stages {
		rate = max(rate, st.Level())
	}
	return 0, rate
}

// offered holds what all loads that may issue now bear together against the target of the run (invariant
// 3). A load may issue once it has begun, until it has stopped or its licence has ended, whether or
// not its process is stopped just now.
func (m *model) offered(run, why string) {
	now, sum, of := borne{at: time.Now()}, 0.0, ""
	for _, l := range m.of(run) {
		until := l.p.licensed(run)
		l.mu.Lock()
		if l.begun && !l.stopped && !l.p.dead.Load() && now.at.Before(until) {
			sum += l.rate
			now.connections += l.connections
			of += fmt.Sprintf(" %s@%s=%.3f,%d", l.worker, l.p.node.name, l.rate, l.connections)
		}
		l.mu.Unlock()
	}
	now.rate = sum
	connections, rate := m.sim.most(run)
	if rate > 0 && sum > rate+tolerated {
		m.sim.w.violated(3, "%s: %.3f/s are offered of %.3f/s of %s:%s", why, sum, rate, run, of)
	}
	if connections > 0 && now.connections > connections {
		m.sim.w.violated(3, "%s: %d connections are offered of %d of %s:%s", why, now.connections, connections, run, of)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	had := m.bore[run]
	if n := len(had); n == 0 || had[n-1].connections != now.connections || had[n-1].rate != now.rate {
		m.bore[run] = append(had, now)
	}
}

// bears is what was borne of a run last.
func (m *model) bears(run string) borne {
	m.mu.Lock()
	defer m.mu.Unlock()
	if had := m.bore[run]; len(had) > 0 {
		return had[len(had)-1]
	}
	return borne{}
}

// mostRate is the most that RateAt asks for from one time to another.
func mostRate(w engine.Workload, from, to time.Duration) float64 {
	most := max(w.RateAt(from), w.RateAt(to))
	border := time.Duration(0)
	for _, s := range w.Stages {
		for _, at := range []time.Duration{border, border + s.Duration() - 1} {
			if from <= at && at <= to {
				most = max(most, w.RateAt(at))
			}
		}
		border += s.Duration()
	}
	return most
}

// follows holds the loads that hear of their owner against the stage that the run is in (invariant 3): who
// speaks with the owner for a while bears no more of a higher stage.
func (m *model) follows(run string) {
	sc := m.sim.runs[run]
	if len(sc.Workload.Stages) == 0 {
		return
	}
	stored, err := m.sim.store.Run(context.Background(), run)
	if err != nil || stored.Status != engine.StatusRunning || stored.WarmupEndTime.IsZero() {
		return
	}
	// A ramp is told in pieces, each by its end; here nothing rises by and by.
	now := time.Now()
	soon := now.Add(m.ahead(run, now)).Sub(stored.WarmupEndTime.Time) + 2*scaling.StageRamp
	rate, connections := mostRate(sc.Workload, soon-followed, soon), sc.Workload.MaxConnectionsBetween(soon-followed, soon)
	sum, open, of := 0.0, 0, ""
	for _, l := range m.of(run) {
		since, touched := l.p.together(run)
		l.mu.Lock()
		if l.begun && !l.stopped && !l.p.dead.Load() && now.Sub(since) > followed && now.Sub(touched) < 2*time.Second {
			sum += l.rate
			open += l.connections
			of += fmt.Sprintf(" %s@%s=%.3f,%d", l.worker, l.p.node.name, l.rate, l.connections)
		}
		l.mu.Unlock()
	}
	if scaling.Staged(sc) {
		if open > connections {
			m.sim.w.violated(3, "%d connections are offered of %s, whose stages were at most %d for %v:%s", open, run,
				connections, followed, of)
		}
		return
	}
	if sum > rate+0.01*rate+tolerated {
		m.sim.w.violated(3, "%.3f/s are offered of %s, whose stages were at most %.3f/s for %v:%s", sum, run, rate, followed,
			of)
	}
}

// searched holds what a search has found against what was borne (invariant 9): a step that held was borne at its level
// while it was measured, and the answer is the level of such a step.
func (m *model) searched(run string) {
	if !m.sim.runs[run].Workload.IsSearch() {
		return
	}
	state, err := m.sim.store.FindMax(context.Background(), run)
	if err != nil || state == nil {
		return
	}
	most := 0.0
	for _, step := range state.Steps {
		if step.Outcome != engine.OutcomeStable {
			continue
		}
		most = max(most, step.Level())
		ahead := m.ahead(run, step.StepStartTime.Add(-m.ahead(run, time.Now())))
		from, to := step.StepStartTime.Add(-ahead), step.StepEndTime.Add(-ahead)
		if best := m.within(run, state.Unit, from, to); best < step.Level()-0.001 {
			m.sim.w.violated(9, "step %d of %s held at %.6g, and %.6g were borne in it", step.StepNumber, run, step.Level(),
				best)
		}
	}
	if r := state.Result; r != nil && r.Found {
		answer := 0.0
		if r.MaxQPSTarget != nil {
			answer = *r.MaxQPSTarget
		}
		if r.MaxConnections != nil {
			answer = float64(*r.MaxConnections)
		}
		m.sim.searched++
		if answer > most {
			m.sim.w.violated(9, "%s answers %.6g, and no step above %.6g held", run, answer, most)
		}
	}
}

// within is the most that was borne of a run at some moment between two times.
func (m *model) within(run string, unit engine.FindMaxUnit, from, to time.Time) (most float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := m.bore[run]
	for i, b := range had {
		if b.at.After(to) || i+1 < len(had) && !had[i+1].at.After(from) {
			continue
		}
		if unit == engine.FindMaxRate {
			most = max(most, b.rate)
		} else {
			most = max(most, float64(b.connections))
		}
	}
	return most
}

// assigned checks that the store knows a run worker that is about to be given to a node (invariant 1: nobody else can
// have its name and its slot).
func (m *model) assigned(a protocol.AssignRun) {
	rows, err := m.sim.store.Results(context.Background(), a.RunID)
	for _, r := range rows {
		if err == nil && r.WorkerID == a.WorkerID && r.ResultID == a.ResultID {
			return
		}
	}
	m.sim.w.violated(1, "%s of %s is given to a node, and the store does not know it", a.WorkerID, a.RunID)
}
