package refresh

// What the tests of this package see of it: they are outside of it, since the store in memory imports it.
const (
	YieldCheckInterval  = yieldCheckInterval
	YieldPollInterval   = yieldPollInterval
	MaxUnavailableDelay = maxUnavailableDelay
	UnavailablePause    = unavailablePause
)

// Pause is pause.
var Pause = pause
