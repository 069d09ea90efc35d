package wiring

import (
	"context"

	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/retention"
)

// Prices is the price list that costs are reckoned with.
func (s *Services) Prices() *cost.Source { return s.prices }

// OpenRetention begins to delete the runs that admins have decided to let go of.
func (s *Services) OpenRetention() *retention.Janitor {
	k := retention.New(retention.Options{Store: s.Store, Files: s.Results, Owner: s.owner, Log: s.Log})
	k.Start()
	s.collectors = append(s.collectors, k)
	s.onClose(func(context.Context) error { k.Close(); return nil })
	return k
}
