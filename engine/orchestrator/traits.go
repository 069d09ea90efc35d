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

// enrichable reports whether a run with this plan may have a history to be joined with.
func (s *Service) enrichable(plan *engine.Plan) bool { return s.traits(plan).History }

// enrichmentSkipped is the enrichment of a target that keeps no history of single queries.
func (s *Service) enrichmentSkipped(plan *engine.Plan) engine.Enrichment {
	reason := "The run was not prepared, so there is nothing to join with a history."
	if plan != nil {
		reason = s.traits(plan).Title + " keeps no history of single queries; the recorded executions are the source."
	}
	return engine.Enrichment{Status: engine.EnrichmentSkipped, Reason: reason}
}
