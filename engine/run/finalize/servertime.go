package finalize

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/observe"
)

// serverTime says where the client's time went, and why operations were slow, where the server was observed. What
// cannot be read leaves the figures without it.
func (s *Service) serverTime(ctx context.Context, e Evidence, f *engine.Figures) {
	from, able := s.opts.Results.(observe.Source)
	if !able || e.Run.WarmupStartTime.IsZero() && f.Operations == 0 {
		return
	}
	v, err := observe.Read(ctx, from, e.Run.RunID, observe.MeasuredOf(e.Run, f, &e.Environment))
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", e.Run.RunID).Msg("what the server did cannot be read: there are no findings")
		return
	}
	if v.Observed {
		f.ServerTime, f.Findings = v.Time, v.Findings
	}
}
