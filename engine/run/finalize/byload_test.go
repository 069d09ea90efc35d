package finalize

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// pieces answers with what ended between two changes of the load.
type pieces struct {
	record.Results
	found []engine.MeasuredSecond
}

func (p pieces) Between(context.Context, string, []time.Time) ([]engine.MeasuredSecond, error) {
	return p.found, nil
}

// TestByLoadCountsWhatWasCarriedOverInTheRateAlone: the operations of the parts are those of the run.
func TestByLoadCountsWhatWasCarriedOverInTheRateAlone(t *testing.T) {
	from := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	connections := 8
	svc := New(Options{Log: zerolog.Nop(), Results: pieces{found: []engine.MeasuredSecond{
		{Operations: 600, Errors: 6, CarriedOver: 200, Seconds: 10}, {Operations: 900, Errors: 1, Seconds: 10}}}})
	parts := svc.byLoad(t.Context(), Evidence{changes: []engine.Event{{Type: engine.EventLoadChanged,
		CreatedAt: engine.At(from.Add(10 * time.Second)), Data: engine.EventData{TargetConnections: &connections}}}},
		&engine.Figures{Operations: 1500, Errors: engine.ErrorFigures{Count: 7}, MeasuredFrom: engine.At(from),
			MeasuredTo: engine.At(from.Add(20 * time.Second))})
	if len(parts) != 2 {
		t.Fatalf("%+v", parts)
	}
	if p := parts[0]; p.Operations != 600 || p.Errors != 6 || p.CarriedOver != 200 || *p.QPS != 80 {
		t.Errorf("the first: %+v", p)
	}
	if p := parts[1]; p.Operations != 900 || p.Errors != 1 || p.CarriedOver != 0 || *p.QPS != 90 {
		t.Errorf("the second: %+v", p)
	}
}
