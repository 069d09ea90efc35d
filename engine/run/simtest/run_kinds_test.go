package simtest

import (
	"github.com/loadstone-db/loadstone/engine"
)

// What runs do: a rate, a rate in stages, a rate that their connections do not hold, a closed loop, connections in
// stages, a search for the limit.

// pace is how many operations a connection of a closed loop issues in a second.
const pace = 1.5

// vary makes a run over a level rate one of another kind, by chance.
func (s *simulation) vary(id string, sc *engine.Scenario) {
	elastic := sc.Scaling.Elastic()
	if s.without == withoutBounds {
		sc.Workload.DurationSeconds = 150
	}
	if s.without == withoutHearing || s.without == withoutBounds {
		// Load goes from one to another, and what is told takes its time.
		sc.Scaling.Mode = engine.ScalingAuto
		s.lacks(id, sc)
		return
	}
	if s.succeeded() {
		sc.Scaling.Mode, sc.Scaling.WorkerCount, sc.Workload.DurationSeconds = engine.ScalingAuto, 3, 200
		sc.Scaling.MinWorkers, sc.Workload.ConcurrentConnections = 3, 6
		return
	}
	switch s.w.chance.IntN(8) {
	case 0, 1:
		s.closed(sc)
	case 2:
		s.searches(id, sc)
	case 3:
		if elastic {
			s.lacks(id, sc)
		}
	default:
		if elastic && s.w.oneIn(2) {
			s.stages(&sc.Workload, *sc.Workload.TargetQPS)
		}
	}
}

// closed makes it a closed loop, of connections in stages where run workers can come and go.
func (s *simulation) closed(sc *engine.Scenario) {
	w := &sc.Workload
	w.LoadMode, w.TargetQPS, w.Arrival = engine.LoadConcurrency, nil, ""
	if !sc.Scaling.Elastic() || s.w.oneIn(4) {
		return
	}
	most := min(w.ConcurrentConnections+1+s.w.chance.IntN(3), sc.Scaling.Capacity())
	w.DurationSeconds = 0
	for range 2 + s.w.chance.IntN(3) {
		level := 1 + s.w.chance.IntN(most)
		st := engine.Stage{DurationSeconds: float64(5 + s.w.chance.IntN(40)), Connections: &level, Ramp: engine.RampStep}
		if s.w.oneIn(2) {
			st.Ramp = engine.RampLinear
		}
		w.Stages = append(w.Stages, st)
		w.DurationSeconds += st.DurationSeconds
	}
}

// lacks makes each connection hold less than its part of the rate, so that run workers join.
func (s *simulation) lacks(id string, sc *engine.Scenario) {
	per := *sc.Workload.TargetQPS / float64(sc.Workload.ConcurrentConnections)
	s.each[id] = per * (0.3 + 0.1*float64(s.w.chance.IntN(6)))
}

// searches has it look for the limit, in connections or in operations per second.
func (s *simulation) searches(id string, sc *engine.Scenario) {
	w := &sc.Workload
	w.LoadMode, w.TargetQPS, w.DurationSeconds = engine.LoadFindMax, nil, 0
	f := &sc.FindMax
	// So few operations end in a step that it is measured for ten times as long.
	*f = engine.FindMax{Enabled: true, StepDurationSeconds: 0.5 + 0.1*float64(s.w.chance.IntN(4)), MaxDurationSeconds: 150,
		QPSStabilityPct: 5, LatencyStabilityPct: 60, MaxErrorRatePct: 50}
	if s.w.oneIn(3) {
		first, most := 4.0, float64(12+s.w.chance.IntN(8))
		f.Unit, f.StartRate, f.RateIncrement, f.MaxRate = engine.FindMaxRate, &first, &first, &most
		if s.knee[id] = 4 + s.w.chance.IntN(20); s.w.oneIn(2) {
			s.each[id] = 1.5
		}
		return
	}
	w.Arrival = ""
	most := min(4+s.w.chance.IntN(6), sc.Scaling.Capacity())
	f.Unit, f.StartConcurrency, f.ConcurrencyIncrement, f.MaxConcurrency = engine.FindMaxConnections, 2, 2, &most
	s.knee[id] = 2 + s.w.chance.IntN(8)
}
