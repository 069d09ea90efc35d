package nodes

// What the tests of this package see of it: they are outside of it, since the store in memory imports it.
const (
	PollInterval  = pollInterval
	MaxEvents     = maxEvents
	PruneInterval = pruneInterval
	MaxPending    = maxPending
	RetryDelay    = retryDelay
)

// SetFleet is what Keep does first.
func (r *Admin) SetFleet(f FleetControl) { r.fleet = f }

// Refused is how many events the store will never take.
func (r *Admin) Refused() int { return r.refused }
