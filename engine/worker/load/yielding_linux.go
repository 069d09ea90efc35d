package load

import "time"

// yieldPolicy decides whether a loop lets the threads that wait for its
// processor go first, before it asks for events.
//
// Where the server's sessions share the loop's processor, they have their
// answers ready when it is back: it finds many at once, and the sessions need not wake
// it. Elsewhere nobody waits and the call is for nothing, or somebody takes the processor for long.
// Both show in how long it takes.
type yieldPolicy struct {
	score int
	skip  int
	// rest is until when none is tried.
	rest int64
}

const (
	// A call that takes less has let nobody run.
	yieldNothing = 2_000
	// One that takes more than a session's part for each connection, and some time
	// besides, has let somebody run who is no session.
	yieldSession = 50_000
	yieldExcess  = 500_000
	yieldRest    = int64(time.Second)
	// While it is of no use, one wait in so many tries.
	yieldProbe = 64
	yieldScore = 16
)

// due reports whether this wait should yield.
func (y *yieldPolicy) due(now int64) bool {
	if now < y.rest {
		return false
	}
	if y.score > 0 {
		return true
	}
	y.skip++
	return y.skip%yieldProbe == 0
}

// took notes how long a yield with so many connections lasted, in ns.
func (y *yieldPolicy) took(ns, now int64, connections int) {
	switch {
	case ns < yieldNothing:
		y.score = max(y.score-1, 0)
	case ns > yieldSession*int64(connections)+yieldExcess:
		y.score, y.rest = 0, now+yieldRest
	default:
		y.score = min(y.score+2, yieldScore)
	}
}
