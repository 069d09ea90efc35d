package wiring

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestFiguresOfNotices: what failed is told, a rate only of a run that has one, and what answered in place of a
// database.
func TestFiguresOfNotices(t *testing.T) {
	var whole, lost store.RunRow
	s := engine.Summary{
		Passed:    true,
		Validity:  engine.VerdictDegraded,
		Simulated: true,
		Figures: engine.Figures{QPS: new(7.0),
			Errors: engine.ErrorFigures{Rate: new(0.25)}, LatencyMs: &engine.LatencyMs{P95: 3}},
	}
	setFigures(&whole, &s)
	if whole.ErrorRate == nil || *whole.ErrorRate != 0.25 || whole.QPS == nil || *whole.QPS != 7 || *whole.P95Ms != 3 ||
		!*whole.Passed || *whole.Verdict != engine.VerdictDegraded || !whole.Simulated || whole.Emulated {
		t.Errorf("%+v", whole)
	}
	s.QPS, s.RecordPartial, s.Emulated = nil, true, true
	setFigures(&lost, &s)
	if lost.QPS != nil || !lost.Emulated {
		t.Errorf("a rate of a record that is lost: %+v", lost)
	}
}
