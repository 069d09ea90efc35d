package library

import (
	"testing"

	"pgregory.net/rapid"
)

func TestCompareVersions(t *testing.T) {
	ascending := []string{"beta", "0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.2", "1.0.0-alpha.10", "1.0.0",
		"1.0.1", "1.2", "1.10.0", "2", "2024.11"}
	for i, a := range ascending {
		for j, b := range ascending {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := compareVersions(a, b); got != want {
				t.Errorf("compareVersions(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
	for _, same := range [][2]string{{"1", "1.0.0"}, {"1.0.0+linux", "1.0.0+mac"}, {"01.2", "1.2"}} {
		if compareVersions(same[0], same[1]) != 0 {
			t.Errorf("%q and %q differ", same[0], same[1])
		}
	}
}

// TestVersionsAreOrdered: whatever an author writes, sorting is well defined.
func TestVersionsAreOrdered(t *testing.T) {
	version := rapid.StringMatching(`[0-9a-z][0-9a-z.+-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := version.Draw(t, "a"), version.Draw(t, "b"), version.Draw(t, "c")
		if compareVersions(a, b) != -compareVersions(b, a) {
			t.Fatalf("%q and %q are each before the other", a, b)
		}
		if compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0 && compareVersions(a, c) > 0 {
			t.Fatalf("%q ≤ %q ≤ %q, but not in a row", a, b, c)
		}
	})
}
