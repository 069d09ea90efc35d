package load

import (
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/histogram"
)

// collector reads records behind the slots: figures for the snapshots, and the
// Sink for everything. It is one goroutine; the figures are guarded by mu.
type collector struct {
	g    *Group
	scan chan chan struct{} // read partly filled chunks too, then close the channel
	quit chan struct{}      // read everything and end
	done chan struct{}

	mu    sync.Mutex
	phase figures
	tick  figures
	warm  bool // the phase counts warm-up executions
	// recorded counts executions, statements those of transactions.
	recorded, statements int64
	recent               []uint32 // ids of the last errors, newest last
	lastTick             int64
	told                 told
	sinkErr              error // the Sink is not called again after an error
}

// figures are the counters and distributions of an interval.
type figures struct {
	counts  [engine.NumKinds]engine.KindCounts
	latency [engine.NumKinds]*histogram.Histogram // nil until the kind occurs
	classes map[engine.ErrorClass]int64
	split   engine.LatencySplit
	// Of an open loop only.
	service, lag *histogram.Histogram
	retries      int64
}

func (f *figures) openLoop() { f.service, f.lag = histogram.New(), histogram.New() }

func (f *figures) add(r *engine.Execution) {
	service := r.Elapsed - r.ScheduleLag - r.PoolWait
	f.split.Count++
	f.split.Lag += r.ScheduleLag
	f.split.Wait += r.PoolWait
	f.split.RoundTrip += service - r.Decode
	f.split.Decode += r.Decode
	if f.lag != nil {
		f.service.Record(service)
		f.lag.Record(r.ScheduleLag)
	}
	h := f.latency[r.Kind]
	if h == nil {
		h = histogram.New()
		f.latency[r.Kind] = h
	}
	h.Record(r.Elapsed)
	f.counts[r.Kind].Count++
	f.retries += int64(r.Retries)
	if !r.Success {
		f.counts[r.Kind].Errors++
	}
}

func (f *figures) reset() {
	f.counts = [engine.NumKinds]engine.KindCounts{}
	for _, h := range f.latency {
		if h != nil {
			h.Reset()
		}
	}
	f.classes, f.retries = nil, 0
	f.split = engine.LatencySplit{}
	if f.lag != nil {
		f.service.Reset()
		f.lag.Reset()
	}
}

func (f *figures) total() (count, errors int64) {
	for _, c := range f.counts {
		count += c.Count
		errors += c.Errors
	}
	return count, errors
}

func (f *figures) byKind() map[engine.Kind]engine.KindCounts {
	m := make(map[engine.Kind]engine.KindCounts)
	for k, c := range f.counts {
		if c.Count > 0 {
			m[engine.Kind(k)] = c
		}
	}
	return m
}

func (f *figures) whole() *histogram.Histogram {
	all := histogram.New()
	for _, h := range f.latency {
		if h != nil {
			all.Merge(h)
		}
	}
	return all
}

func newCollector(g *Group) *collector {
	c := &collector{g: g, scan: make(chan chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
		lastTick: g.clock.now()}
	if g.queue != nil {
		c.tick.openLoop()
		c.phase.openLoop()
	}
	return c
}

func (c *collector) run() {
	defer close(c.done)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-c.g.pool.ready:
			c.readFull()
		case <-ticker.C:
			c.readFull()
			c.readPartial()
		case answer := <-c.scan:
			c.readFull()
			c.readPartial()
			close(answer)
		case <-c.quit:
			c.readFull()
			c.readPartial()
			return
		}
		c.g.pool.topUp(16)
	}
}

func (c *collector) readFull() {
	for {
		chunk := c.g.pool.taken()
		if chunk == nil {
			return
		}
		c.read(chunk)
		c.g.pool.recycle(chunk)
	}
}

func (c *collector) readPartial() {
	for _, b := range c.g.allBooks() {
		c.readCurrent(&b.rec)
	}
}

// readCurrent reads the chunk that a recorder is filling, after those that it has
// filled before: one may have been handed over since they were read last.
func (c *collector) readCurrent(r *recorder) {
	for {
		chunk := r.current.Load()
		if chunk == nil {
			return
		}
		uses := chunk.uses
		c.readFull()
		if chunk.uses == uses { // else it was full itself, and somebody has it again
			c.read(chunk)
			return
		}
	}
}

// read takes the records that have been published since the last time.
func (c *collector) read(chunk *chunk) {
	n := chunk.length.Load()
	if n == chunk.read {
		return
	}
	records := chunk.records[chunk.read:n]
	chunk.read = n
	c.mu.Lock()
	executions := 0
	for i := range records {
		if records[i].Position == 0 {
			c.fold(&records[i])
			executions++
		}
	}
	c.mu.Unlock()
	if c.sinkErr != nil {
		return
	}
	if err := c.g.cfg.Sink.Write(records); err != nil {
		c.mu.Lock()
		c.sinkErr = err
		c.mu.Unlock()
		c.g.fail(err)
		return
	}
	c.mu.Lock()
	c.recorded += int64(executions)
	c.statements += int64(len(records) - executions)
	c.mu.Unlock()
}

func (c *collector) fold(r *engine.Execution) {
	c.tick.add(r)
	count := r.Warmup == c.warm
	if count {
		c.phase.add(r)
	}
	if r.Success {
		return
	}
	if count {
		if c.phase.classes == nil {
			c.phase.classes = make(map[engine.ErrorClass]int64)
		}
		c.phase.classes[c.g.errors.get(r.ErrorID).Class]++
	}
	for i, id := range c.recent {
		if id == r.ErrorID {
			c.recent = append(c.recent[:i], c.recent[i+1:]...)
			break
		}
	}
	if len(c.recent) == 5 {
		c.recent = append(c.recent[:0], c.recent[1:]...)
	}
	c.recent = append(c.recent, r.ErrorID)
}

// enter begins the figures of a phase.
func (c *collector) enter(p engine.Phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	warm := p == engine.PhaseWarmup
	if p != engine.PhaseMeasurement && p != engine.PhaseWarmup {
		return // later phases keep the measurement's figures
	}
	c.warm = warm
	c.phase.reset()
}

// freshness is how long Collect waits for the collector to catch up. A Sink
// that blocks longer makes the snapshot older, not later.
const freshness = 200 * time.Millisecond

func (c *collector) catchUp() {
	answer := make(chan struct{})
	timer := time.NewTimer(freshness)
	defer timer.Stop()
	select {
	case c.scan <- answer:
	case <-c.done:
		return
	case <-timer.C:
		return
	}
	select {
	case <-answer:
	case <-timer.C:
	}
}

func (c *collector) snapshot(s *engine.WorkerSnapshot, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.TickSeconds = float64(now-c.lastTick) / 1e9
	c.lastTick = now
	count, failed := c.phase.total()
	s.Started, s.Failed, s.Succeeded, s.Scheduled, s.Dropped = count, failed, count-failed, count, 0
	s.ByKind, s.Retries = c.phase.byKind(), c.phase.retries
	s.ByClass = make(map[engine.ErrorClass]int64, len(c.phase.classes))
	for class, n := range c.phase.classes {
		s.ByClass[class] = n
	}
	s.TickStarted, s.TickErrors = c.tick.total()
	s.TickByKind = c.tick.byKind()
	s.TickLatency = c.tick.whole().Data()
	s.PhaseLatency = c.phase.whole().Data()
	s.KindLatency = make(map[engine.Kind]*engine.HistogramData)
	for k, h := range c.phase.latency {
		if h != nil && h.Count() > 0 {
			s.KindLatency[engine.Kind(k)] = h.Data()
		}
	}
	s.TickSplit = c.tick.split
	if q := c.g.queue; q != nil {
		s.TickService, s.PhaseService, s.TickLag = c.tick.service.Data(), c.phase.service.Data(), c.tick.lag.Data()
		if rate, ok := c.g.dispatcher.rate(now); ok && !c.g.stopped() {
			s.TargetQPS = &rate
		}
		q.countDropped(s, now, c.warm, &c.told)
	}
	s.LastErrors = nil
	for _, id := range c.recent {
		s.LastErrors = append(s.LastErrors, c.g.errors.get(id))
	}
	c.tick.reset()
}
