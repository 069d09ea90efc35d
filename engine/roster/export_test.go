package roster

// What the tests of this package see of it: they are outside of it, since the store in memory imports it.
const (
	ReadEvery   = readEvery
	KeepEvents  = keepEvents
	PruneEvery  = pruneEvery
	MostPending = mostPending
	RetryAfter  = retryAfter
)
