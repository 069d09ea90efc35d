//go:build !linux

package load_test

import (
	"testing"
	"time"
)

// bare is for Linux only.
func bare(*testing.B, string, int, time.Duration) (tps, cost float64) { return 0, 0 }
