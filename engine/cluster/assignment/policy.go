package assignment

import "time"

// Policy are the limits that decisions follow.
type Policy struct {
	// Heartbeat is how often an ACTIVE node is pinged, Probe how often an UNREACHABLE one is.
	Heartbeat, Probe time.Duration
	// A ping is missed after the last round trip times Multiplier plus Constant,
	// at least Shortest and at most Longest.
	Multiplier                          float64
	BaseTimeout, MinTimeout, MaxTimeout time.Duration
	// MaxMisses in a row make a node UNREACHABLE.
	MaxMisses int
	// Hold is how long work that stays with its node outlives the contact: until the
	// node must have stopped by itself, with a margin.
	Hold time.Duration
	// Attempts bounds how often a work is done again after it failed; Pause passes
	// before the first repetition, and more before each further one, as backoff.After has it.
	Attempts   int
	RetryDelay time.Duration
}

// DefaultPolicy notices a silent node within 4 s, and takes a node for stopped
// 65 s after the last contact.
func DefaultPolicy() Policy {
	return Policy{Heartbeat: time.Second, Probe: 10 * time.Second, Multiplier: 3, BaseTimeout: 500 * time.Millisecond,
		MinTimeout: 500 * time.Millisecond, MaxTimeout: 10 * time.Second, MaxMisses: 3, Hold: 65 * time.Second,
		Attempts: 3, RetryDelay: time.Second}
}

// timeout is how long the answer to a ping may take after a last round trip of
// rtt, 0 when none was measured.
func (p Policy) timeout(rtt time.Duration) time.Duration {
	// A product beyond what a Duration holds is as long as any.
	if float64(rtt)*p.Multiplier >= float64(p.MaxTimeout) {
		return p.MaxTimeout
	}
	return min(max(time.Duration(float64(rtt)*p.Multiplier)+p.BaseTimeout, p.MinTimeout), p.MaxTimeout)
}
