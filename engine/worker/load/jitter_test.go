package load

import (
	"testing"
	"time"
)

// TestAConnectionIsTriedAgainWithinItsPause: five seconds at most, and not all at one time.
func TestAConnectionIsTriedAgainWithinItsPause(t *testing.T) {
	least, most := maxBackoff, time.Duration(0)
	for range 10_000 {
		d := jitter(maxBackoff)
		least, most = min(least, d), max(most, d)
	}
	if most > maxBackoff || least < maxBackoff/2 || most-least < maxBackoff/4 {
		t.Errorf("from %v to %v", least, most)
	}
	if d := jitter(1); d < 0 || d > 1 {
		t.Errorf("%v of a nanosecond", d)
	}
}
