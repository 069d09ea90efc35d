package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// Subscribe returns the payloads of a run, the current one at once. The channel
// holds the latest payload only: a slow reader skips some and delays nobody. It
// is closed after the final payload of a run, or by cancel. A run that has not
// been started sends one payload, and goes on when it starts.
func (s *Service) Subscribe(runID string) (updates <-chan *engine.LiveState, cancel func(), err error) {
	var resting *engine.LiveState
	over := false
	if s.runs.Get(runID) == nil {
		ctx, done := context.WithTimeout(s.lifetime, writer.StoreTimeout)
		defer done()
		d, err := s.Detail(ctx, runID)
		if err != nil {
			return nil, nil, err
		}
		resting = runlive.FinishedState(&d, time.Now())
		over = d.Status.Terminal() && d.Phase == engine.PhaseNone
	}
	gone := false
	updates, cancel = s.hub.Subscribe(runID, func() (*engine.LiveState, bool) {
		if l := s.runs.Get(runID); l != nil {
			return l.liveState.Load(), false
		}
		gone = resting == nil
		return resting, over
	})
	if gone { // it was live a moment ago
		cancel()
		return s.Subscribe(runID)
	}
	if !over && resting != nil && !s.runs.Closed() {
		// Another server carries it, or may start it.
		s.routines.Go(func() { s.hub.Poll(s.lifetime, runID, time.Second, s.RemoteState(runID)) })
	}
	return updates, cancel, nil
}
