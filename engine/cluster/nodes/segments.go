package nodes

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// What is brought to a node: so many segments at once, while so many more wait for their turn; and how long one may
// take, by its size. A node that reads more slowly, or not at all, does not get it: another may have it at hand.
const (
	maxSegments        = 4
	maxWaitingSegments = 1024
	segmentTimeout     = 30 * time.Second
	minSegmentSpeed    = 4 << 20 // bytes a second
	refusalTimeout     = 5 * time.Second
	// segmentRequestTTL is how long one that waits for its turn does so without being asked for again. A node asks every
	// three seconds, one server after another.
	segmentRequestTTL = 20 * time.Second
)

// segmentTime is how long a segment may take.
func (f *Fleet) segmentTime(bytes int64) time.Duration {
	begin := segmentTimeout
	if f.opts.SegmentTimeout > 0 {
		begin = f.opts.SegmentTimeout
	}
	return begin + time.Duration(bytes)*time.Second/minSegmentSpeed
}

// segments are those that a node wants. A node asks again for what has not come; that is brought once.
type segments struct {
	slots chan struct{}
	mu    *sync.Mutex
	// known are those that are brought, or wait for their turn, by their hash: when they were asked for last.
	known map[string]time.Time
}

func newSegments() segments {
	return segments{slots: make(chan struct{}, maxSegments), mu: &sync.Mutex{}, known: map[string]time.Time{}}
}

// begin reports whether a segment is to be brought now, by whoever asks. full: there are too many already.
func (s *segments) begin(sum string) (begins, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[sum]; ok {
		s.known[sum] = time.Now()
		return false, false
	}
	if len(s.known) >= maxSegments+maxWaitingSegments {
		return false, true
	}
	s.known[sum] = time.Now()
	return true, false
}

func (s *segments) end(sum string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, sum)
}

// acquire waits for that of a segment, and reports whether it has come, and the segment is still wanted. One that is
// not leaves its place to others.
func (s *segments) acquire(ctx context.Context, sum string) bool {
	again := time.NewTicker(segmentRequestTTL / 4)
	defer again.Stop()
	for {
		select {
		case s.slots <- struct{}{}:
			if s.stillWanted(sum) {
				return true
			}
			<-s.slots
			return false
		case <-again.C:
			if !s.stillWanted(sum) {
				return false
			}
		case <-ctx.Done():
			s.end(sum)
			return false
		}
	}
}

// stillWanted reports whether a segment was asked for of late, and forgets it otherwise.
func (s *segments) stillWanted(sum string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.known[sum]) <= segmentRequestTTL {
		return true
	}
	delete(s.known, sum)
	return false
}

// requestSegment has a segment brought to the node, until ctx ends; it does not wait for that.
func (n *node) requestSegment(ctx context.Context, end protocol.ServerEnd, m protocol.SegmentRequest) {
	log := n.fleet.opts.Log.With().Str("node_id", n.ID()).Str("run_id", m.RunID).Str("sha256", m.SHA256).Logger()
	begins, full := n.segments.begin(m.SHA256)
	if full {
		log.Warn().Int("wanted", maxSegments+maxWaitingSegments).
			Msg("a node wants more segments than are brought to one; it has to ask again")
	}
	if !begins {
		return
	}
	go func() {
		if !n.segments.acquire(ctx, m.SHA256) {
			return
		}
		defer func() { <-n.segments.slots }()
		begin := time.Now()
		switch size, err := n.bringSegment(ctx, end, m); {
		case err == nil:
			log.Debug().Int64("bytes", size).Dur("took_ms", time.Since(begin)).Msg("a segment was brought to a node")
		case errors.Is(err, protocol.ErrNotWanted) || ctx.Err() != nil:
			log.Debug().Err(err).Msg("a segment is not wanted any more")
		default:
			log.Warn().Err(err).Dur("took_ms", time.Since(begin)).Msg("a segment could not be brought to a node")
		}
	}()
}

// bringSegment gives a node a segment that it wanted, or tells it why there is none. Where the node itself has given it
// up, whoever waited knows; a refusal would meet those who have asked again since.
func (n *node) bringSegment(ctx context.Context, end protocol.ServerEnd, m protocol.SegmentRequest) (int64, error) {
	taker, ok := end.(protocol.SegmentTaker)
	if !ok || n.fleet.opts.Content == nil {
		n.segments.end(m.SHA256)
		return 0, errors.New("there is no way to bring it")
	}
	size, err := n.sendSegment(ctx, taker, m)
	n.segments.end(m.SHA256) // before the node hears that there is none: it asks at once
	if err == nil || errors.Is(err, protocol.ErrNotWanted) || errors.Is(err, protocol.ErrAborted) || ctx.Err() != nil {
		return size, err
	}
	refusing, cancel := context.WithTimeout(ctx, refusalTimeout)
	defer cancel()
	_ = taker.RefuseSegment(refusing, m.SHA256, err.Error()) // without an answer it asks again
	return size, err
}

// sendSegment opens and sends a segment, unless that takes too long.
func (n *node) sendSegment(ctx context.Context, taker protocol.SegmentTaker, m protocol.SegmentRequest) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(segmentTimeout, func() { cancel(errSegmentTimeout) })
	defer late.Stop()
	content, size, err := n.fleet.opts.Content.Segment(ctx, m.RunID, m.Name)
	if err == nil {
		late.Reset(n.fleet.segmentTime(size))
		err = taker.PutSegment(ctx, m.SHA256, size, content)
		_ = content.Close()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return size, err
}

var errSegmentTimeout = errors.New("it took too long to bring the segment")
