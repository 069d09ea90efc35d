package orchestrator

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// traits are those of the database that a run with this plan has.
func (s *Service) traits(plan *engine.Plan) target.Traits {
	if plan == nil {
		return target.Traits{}
	}
	return target.TraitsOf(s.opts.Drivers[plan.Driver])
}
