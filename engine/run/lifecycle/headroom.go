package lifecycle

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// ScaleLimits are what bounds the run workers of a run over the rate, and their connections.
type ScaleLimits struct {
	// Workers are the run workers there are, Pool the connections that they hold together.
	Workers, Pool int
	// Allowed are the target's max_connections, 0 when they are not known, Spare those of them for others.
	Allowed, Spare int
	// Nodes have room for so many connections more, or for any number.
	Nodes     int
	Unlimited bool
	// Slots are the run's key slots, of which so many are used.
	Slots, SlotsUsed int
	// Paused: one that was added a moment ago could not join.
	Paused bool
}

// HeadroomForRate is how many run workers may join, and how many connections all may hold together.
func HeadroomForRate(sc engine.Scenario, b ScaleLimits) (Headroom, int) {
	connections, why, passing := sc.Scaling.Capacity(), "that is as many connections as a run may have", false
	if b.Allowed > 0 && b.Allowed-b.Spare < connections {
		connections, why = b.Allowed-b.Spare,
			fmt.Sprintf("the target's max_connections of %d leave no more, less %d for others", b.Allowed, b.Spare)
	}
	if !b.Unlimited && b.Nodes+b.Pool < connections {
		connections, why, passing = b.Nodes+b.Pool, "the nodes have no room for more connections", true
	}
	per := max(sc.Scaling.PerWorkerCapacity, 1)
	room := Headroom{Workers: max(connections-b.Pool, 0) / per, Reason: why, Temporary: passing}
	if rest := connections - b.Pool; room.Workers == 0 && rest > 0 {
		room.Workers = 1 // a smaller one
	}
	bound := func(n int, why string) {
		if n <= room.Workers {
			room = Headroom{Workers: n, Reason: why}
		}
	}
	if sc.Scaling.Mode == engine.ScalingBounded {
		bound(sc.Scaling.MaxWorkers-b.Workers, fmt.Sprintf("scaling.max_workers is %d", sc.Scaling.MaxWorkers))
	}
	bound(b.Slots-b.SlotsUsed, fmt.Sprintf("the %d key slots of the run are used up", b.Slots))
	if b.Paused && room.Workers > 0 {
		room = Headroom{Reason: "a run worker that was added could not join", Temporary: true}
	}
	return room, connections
}

// ReplacementLimitsOf is the workerTable of a run with so many that bear load, and so many key slots left.
func ReplacementLimitsOf(sc engine.Scenario, have, slots int) ReplacementLimits {
	workerTable := ReplacementLimits{Active: have, Slots: slots}
	if sc.Scaling.Mode == engine.ScalingBounded {
		workerTable.Max = sc.Scaling.MaxWorkers
	}
	if sc.Workload.Feed != nil {
		workerTable.FixedReason = "each replays its own part"
	}
	return workerTable
}

// Later is the later of two moments.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
