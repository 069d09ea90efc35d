package fake

import "testing"

func TestP95OfDurations(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for want, of := range map[float64][]float64{0: nil, 7: {7}, 2: {2, 1}, 95: hundred} {
		if got := p95(of); got != want {
			t.Errorf("P95 of %v is %v, want %v", of, got, want)
		}
	}
}
