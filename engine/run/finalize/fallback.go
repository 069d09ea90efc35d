package finalize

import (
	"context"
	"strings"

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
	var house, unknown *engine.WarehousePoint
	for i := range points {
		switch p := &points[i]; {
		case p.FallbackWarehouse == nil && strings.EqualFold(p.Type, "INTERACTIVE"):
			unknown = p
		case p.FallbackWarehouse != nil && *p.FallbackWarehouse != "":
			house = p
		}
	}
	longest := f.ServiceMs
	if longest == nil {
		longest = f.LatencyMs
	}
	limit := s.opts.InteractiveLimit
	short := longest == nil || longest.Max < engine.Milliseconds(limit)
	switch {
	case house == nil && (unknown == nil || short):
	case house == nil:
		e.Validity.AddNote(engine.Note{Code: engine.NoteFallbackUnknown, Warehouse: unknown.Name, Seconds: limit.Seconds(),
			Worst: longest.Max / 1000})
	case short:
		e.Validity.AddNote(engine.Note{Code: engine.NoteFallbackUnused, Warehouse: house.Name,
			Fallback: *house.FallbackWarehouse, Seconds: limit.Seconds()})
	default:
		e.Validity.Add(engine.CauseFallback, engine.Note{Code: engine.AboutFallback, Warehouse: house.Name,
			Fallback: *house.FallbackWarehouse, Planned: limit.Seconds(), Worst: longest.Max / 1000},
			e.Run.WarmupEndTime.Time, e.Run.EndTime.Time)
	}
}
