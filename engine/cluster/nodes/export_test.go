package nodes

// What the tests of this package see of it: they are outside of it, since the store in memory imports it.
const (
	ReadEvery   = readEvery
	KeepEvents  = keepEvents
	PruneEvery  = pruneEvery
	MostPending = mostPending
	RetryAfter  = retryAfter
)

// SetFleet is what Keep does first.
func (r *Roster) SetFleet(f OperatorFleet) { r.fleet = f }

// Refused is how many events the store will never take.
func (r *Roster) Refused() int { return r.refused }
