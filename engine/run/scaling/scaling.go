// Package scaling decides what becomes of a run whose rate or connections a user changes while it goes on. Pure.
package scaling

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// LoadRequest is what a user wants of a run: the rate of an open loop, or the connections of a closed one.
type LoadRequest struct {
	TargetQPS   *float64
	Connections *int
}

// State is a run as its loop knows it.
type State struct {
	Scenario engine.Scenario
	// Started says that its load goes on; Stopping that it ends.
	Started, Stopping bool
	// Joining says that run workers are about to join.
	Joining bool
	// Connections are those of all its run workers together, Workers how many carry load.
	Connections, Workers int
	// MaxConnections are those that the target allows, 0 for unknown.
	MaxConnections int
	// Elapsed is how long the run has gone on.
	Elapsed time.Duration
}

// Change is a change that is decided.
type Change struct {
	// Workload is what the run follows from now on, Connections what its run workers share.
	Workload    engine.Workload
	Connections int
	// Event tells of it.
	Event engine.Event
	// Note is what is noted of it.
	Note engine.Note
}

// maxRate is the highest that can be asked for, as in templates.
const maxRate = 10_000_000

// Decide says what follows from what a user wants, or why it cannot be. Errors are *engine.Error.
func Decide(s State, to LoadRequest, by string) (Change, error) {
	if err := checkChangeable(s); err != nil {
		return Change{}, err
	}
	w := s.Scenario.Workload
	c := Change{Workload: w, Connections: s.Connections}
	d := engine.EventData{Scope: engine.ScopeRun, Reason: engine.TargetChange, InitiatedBy: by}
	at := s.Elapsed.Seconds()
	switch {
	case (to.TargetQPS == nil) == (to.Connections == nil):
		return c, engine.InvalidField("target_qps", "or connections: exactly one of them can be changed at a time",
			"name one of them")
	case to.TargetQPS != nil && !w.OpenLoop():
		return c, engine.InvalidField("target_qps", "does not apply: the run is a closed loop and has no rate",
			"change its connections")
	case to.Connections != nil && w.OpenLoop():
		return c, engine.InvalidField("connections", "do not bear the load of a run at a rate", "change its target_qps")
	case to.TargetQPS != nil:
		rate, old := *to.TargetQPS, w.StartRate()
		if !(rate > 0 && rate <= maxRate) {
			return c, engine.InvalidField("target_qps", fmt.Sprintf("%g is not more than 0 and at most %d", rate, maxRate),
				"name operations per second; stop the run to end its load")
		}
		if rate == old {
			return c, unchanged(fmt.Sprintf("The rate is %g/s already.", old))
		}
		c.Workload.TargetQPS = &rate
		d.TargetQPS, d.OldQPS = &rate, &old
		c.Note = engine.Note{Code: engine.NoteRateChanged, Old: old, New: rate, Seconds: at, User: by}
	default:
		n, old := *to.Connections, s.Connections
		most, why := s.Workers*max(s.Scenario.Scaling.PerWorkerCapacity, 1), engine.Count(s.Workers, "run worker")+" hold"
		if allowed := s.MaxConnections - SpareSessions; s.MaxConnections > 0 && allowed < most {
			most, why = allowed, fmt.Sprintf("the target allows, %d being left to others", SpareSessions)
		}
		if n < 1 || n > most {
			return c, engine.InvalidField("connections", fmt.Sprintf("%d is not between 1 and %d", n, most),
				fmt.Sprintf("%d is what %s", most, why))
		}
		if n == old {
			return c, unchanged(fmt.Sprintf("The run has %d connections already.", old))
		}
		c.Workload.ConcurrentConnections, c.Connections = n, n
		d.TargetConnections, d.OldConnections = &n, &old
		c.Note = engine.Note{Code: engine.NoteConnectionsChanged, Old: float64(old), New: float64(n), Seconds: at, User: by}
	}
	c.Event = engine.Event{Type: engine.EventLoadChanged, Data: d}
	return c, nil
}

func unchanged(words string) error {
	return &engine.Error{Code: engine.CodeConflict, Message: words, Hint: "name another value"}
}

// checkChangeable says why the load of a run cannot be changed now, or ever.
func checkChangeable(s State) error {
	w := s.Scenario.Workload
	no := func(why, hint string) error {
		return &engine.Error{Code: engine.CodeConflict, Message: why, Hint: hint}
	}
	switch {
	case s.Stopping:
		return no("The run is ending.", "start another one with the load that you want")
	case !s.Started:
		return no("The load of the run has not begun.", "change it when the warm-up or the measurement goes on")
	case w.IsSearch():
		return no("The run searches for its limit, and chooses its load itself.",
			"start a run of the mode CONCURRENCY or QPS to choose it yourself")
	case len(w.Stages) > 0:
		return no("The load of the run follows its stages.", "start a run without stages to change its load by hand")
	case w.OpenLoop() && w.Arrival == engine.ArrivalWorkload:
		return no("The workload paces its operations itself.", "change the parameters of the workload for another run")
	case s.Joining || s.Workers == 0:
		return no("Run workers are joining the run.", "try again in a few seconds")
	}
	return nil
}

// EffectiveWorkload is the workload of a run after the changes among its events; changed says that there are some.
func EffectiveWorkload(w engine.Workload, events []engine.Event) (after engine.Workload, changed bool) {
	for _, e := range events {
		if e.Type != engine.EventLoadChanged {
			continue
		}
		changed = true
		if rate := e.Data.TargetQPS; rate != nil {
			w.TargetQPS = rate
		}
		if n := e.Data.TargetConnections; n != nil {
			w.ConcurrentConnections = *n
		}
	}
	return w, changed
}

// MaxConnections is how many connections a run was to have at most between two instants, and whether its load was
// changed between them.
func MaxConnections(w engine.Workload, events []engine.Event, from, to time.Time) (connections int, varies bool) {
	connections = w.ConcurrentConnections
	for _, e := range events {
		if e.Type != engine.EventLoadChanged || !e.CreatedAt.Before(to) {
			continue
		}
		inside := e.CreatedAt.After(from)
		varies = varies || inside
		switch n := e.Data.TargetConnections; {
		case n == nil:
		case inside:
			connections = max(connections, *n)
		default: // nothing was measured with those before
			connections = *n
		}
	}
	return connections, varies
}

// MeanRate is the mean rate that a schedule asked for between two instants, with the changes among a run's events; 0
// when the loop is closed or the workload paces itself.
func MeanRate(w engine.Workload, events []engine.Event, from, to time.Time) float64 {
	mean := w.MeanRate()
	whole := to.Sub(from).Seconds()
	if mean <= 0 || whole <= 0 {
		return mean
	}
	rate, at, area, changed := mean, from, 0.0, false
	for _, e := range events {
		if e.Type != engine.EventLoadChanged || e.Data.TargetQPS == nil {
			continue
		}
		if until := e.CreatedAt.Time; until.After(at) {
			if until.After(to) {
				until = to
			}
			area, at = area+rate*until.Sub(at).Seconds(), until
		}
		rate, changed = *e.Data.TargetQPS, true
	}
	if !changed {
		return mean
	}
	return (area + rate*to.Sub(at).Seconds()) / whole
}

// MaxParts bounds how many parts of a measurement are told apart; of more none are.
const MaxParts = 200

// Parts are the stretches of a measurement under one load each, with what that load was; nil without a change in it.
func Parts(w engine.Workload, events []engine.Event, from, to time.Time) []engine.LoadPart {
	load := float64(w.ConcurrentConnections)
	if w.OpenLoop() {
		load = w.StartRate()
	}
	parts := []engine.LoadPart{{From: engine.At(from), Load: load}}
	for _, e := range events {
		d := e.Data
		switch {
		case e.Type != engine.EventLoadChanged || !e.CreatedAt.Before(to):
			continue
		case d.TargetQPS != nil:
			load = *d.TargetQPS
		case d.TargetConnections != nil:
			load = float64(*d.TargetConnections)
		}
		last := &parts[len(parts)-1]
		if !e.CreatedAt.After(last.From.Time) {
			last.Load = load // it was changed before the measurement, or twice at once
			continue
		}
		last.To = e.CreatedAt
		parts = append(parts, engine.LoadPart{From: e.CreatedAt, Load: load})
	}
	parts[len(parts)-1].To = engine.At(to)
	if len(parts) == 1 || len(parts) > MaxParts || !from.Before(to) {
		return nil
	}
	return parts
}

// NotLocalError says that another server carries the run, or nobody does.
func NotLocalError(run engine.Run) error {
	if run.Status.Terminal() || run.Status == engine.StatusPrepared {
		return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The run is %s; it has no load.", run.Status),
			Hint: "change the load of a run that goes on"}
	}
	return &engine.Error{Code: engine.CodeConflict, Message: "Another server carries the run.",
		Hint: fmt.Sprintf("ask the server %q, or stop the run from here", run.Owner)}
}
