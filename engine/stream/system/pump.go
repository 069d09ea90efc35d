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
	// roundEvery is how often what run workers have recorded is given out.
	roundEvery = 200 * time.Millisecond
	// slack is how long an execution that has ended may take to get into its recorder.
	slack = 100 * time.Millisecond
	// afterwards is for how long the time is told when the last run worker has gone, so that windows end.
	afterwards = time.Minute
)

// ofRecorders reports whether a stream is made of what run workers record.
func ofRecorders(stream string) bool {
	return stream == connector.Executions || stream == connector.StatementStatistics
}

// recorded has what run workers record given out while somebody reads it.
type recorded struct {
	depot depot
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

// wanted begins to give out. The hub is locked.
func (p *recorded) wanted(h *Hub) {
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

// unwanted ends that once nobody reads any more. The hub is locked.
func (p *recorded) unwanted(h *Hub) {
	if p.stop != nil && len(h.readers[connector.Executions])+len(h.readers[connector.StatementStatistics]) == 0 {
		close(p.stop)
		p.stop = nil
	}
}

func (p *recorded) join(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = append(p.followers, f)
	select {
	case p.joined <- struct{}{}:
	default: // nobody waits, or there is one
	}
}

func (p *recorded) leave(f *follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers = slices.DeleteFunc(p.followers, func(o *follower) bool { return o == f })
}

// give gives a batch out with how far all run workers have come.
func (p *recorded) give(h *Hub, t *told, mark int64) {
	t.Mark, t.Marked = mark, true
	h.give(connector.Executions, t)
}

// pump gives out what run workers have recorded, until stop is closed.
func (p *recorded) pump(h *Hub, stop <-chan struct{}) {
	ticker := time.NewTicker(roundEvery)
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
		case now.Sub(alone) > afterwards:
			select { // nothing is done until a run worker comes
			case <-stop:
				return
			case <-p.joined:
				continue
			}
		}
		p.round(h, followers)
		if n%int(time.Second/roundEvery) == 0 {
			for _, f := range followers {
				f.mu.Lock()
				h.tellStatistics(f)
				f.mu.Unlock()
			}
		}
	}
}

// round has everything given out that was recorded until now. The time that goes with it is that of the runs: it may be
// another than that of this machine, so that there is none before the first run worker.
func (p *recorded) round(h *Hub, followers []*follower) {
	var catching sync.WaitGroup
	for _, f := range followers {
		catching.Go(func() {
			now := f.of.Now()
			if f.of.CatchUp() {
				f.mark = now.Add(-slack).UnixMicro()
			} // else it has come no further
		})
	}
	catching.Wait()
	if len(followers) > 0 {
		p.ahead, p.known = time.Until(followers[0].of.Now()), true
	}
	mark := time.Now().Add(p.ahead - slack).UnixMicro()
	if len(followers) > 0 {
		mark = math.MaxInt64
	}
	wanted := h.Wanted(connector.Executions)
	var sealed []*told
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
		end := &told{}
		end.Reset(schemas()[connector.Executions])
		sealed = append(sealed, end)
	}
	mark = max(p.mark.Load(), mark)
	for i, t := range sealed {
		if i == len(sealed)-1 {
			p.give(h, t, mark)
		} else {
			p.give(h, t, p.mark.Load())
		}
	}
	p.mark.Store(mark) // behind all that was recorded before
}
