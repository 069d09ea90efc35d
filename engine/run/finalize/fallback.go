package finalize

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// checkFallback says whether a second warehouse may have answered for the run's. The
// client cannot see that: only how long it took tells.
func (s *Service) checkFallback(ctx context.Context, e Evidence, f *engine.Figures) {
	if !s.opts.Drivers.Traits(e.Plan).Warehouses {
		return
	}
	points, err := s.opts.Store.WarehouseChanges(ctx, e.Run.RunID)
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", e.Run.RunID).Msg(
			"whether a fallback warehouse took part is not known: the polls cannot be read")
		return
	}
	var house engine.WarehousePoint
	for _, p := range points {
		if p.FallbackWarehouse != "" {
			house = p
		}
	}
	if house.FallbackWarehouse == "" {
		return
	}
	longest := f.ServiceMs
	if longest == nil {
		longest = f.LatencyMs
	}
	if longest == nil || longest.Max < engine.Milliseconds(s.opts.InteractiveLimit) {
		e.Validity.AddNote(engine.Note{Code: engine.NoteFallbackUnused, Warehouse: house.Name,
			Fallback: house.FallbackWarehouse, Seconds: s.opts.InteractiveLimit.Seconds()})
		return
	}
	e.Validity.Add(engine.CauseFallback, engine.Note{Code: engine.AboutFallback, Warehouse: house.Name,
		Fallback: house.FallbackWarehouse, Planned: s.opts.InteractiveLimit.Seconds(), Worst: longest.Max / 1000},
		e.Run.WarmupEndTime.Time, e.Run.EndTime.Time)
}
