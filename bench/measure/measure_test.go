package measure

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 9 10 20 0 1 0 100 1 1"
	for which, want := range map[int]time.Duration{OwnTimes: 2 * time.Second, ChildTimes: 190 * time.Millisecond} {
		if got, err := ParseStat(stat, which); err != nil || got != want {
			t.Fatalf("%v, %v", got, err)
		}
	}
	for _, bad := range []string{"", "42 (x) S 1", "no name"} {
		if _, err := ParseStat(bad, OwnTimes); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if self, err := CPU(os.Getpid()); err != nil || self < 0 {
		t.Fatalf("own CPU time %v, %v", self, err)
	}
}

func TestSpread(t *testing.T) {
	for want, values := range map[string][]float64{"–": nil, "7.0": {7}, "2.0 (1.0–9.0)": {9, 1, 2},
		"1.5 (1.0–2.0)": {2, 1}} {
		if got := Spread("%.1f", values); got != want {
			t.Errorf("%v: %s, not %s", values, got, want)
		}
	}
	if got := Quantile([]float64{4, 1, 2, 3, 5}, 0.99); got < 4.959 || got > 4.961 {
		t.Errorf("P99 %v", got)
	}
}

func TestMemory(t *testing.T) {
	now, peak, err := Memory(os.Getpid())
	if err != nil || now <= 0 || peak < now {
		t.Errorf("%d now, %d at most, %v", now, peak, err)
	}
}
