package refresh

// What the tests of this package see of it: they are outside of it, since the store in memory imports it.
const (
	YieldEvery = yieldEvery
	GaveEvery  = gaveEvery
	AwayMost   = awayMost
	AwayPause  = awayPause
)

// Pause is pause.
var Pause = pause
