// Package backoff has the pauses between attempts at what has failed.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the pause after each failure in a row: Min after the first, twice the pause before after each further one,
// and Max at most. It is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration
	last     time.Duration
}

// Next returns the pause after another failure.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(b.Min, 2*b.last), b.Max)
	return b.last
}

// Reset has the pauses begin with Min again, after a success.
func (b *Backoff) Reset() { b.last = 0 }

// Wait pauses for Next, and reports whether ctx has not ended meanwhile.
func (b *Backoff) Wait(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(b.Next()):
		return true
	}
}

// Jitter returns a pause of that length at most, and of half of it at least, by chance: those that failed together do
// not come again together.
func Jitter(pause time.Duration) time.Duration { return pause - rand.N(pause/2+1) }

// maxDoublings is how often After doubles a pause.
const maxDoublings = 5

// After returns the pause after so many failures, where nothing keeps a Backoff: first, doubled with each failure after
// the first, 32 times as long at most.
func After(failures int, first time.Duration) time.Duration {
	return first << min(max(failures-1, 0), maxDoublings)
}
