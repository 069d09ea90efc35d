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
func (s *Service) Subscribe(runID string) (updates <-chan *engine.Payload, cancel func(), err error) {
	var resting *engine.Payload
	over := false
	if s.runs.Find(runID) == nil {
		ctx, done := context.WithTimeout(s.lifetime, writer.StoreLimit)
		defer done()
		d, err := s.Detail(ctx, runID)
		if err != nil {
			return nil, nil, err
		}
		resting = runlive.Resting(&d, time.Now())
		over = d.Status.Terminal() && d.Phase == engine.PhaseNone
	}
	gone := false
	updates, cancel = s.board.Watch(runID, func() (*engine.Payload, bool) {
		if l := s.runs.Find(runID); l != nil {
			return l.payload.Load(), false
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
		s.routines.Go(func() { s.board.Follow(s.lifetime, runID, time.Second, s.Elsewhere(runID)) })
	}
	return updates, cancel, nil
}
