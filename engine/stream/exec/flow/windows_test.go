package flow

import (
	"slices"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// TestPassedWindowsDoNotComeBack: a window without rows that was passed is not given out for a row that comes later.
func TestPassedWindowsDoNotComeBack(t *testing.T) {
	p := newPanes[int](plan.Window{Size: 10, Advance: 5})
	var given []int64
	upTo := func(watermark int64) {
		t.Helper()
		err := p.close(watermark, func(start int64, _ []int) error {
			given = append(given, start)
			return nil
		}, func(int) {})
		if err != nil {
			t.Fatal(err)
		}
	}
	upTo(100)
	if next, ok := p.earliestPending(); !ok || next != 95 || p.late(98) {
		t.Fatalf("the next window is %d, %v, late %v", next, ok, p.late(98))
	}
	p.add(95, 1) // a row at 98
	upTo(104)
	upTo(110)
	if !slices.Equal(given, []int64{95}) || len(p.starts) > 0 {
		t.Errorf("windows %v were given out, panes %v are left", given, p.starts)
	}
}
