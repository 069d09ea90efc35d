package finalize

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

func TestAMeasurementThatIsTooSmallIsNoted(t *testing.T) {
	const short, few, cold = "The measurement took", "P99 and what lies above", "There was no warm-up"
	covered := 3.0
	for name, c := range map[string]struct {
		f    engine.Figures
		w    engine.Workload
		want []string
	}{
		"long enough": {engine.Figures{Operations: 1000, DurationSeconds: 19.6}, engine.Workload{WarmupSeconds: 1}, nil},
		"a second": {engine.Figures{Operations: 40, DurationSeconds: 1}, engine.Workload{},
			[]string{short + " 1 s", "40 operations were measured: " + few + " rest on the slowest 1,", cold}},
		"slow": {engine.Figures{Operations: 999, DurationSeconds: 60}, engine.Workload{WarmupSeconds: 5},
			[]string{"the slowest 10,"}},
		"one": {engine.Figures{Operations: 1, DurationSeconds: 60}, engine.Workload{WarmupSeconds: 5},
			[]string{"1 operation was measured"}},
		"cold": {engine.Figures{Operations: 1e6, DurationSeconds: 60}, engine.Workload{}, []string{cold}},
		"search": {engine.Figures{Operations: 10, DurationSeconds: 2}, engine.Workload{LoadMode: engine.LoadFindMax},
			nil},
		"nothing": {engine.Figures{DurationSeconds: 2}, engine.Workload{}, nil},
		"parts lost": {engine.Figures{Operations: 10, DurationSeconds: 3, RecordPartial: true, CoveredSeconds: &covered}, engine.Workload{},
			nil},
	} {
		v := live.NewValidity()
		noteExtent(v, &c.f, c.w)
		got := v.Verdict()
		if got.Verdict != engine.VerdictValid || len(got.Notes) != len(c.want) {
			t.Errorf("%s: %s with %q, want %q", name, got.Verdict, got.Notes, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got.Notes[i], want) {
				t.Errorf("%s: %q, want %q", name, got.Notes[i], want)
			}
		}
	}
}
