package host

import "testing"

func TestTelemetryIsWithinItsRange(t *testing.T) {
	s := New()
	for range 3 {
		r := s.Sample()
		for name, v := range map[string]float64{"cpu": r.CPUPercent, "memory": r.MemoryPercent, "host cpu": r.HostCPUPercent,
			"host memory": r.HostMemoryPercent} {
			if v < 0 || v > 100 {
				t.Errorf("%s is %v %%", name, v)
			}
		}
		if r.MemoryBytes <= 0 || r.Goroutines <= 0 {
			t.Errorf("%+v", r)
		}
	}
}
