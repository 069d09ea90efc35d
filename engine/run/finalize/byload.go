package finalize

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// intervalReader tells what was executed between instants; results that do not leave the parts of a measurement out.
type intervalReader interface {
	Between(ctx context.Context, runID string, cuts []time.Time) ([]engine.MeasuredSecond, error)
}

// byLoad is the measurement by the loads that users gave it: one figure over several loads is that of none. Nil without
// a change, and where a part of the record is lost, whose rates would be too low.
func (s *Service) byLoad(ctx context.Context, e Evidence, f *engine.Figures) []engine.LoadPart {
	results, able := s.opts.Results.(intervalReader)
	if !able || f.Operations == 0 || f.RecordPartial {
		return nil
	}
	parts := scaling.Parts(e.Run.Scenario.Workload, e.changes, f.MeasuredFrom.Time, f.MeasuredTo.Time)
	if len(parts) == 0 {
		return nil
	}
	cuts := []time.Time{parts[0].From.Time}
	for _, p := range parts {
		cuts = append(cuts, p.To.Time)
	}
	found, err := results.Between(ctx, e.Run.RunID, cuts)
	if err != nil || len(found) != len(parts) {
		s.opts.Log.Warn().Err(err).Str("run_id", e.Run.RunID).Msg("the parts of the measurement cannot be distinguished")
		return nil
	}
	for i := range parts {
		p, m := &parts[i], found[i]
		p.Operations, p.Errors, p.CarriedOver = m.Operations, m.Errors, m.CarriedOver
		if m.Seconds > 0 {
			p.QPS = new(float64(m.Rated()) / m.Seconds)
		}
		if h, err := histogram.FromData(m.Latency); err == nil && h.Count() > 0 {
			p.P50Ms, p.P95Ms, p.P99Ms = quantile(h, 0.5), quantile(h, 0.95), quantile(h, 0.99)
		}
	}
	return parts
}

func quantile(h *histogram.Histogram, q float64) *float64 {
	ms := h.Quantile(q) / 1e6
	return &ms
}
