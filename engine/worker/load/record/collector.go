package record

import (
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// Sink takes the records. One background goroutine calls it, with records of
// one connection in order; the slice is valid during the call only. An error
// is fatal to the load, and Write is not called again.
type Sink interface {
	Write(recs []engine.Execution) error
}

// Options are what a Collector reads, and whom it tells.
type Options struct {
	Pool   *Pool
	Errors *Dictionary
	Sink   Sink
	// Recorders are those that write now.
	Recorders func() []*Recorder
	// Failed is told the Sink's error.
	Failed func(error)
	// OpenLoop says that operations may begin after they were due.
	OpenLoop bool
	// Now is the time, in ns on the time line of the records.
	Now int64
}

// Collector reads records behind the connections: figures for the snapshots, and the
// Sink for everything. It is one goroutine; the figures are guarded by mu.
type Collector struct {
	opts Options
	scan chan chan struct{} // read partly filled chunks too, then close the channel
	quit chan struct{}      // read everything and end
	done chan struct{}

	quitOnce sync.Once

	mu    sync.Mutex
	phase figures
	tick  figures
	warm  bool // the phase counts warm-up executions
	// recorded counts executions, statements those of transactions.
	recorded, statements int64
	recent               []uint32 // ids of the last errors, newest last
	errorStats           map[uint32]errorStat
	lastTick             int64
	sinkErr              error // the Sink is not called again after an error
}

// errorStat says how often an error was met, and when first and last, in ns on the time line of the records.
type errorStat struct{ count, first, last int64 }

// countError notes an error, of which the dictionary bounds how many there are.
func (c *Collector) countError(r *engine.Execution) {
	at := r.DueAt + r.Elapsed
	s, known := c.errorStats[r.ErrorID]
	if !known {
		s.first, s.last = at, at
	}
	// Connections are read one after another: times come in no order.
	s.count, s.first, s.last = s.count+1, min(s.first, at), max(s.last, at)
	if c.errorStats == nil {
		c.errorStats = make(map[uint32]errorStat)
	}
	c.errorStats[r.ErrorID] = s
	if n := len(c.recent); n > 0 && c.recent[n-1] == r.ErrorID {
		return
	}
	if i := slices.Index(c.recent, r.ErrorID); i >= 0 {
		c.recent = slices.Delete(c.recent, i, i+1)
	} else if len(c.recent) == maxShownErrors {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	c.recent = append(c.recent, r.ErrorID)
}

// maxShownErrors is how many errors a snapshot tells of.
const maxShownErrors = 5

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

// NewCollector begins to read.
func NewCollector(opts Options) *Collector {
	c := &Collector{opts: opts, scan: make(chan chan struct{}), quit: make(chan struct{}), done: make(chan struct{}),
		lastTick: opts.Now}
	if opts.OpenLoop {
		c.tick.openLoop()
		c.phase.openLoop()
	}
	go c.run()
	return c
}

func (c *Collector) run() {
	defer close(c.done)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-c.opts.Pool.ready:
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
		c.opts.Pool.topUp(16)
	}
}

// Finish reads what is left and ends the Collector. It returns the Sink's error; repeating it is harmless.
func (c *Collector) Finish() error {
	c.quitOnce.Do(func() { close(c.quit) })
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sinkErr
}

// Counted returns how many executions the Sink has accepted, and how many statements of transactions.
func (c *Collector) Counted() (executions, statements int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.recorded, c.statements
}

func (c *Collector) readFull() {
	for {
		chunk := c.opts.Pool.takeFull()
		if chunk == nil {
			return
		}
		c.read(chunk)
		c.opts.Pool.recycle(chunk)
	}
}

func (c *Collector) readPartial() {
	for _, r := range c.opts.Recorders() {
		c.readCurrent(r)
	}
}

// readCurrent reads the chunk that a recorder is filling, after those that it has
// filled before: one may have been handed over since they were read last.
func (c *Collector) readCurrent(r *Recorder) {
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
func (c *Collector) read(chunk *Chunk) {
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
	if err := c.opts.Sink.Write(records); err != nil {
		c.mu.Lock()
		c.sinkErr = err
		c.mu.Unlock()
		c.opts.Failed(err)
		return
	}
	c.mu.Lock()
	c.recorded += int64(executions)
	c.statements += int64(len(records) - executions)
	c.mu.Unlock()
}

func (c *Collector) fold(r *engine.Execution) {
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
		c.phase.classes[c.opts.Errors.Get(r.ErrorID).Class]++
	}
	c.countError(r)
}

// Enter begins the figures of a phase.
func (c *Collector) Enter(p engine.Phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	warm := p == engine.PhaseWarmup
	if p != engine.PhaseMeasurement && p != engine.PhaseWarmup {
		return // later phases keep the measurement's figures
	}
	c.warm = warm
	c.phase.reset()
}

// catchUpTimeout is how long Collect waits for the Collector to catch up. A Sink
// that blocks longer makes the snapshot older, not later.
const catchUpTimeout = 200 * time.Millisecond

// CatchUp reads what has been recorded so far, and reports whether it is read.
func (c *Collector) CatchUp() bool {
	answer := make(chan struct{})
	timer := time.NewTimer(catchUpTimeout)
	defer timer.Stop()
	select {
	case c.scan <- answer:
	case <-c.done:
		return true
	case <-timer.C:
		return false
	}
	select {
	case <-answer:
		return true
	case <-timer.C:
		return false
	}
}

// Snapshot fills what the records say; it returns whether the phase is a warm-up.
func (c *Collector) Snapshot(s *engine.WorkerSnapshot, now int64) (warm bool) {
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
	s.TickLatency = histogram.Pack(c.tick.whole().Data())
	s.PhaseLatency = histogram.Pack(c.phase.whole().Data())
	s.KindLatency = make(map[engine.Kind]*engine.PackedHistogram)
	for k, h := range c.phase.latency {
		if h != nil && h.Count() > 0 {
			s.KindLatency[engine.Kind(k)] = histogram.Pack(h.Data())
		}
	}
	s.TickSplit = c.tick.split
	if c.opts.OpenLoop {
		s.TickService, s.PhaseService = histogram.Pack(c.tick.service.Data()), histogram.Pack(c.phase.service.Data())
		s.TickLag = histogram.Pack(c.tick.lag.Data())
	}
	s.LastErrors = nil
	for _, id := range c.recent {
		e := c.errorStats[id]
		s.LastErrors = append(s.LastErrors, engine.ObservedError{ExecutionError: c.opts.Errors.Get(id), Count: e.count,
			FirstAt: engine.At(time.Unix(0, e.first)), LastAt: engine.At(time.Unix(0, e.last))})
	}
	c.tick.reset()
	return c.warm
}
