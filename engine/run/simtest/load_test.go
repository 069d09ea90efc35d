package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// played is the load of a run worker: it issues operations at its rate, each of which takes a
// while, records them, and follows the rules that engine/worker/load follows.
type played struct {
	p           *process
	cfg         load.Config
	run, worker string
	of          int
	connections int
	// closed is a closed loop; each is how much a connection holds in a second, 0 any; knee is from what on operations
	// take longer, 0 never.
	closed  bool
	each    float64
	knee    int
	chance  *rand.Rand // of the goroutine that issues, and disk of those that record
	disk    *rand.Rand
	failed  chan error
	done    chan struct{}
	changed chan struct{}

	mu       sync.Mutex
	rate     float64 // its own
	begun    bool
	starts   int
	phase    engine.Phase
	phases   []engine.Phase
	limited  bool // SetDeadline was called
	until    time.Time
	stopped  bool
	gone     bool // Close was called
	ops      []op
	seq      uint32
	account  engine.Accounting
	inPhase  counts
	inTick   counts
	lastTick time.Time
	free     time.Time // when a connection is, where they do not hold the rate
}

// op is an operation in flight.
type op struct {
	engine.Execution
	end time.Time
}

type counts struct {
	scheduled, started, failed, dropped int64
	latency                             *histogram.Histogram
}

var _ worker.Load = (*played)(nil)

func newLoad(p *process, cfg load.Config, connections int) *played {
	db := cfg.Database.(database)
	l := &played{p: p, cfg: cfg, run: db.run, worker: db.worker, of: max(cfg.Share.Of, 1), connections: connections,
		failed: make(chan error, 1), done: make(chan struct{}), changed: make(chan struct{}, 1),
		chance: p.node.sim.chanceOf(fmt.Sprintf("%s %s %d", db.worker, p.node.name, p.n))}
	l.disk = p.node.sim.chanceOf(fmt.Sprintf("disk %s %s %d", db.worker, p.node.name, p.n))
	l.rate = cfg.Workload.StartRate() / float64(l.of)
	l.closed = cfg.Workload.LoadMode != engine.LoadQPS
	l.each, l.knee = p.node.sim.each[db.run], p.node.sim.knee[db.run]
	l.inPhase, l.inTick = newCounts(), newCounts()
	return l
}

func newCounts() counts { return counts{latency: histogram.New()} }

func (l *played) Start(phase engine.Phase) {
	l.mu.Lock()
	l.begun, l.phase, l.lastTick = true, phase, time.Now()
	l.starts++
	l.phases = append(l.phases, phase)
	l.mu.Unlock()
	l.p.node.sim.model.offered(l.run, "a start of "+l.worker)
	go l.issue()
}

func (l *played) SetPhase(phase engine.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = phase
	l.phases = append(l.phases, phase)
	l.inPhase = newCounts()
}

// SetRate takes the whole run's rate.
func (l *played) SetRate(rate float64, _ time.Duration) {
	l.mu.Lock()
	l.rate = rate / float64(l.of)
	l.mu.Unlock()
	l.turn("a rate of " + l.worker)
}

func (l *played) SetTarget(n int, _ time.Duration) {
	l.mu.Lock()
	l.connections = n
	l.mu.Unlock()
	l.turn("the connections of " + l.worker)
}

// turn has the load go on by what it was told.
func (l *played) turn(why string) {
	select {
	case l.changed <- struct{}{}:
	default:
	}
	l.p.node.sim.model.offered(l.run, why)
}

func (l *played) SetStep(uint16) {}

func (l *played) Connections() (open, target int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connections, l.connections
}

func (l *played) SetDeadline(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limited, l.until = true, until
}

func (l *played) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := l.rate
	if l.closed {
		rate = pace * float64(l.connections)
	}
	if rate <= 0 {
		return time.Hour
	}
	return time.Duration(float64(time.Second) / rate)
}

// issue issues operations until the load is stopped, or the process ends.
func (l *played) issue() {
	due := time.Now().Add(time.Duration(l.chance.Int64N(int64(l.interval()))))
	for {
		timer := time.NewTimer(time.Until(due))
		select {
		case <-timer.C:
		case <-l.changed:
			timer.Stop()
			if next := time.Now().Add(l.interval()); next.Before(due) {
				due = next
			}
			continue
		case <-l.done:
			timer.Stop()
			return
		}
		if l.p.node.awake(context.Background()) != nil || l.p.dead.Load() {
			return
		}
		for now := time.Now(); !due.After(now); due = due.Add(l.interval()) {
			if !l.one(now, due) {
				return
			}
		}
	}
}

// one issues what is due; false when nothing more may be issued.
func (l *played) one(now, due time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	if l.limited && !now.Before(l.until) && l.p.node.sim.without != withoutDeadline {
		l.fail(load.ErrDeadlinePassed)
		return false
	}
	warm := l.phase == engine.PhaseWarmup
	l.account.Scheduled++
	l.inTick.scheduled++
	l.inPhase.scheduled++
	if warm {
		l.account.WarmupScheduled++
	}
	drop := l.chance.IntN(40) == 0 && !l.closed && !l.p.node.sim.runs[l.run].Scaling.Elastic()
	if l.each > 0 && !drop {
		if drop = now.Before(l.free); !drop {
			l.free = now.Add(time.Duration(float64(time.Second) / (l.each * float64(max(l.connections, 1)))))
		}
	}
	if drop {
		l.account.Dropped++
		l.account.DroppedByReason.MaxInFlight++
		l.inTick.dropped++
		l.inPhase.dropped++
		if warm {
			l.account.WarmupDropped++
		}
		return true
	}
	l.p.node.sim.model.issued(l, now)
	l.account.Started++
	took := time.Duration(l.chance.Int64N(int64(80*time.Millisecond))) + time.Microsecond
	if l.chance.IntN(100) == 0 {
		took *= 30
	}
	if l.knee > 0 {
		took = 40 * time.Millisecond // what a search finds is not by chance
		if b := l.p.node.sim.model.bears(l.run); l.closed && b.connections > l.knee || !l.closed && b.rate > float64(l.knee) {
			took *= 5
		}
	}
	o := op{end: now.Add(took), Execution: engine.Execution{DueAt: due.UnixNano(), StartedAt: now.UnixNano(),
		Elapsed: int64(now.Add(took).Sub(due)), ScheduleLag: int64(now.Sub(due)), Seq: l.seq, Rows: 1,
		Kind: engine.KindPointLookup, Success: l.chance.IntN(200) != 0, Warmup: warm}}
	if !o.Success {
		o.ErrorID, o.Rows = 1, 0
	}
	l.seq++
	l.ops = append(l.ops, o)
	return true
}

// fail needs mu.
func (l *played) fail(err error) {
	select {
	case l.failed <- err:
	default:
	}
	l.stop()
}

// stop needs mu.
func (l *played) stop() {
	if !l.stopped {
		l.stopped = true
		close(l.done)
	}
}

// complete records what has ended by now; cut: what has not is cancelled. It needs mu.
func (l *played) complete(now time.Time, cut bool) error {
	var ended []engine.Execution
	rest := l.ops[:0]
	for _, o := range l.ops {
		if o.end.After(now) && !cut {
			rest = append(rest, o)
			continue
		}
		if o.end.After(now) {
			o.Success, o.ErrorID, o.Rows, o.Elapsed = false, 1, 0, now.UnixNano()-o.DueAt
		}
		l.inTick.started++
		l.inPhase.started++
		if o.Success {
			l.account.Succeeded++
		} else {
			l.account.Failed++
			l.inTick.failed++
			l.inPhase.failed++
		}
		if o.Warmup {
			l.account.Warmup++
		}
		l.inTick.latency.Record(o.Elapsed)
		l.inPhase.latency.Record(o.Elapsed)
		ended = append(ended, o.Execution)
	}
	l.ops = rest
	if len(ended) == 0 || l.p.dead.Load() {
		return nil
	}
	if !l.p.node.sim.calm.Load() && l.disk.IntN(3000) == 0 {
		return &engine.Error{Code: engine.CodeUnavailable, Message: "The disk of the spool is full."}
	}
	if err := l.cfg.Sink.Write(ended); err != nil {
		return err
	}
	l.account.Recorded += int64(len(ended))
	for _, e := range ended {
		l.p.node.sim.model.reaches(l.run, e)
	}
	return nil
}

// spools waits as long as the disk of the node takes.
func (l *played) spools() {
	if most := l.p.node.slow.Load(); most > 0 {
		time.Sleep(time.Duration(l.disk.Int64N(most)))
	}
}

func (l *played) Collect(s *engine.WorkerSnapshot) {
	l.spools()
	_ = l.p.node.awake(context.Background())
	l.p.node.sim.model.offered(l.run, "a second of "+l.worker)
	l.p.node.sim.model.follows(l.run)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if err := l.complete(now, false); err != nil {
		l.fail(err)
	}
	s.TickSeconds = now.Sub(l.lastTick).Seconds()
	l.lastTick = now
	tick, phase := l.inTick, l.inPhase
	l.inTick = newCounts()
	kind := func(c counts) map[engine.Kind]engine.KindCounts {
		return map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: c.started}}
	}
	s.Started, s.Failed, s.Succeeded = phase.started, phase.failed, phase.started-phase.failed
	s.Scheduled, s.Dropped = phase.scheduled, phase.dropped
	s.TickScheduled, s.TickStarted, s.TickErrors, s.TickDropped = tick.scheduled, tick.started, tick.failed, tick.dropped
	s.ByKind, s.TickByKind = kind(phase), kind(tick)
	s.ByClass = map[engine.ErrorClass]int64{engine.ErrClassConnection: phase.failed}
	s.TickLatency, s.PhaseLatency = histogram.Pack(tick.latency.Data()), histogram.Pack(phase.latency.Data())
	if rate := l.rate; !l.closed {
		s.TargetQPS = &rate
	}
	s.InFlight = len(l.ops)
	s.ActiveConnections, s.TargetConnections = l.connections, l.connections
}

func (l *played) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop()
}

func (l *played) DropQueued() {} // nothing waits

// Drain waits for what is in flight, and cancels it when ctx ends.
func (l *played) Drain(ctx context.Context) error {
	for {
		l.spools()
		if l.p.dead.Load() {
			return nil
		}
		l.mu.Lock()
		now := time.Now()
		err := l.complete(now, ctx.Err() != nil)
		var next time.Time
		for _, o := range l.ops {
			if next.IsZero() || o.end.Before(next) {
				next = o.end
			}
		}
		l.mu.Unlock()
		if err != nil || next.IsZero() {
			return err
		}
		timer := time.NewTimer(next.Sub(now))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (l *played) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	return nil
}

func (l *played) Failed() <-chan error  { return l.failed }
func (l *played) Done() <-chan struct{} { return l.done }

func (l *played) Totals() engine.Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return engine.Totals{Accounting: l.account}
}

func (l *played) Error(uint32) engine.ExecutionError {
	return engine.ExecutionError{Class: engine.ErrClassConnection, Code: "08006", Message: "connection lost"}
}
