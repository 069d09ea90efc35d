package orchestrator

import (
	"context"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

// heard lets what plugins log in calls with the context reach the log of the run, while it is live here.
func (s *Service) heard(ctx context.Context, runID string) context.Context {
	return plugin.WithLog(ctx, func(line plugin.LogLine) {
		if l := s.runs.Find(runID); l != nil {
			l.plugins.Add(line, l.clock.Now())
		}
	})
}
