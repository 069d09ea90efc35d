package main

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// played is the load of a simulated node: it issues nothing, and reports and records what an
// open loop at its rate would have, once a second. All else of the node is as it is in
// production, so that what a server hears from it is too.
type played struct {
	cfg    load.Config
	chance *rand.Rand
	named  bool
	failed chan error
	done   chan struct{}

	mu      sync.Mutex
	rate    float64 // its own
	next    time.Time
	last    time.Time // of the tick before
	begun   bool
	stopped bool
	phase   engine.Phase
	seq     uint32
	account engine.Accounting

	inPhase, inTick counted
	connections     int
}

// counted are the figures of a phase, or of a tick.
type counted struct {
	count   int64
	kinds   map[engine.Kind]int64
	latency *histogram.Histogram
	byKind  map[engine.Kind]*histogram.Histogram
}

func newCounted() counted {
	return counted{kinds: map[engine.Kind]int64{}, latency: histogram.New(),
		byKind: map[engine.Kind]*histogram.Histogram{}}
}

func (c *counted) record(k engine.Kind, ns int64) {
	c.count++
	c.kinds[k]++
	c.latency.Record(ns)
	if c.byKind[k] == nil {
		c.byKind[k] = histogram.New()
	}
	c.byKind[k].Record(ns)
}

// openPlayed implements worker.OpenLoad.
func openPlayed(ctx context.Context, cfg load.Config, connections int, progress func(open, want int)) (worker.Load,
	error) {
	return open(ctx, cfg, connections, progress, false)
}

// openNamed is openPlayed of a database that gives each query a name: records that are hardly compressed.
func openNamed(ctx context.Context, cfg load.Config, connections int, progress func(open, want int)) (worker.Load,
	error) {
	return open(ctx, cfg, connections, progress, true)
}

func open(_ context.Context, cfg load.Config, connections int, progress func(open, want int), named bool) (worker.Load,
	error) {
	progress(connections, connections)
	l := &played{cfg: cfg, named: named, chance: rand.New(rand.NewPCG(rand.Uint64(), 1)),
		failed: make(chan error, 1), done: make(chan struct{}), connections: connections,
		rate: cfg.Workload.StartRate() / float64(max(cfg.Share.Of, 1)), inPhase: newCounted(), inTick: newCounted()}
	return l, nil
}

// Start implements worker.Load.
func (l *played) Start(phase engine.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Clock.Now()
	l.begun, l.phase, l.last, l.next = true, phase, now, now
}

// SetPhase implements worker.Load.
func (l *played) SetPhase(phase engine.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.issue(l.cfg.Clock.Now())
	l.phase, l.inPhase = phase, newCounted()
}

// SetTarget implements worker.Load.
func (l *played) SetTarget(n int, _ time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connections = n
}

// SetRate implements worker.Load.
func (l *played) SetRate(rate float64, _ time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate = rate / float64(max(l.cfg.Share.Of, 1))
}

// SetStep implements worker.Load.
func (l *played) SetStep(uint16) {}

// Connections implements worker.Load.
func (l *played) Connections() (open, target int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.connections, l.connections
}

// SetDeadline implements worker.Load. Without contact the node ends the load within a second.
func (l *played) SetDeadline(time.Time) {}

// mostAtOnce bounds how many records are made before they are written, and mostPlayed how long is played at
// a time: the run worker is to be heard of meanwhile, also on a machine that cannot keep up.
const (
	mostAtOnce = 16 << 10
	mostPlayed = 300 * time.Millisecond
)

// issue plays what was due until now, or the first of it. It needs mu.
func (l *played) issue(now time.Time) {
	if !l.begun || l.stopped || l.rate <= 0 {
		return
	}
	made := make([]engine.Execution, 0, min(mostAtOnce, 1+int(now.Sub(l.next).Seconds()*l.rate)))
	statements, begin := l.cfg.Plan.Statements, time.Now()
	for ; l.next.Before(now); l.next = l.next.Add(time.Duration(float64(time.Second) / l.rate)) {
		at := int(l.seq) % len(statements)
		took := int64(800_000 * math.Exp(0.6*l.chance.NormFloat64()))
		lag := int64(30_000 * l.chance.ExpFloat64())
		e := engine.Execution{DueAt: l.next.UnixNano(), StartedAt: l.next.UnixNano() + lag, Elapsed: lag + took,
			ScheduleLag: lag, Seq: l.seq, Rows: 1, Statement: uint16(at),
			Kind: statements[at].Kind, Success: true, Warmup: l.phase == engine.PhaseWarmup}
		if l.named {
			binary.NativeEndian.PutUint64(e.QueryID[:], l.chance.Uint64())
			binary.NativeEndian.PutUint64(e.QueryID[8:], l.chance.Uint64())
		}
		made = append(made, e)
		l.seq++
		l.inTick.record(e.Kind, e.Elapsed)
		l.inPhase.record(e.Kind, e.Elapsed)
		if len(made) == mostAtOnce {
			l.write(made)
			made = made[:0]
			if time.Since(begin) > mostPlayed {
				return
			}
		}
	}
	l.write(made)
}

// write records and counts what was played. It needs mu.
func (l *played) write(made []engine.Execution) {
	if len(made) == 0 {
		return
	}
	n := int64(len(made))
	l.account.Scheduled += n
	l.account.Started += n
	l.account.Succeeded += n
	if l.phase == engine.PhaseWarmup {
		l.account.Warmup += n
		l.account.WarmupScheduled += n
	}
	if err := l.cfg.Sink.Write(made); err != nil {
		select {
		case l.failed <- err:
		default:
		}
		return
	}
	l.account.Recorded += n
}

// Collect implements worker.Load.
func (l *played) Collect(s *engine.WorkerSnapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun {
		return
	}
	now := l.cfg.Clock.Now()
	l.issue(now)
	s.TickSeconds = now.Sub(l.last).Seconds()
	l.last = now
	tick, phase := l.inTick, l.inPhase
	l.inTick = newCounted()
	kinds := func(c counted) map[engine.Kind]engine.KindCounts {
		out := map[engine.Kind]engine.KindCounts{}
		for k, n := range c.kinds {
			out[k] = engine.KindCounts{Count: n}
		}
		return out
	}
	s.Started, s.Succeeded, s.Scheduled = phase.count, phase.count, phase.count
	s.TickStarted, s.TickScheduled = tick.count, tick.count
	s.ByKind, s.TickByKind = kinds(phase), kinds(tick)
	s.TickLatency, s.PhaseLatency = histogram.Pack(tick.latency.Data()), histogram.Pack(phase.latency.Data())
	s.TickService, s.PhaseService, s.TickLag = s.TickLatency, s.PhaseLatency, s.TickLatency
	s.KindLatency = map[engine.Kind]*engine.PackedHistogram{}
	for k, h := range phase.byKind {
		s.KindLatency[k] = histogram.Pack(h.Data())
	}
	rate := l.rate
	s.TargetQPS, s.ActiveConnections, s.TargetConnections = &rate, l.connections, l.connections
}

// Stop implements worker.Load.
func (l *played) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped {
		l.issue(l.cfg.Clock.Now())
		l.stopped = true
		close(l.done)
	}
}

// DropQueued implements worker.Load.
func (l *played) DropQueued() {}

// Drain implements worker.Load.
func (l *played) Drain(context.Context) error { return nil }

// Close implements worker.Load.
func (l *played) Close() error { return nil }

// Failed implements worker.Load.
func (l *played) Failed() <-chan error { return l.failed }

// Done implements worker.Load.
func (l *played) Done() <-chan struct{} { return l.done }

// Totals implements worker.Load.
func (l *played) Totals() engine.Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	return engine.Totals{Accounting: l.account}
}

// Error implements worker.Load.
func (l *played) Error(uint32) engine.ExecutionError { return engine.ExecutionError{} }

// noPlugins are the plugins of simulated nodes: every one is there, and is asked for nothing.
type noPlugins struct{ plugin.Host }

// Workload implements plugin.Host.
func (noPlugins) Workload(context.Context, string) (plugin.Workload, error) { return noWorkload{}, nil }

type noWorkload struct{ plugin.Workload }

// Open implements plugin.Workload.
func (noWorkload) Open(context.Context, plugin.OpenRequest, []engine.Statement) (plugin.Stream, error) {
	return noStream{}, nil
}

type noStream struct{}

// Fill implements plugin.Stream.
func (noStream) Fill(*plugin.Batch, int) error { return plugin.ErrEnded }

// Close implements plugin.Stream.
func (noStream) Close() error { return nil }

// noDriver opens databases that nothing is asked of.
type noDriver struct{ name string }

// Name implements target.Driver.
func (d noDriver) Name() string { return d.name }

// Open implements target.Driver.
func (noDriver) Open(target.Config) (target.Database, error) { return noDatabase{}, nil }

type noDatabase struct{ target.Database }

// Close implements target.Database.
func (noDatabase) Close() error { return nil }
