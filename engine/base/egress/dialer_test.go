package egress

import (
	"context"
	"testing"
	"time"
)

// TestTheCallersLimitIsThatOfDialling: who gives a connect 30 s is not cut short.
func TestTheCallersLimitIsThatOfDialling(t *testing.T) {
	if d := dialer(context.Background()); d.Timeout != dialTimeout {
		t.Errorf("without a limit it is %v", d.Timeout)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*dialTimeout)
	defer cancel()
	if d := dialer(ctx); d.Timeout != 0 && d.Timeout < 3*dialTimeout-time.Second {
		t.Errorf("with a limit of %v it is %v", 3*dialTimeout, d.Timeout)
	}
}
