package system

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

const (
	// roundInterval is how often what run workers have recorded is given out.
	roundInterval = 200 * time.Millisecond
	// recordDelay is how long an execution that has ended may take to get into its recorder.
	recordDelay = 100 * time.Millisecond
	// trailingTime is for how long the time is told when the last run worker has gone, so that windows end.
	trailingTime = time.Minute
)

// ofRecorders reports whether a stream is made of what run workers record.
func ofRecorders(stream string) bool {
	return stream == connector.Executions || stream == connector.StatementStatistics
}

// recorderPump has what run workers record given out while somebody reads it.
type recorderPump struct {
	depot batchPool
	// generation counts how often somebody has begun to read when nobody did.
	generation atomic.Int64
	stop       chan struct{} // ends the pump; nil while there is none; the hub's mu guards it
	done       chan struct{} // closed when the last pump has ended; as stop

	mu        sync.Mutex
	followers []*follower
	joined    chan struct{} // holds a token when a run worker has come
	// mark is how far all run workers had come in the last round, in microseconds.
	mark atomic.Int64
	// ahead is by how much the time of the runs was ahead of the machine's in the last round with one, if there was any;
	// the pump has it.
	ahead time.Duration
	known bool
}

// addReader begins to give out. The hub is locked.
func (p *recorderPump) addReader(h *Hub) {
	if p.stop != nil {
		return
	}
	p.generation.Add(1)
	p.mark.Store(column.MinTime)
	p.mu.Lock()
	if p.joined == nil {
		p.joined = make(chan struct{}, 1)
	}
	p.mu.Unlock()
	stop, before, done := make(chan struct{}), p.done, make(chan struct{})
	p.stop, p.done = stop, done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		p.pump(h, stop)
	}()
}

// removeReader ends that once nobody reads any more. The hub is locked.
func (p *recorderPump) removeReader(h *Hub) {
	if p.stop != nil && len(h.readers[connector.Executions])+len(h.readers[connector.StatementStatistics]) == 0 {
		close(p.stop)
		p.stop = nil
	}
}

func (p *recorderPump) join(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = append(p.followers, f)
	select {
	case p.joined <- struct{}{}:
	default: // nobody waits, or there is one
	}
}

func (p *recorderPump) leave(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = slices.DeleteFunc(p.followers, func(o *follower) bool { return o == f })
}

// broadcast gives a batch out with how far all run workers have come.
func (p *recorderPump) broadcast(h *Hub, t *queuedBatch, mark int64) {
	t.Watermark, t.HasWatermark = mark, true
	h.broadcast(connector.Executions, t)
}

// pump gives out what run workers have recorded, until stop is closed.
func (p *recorderPump) pump(h *Hub, stop <-chan struct{}) {
	ticker := time.NewTicker(roundInterval)
	defer ticker.Stop()
	alone := time.Time{} // since when there is no run worker
	p.known = false
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-p.joined: // who is waited for from now on, by queries of which this is a part, is told at once
		case <-ticker.C:
		}
		p.mu.Lock()
		followers := slices.Clone(p.followers)
		p.mu.Unlock()
		switch now := time.Now(); {
		case len(followers) > 0:
			alone = time.Time{}
		case alone.IsZero():
			alone = now
		case now.Sub(alone) > trailingTime:
			select { // nothing is done until a run worker comes
			case <-stop:
				return
			case <-p.joined:
				continue
			}
		}
		p.round(h, followers)
		if n%int(time.Second/roundInterval) == 0 {
			for _, f := range followers {
				f.mu.Lock()
				h.publishStatistics(f)
				f.mu.Unlock()
			}
		}
	}
}

// round has everything given out that was recorded until now. The time that goes with it is that of the runs: it may be
// another than that of this machine, so that there is none before the first run worker.
func (p *recorderPump) round(h *Hub, followers []*follower) {
	var catching sync.WaitGroup
	for _, f := range followers {
		catching.Go(func() {
			now := f.stream.Now()
			if f.stream.Flush() {
				f.mark = now.Add(-recordDelay).UnixMicro()
			} // else it has come no further
		})
	}
	catching.Wait()
	if len(followers) > 0 {
		p.ahead, p.known = time.Until(followers[0].stream.Now()), true
	}
	mark := time.Now().Add(p.ahead - recordDelay).UnixMicro()
	if len(followers) > 0 {
		mark = math.MaxInt64
	}
	wanted := h.HasReaders(connector.Executions)
	var sealed []*queuedBatch
	for _, f := range followers {
		mark = min(mark, f.mark)
		f.mu.Lock()
		f.begin(p.generation.Load())
		if t := f.seal(); t != nil && wanted {
			sealed = append(sealed, t)
		}
		f.mu.Unlock()
	}
	if !wanted || !p.known {
		return
	}
	if len(sealed) == 0 {
		end := &queuedBatch{}
		end.Reset(schemas()[connector.Executions])
		sealed = append(sealed, end)
	}
	mark = max(p.mark.Load(), mark)
	for i, t := range sealed {
		if i == len(sealed)-1 {
			p.broadcast(h, t, mark)
		} else {
			p.broadcast(h, t, p.mark.Load())
		}
	}
	p.mark.Store(mark) // behind all that was recorded before
}
