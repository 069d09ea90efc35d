// Package calibrate measures the load generator itself: what an operation costs
// it, how exactly it keeps a schedule, and how far its percentiles are from the
// truth. It drives the engine's own load path, recording included, against a
// target that takes a known time (engine/target/nullpg), which must be another
// process, so that its work is not taken for the generator's.
package calibrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// Target is a null target in another process.
type Target struct {
	DSN secret.Secret
	// Stats returns the target's own view of its latencies since it was asked
	// last; nil where that is not needed.
	Stats func(ctx context.Context) (*engine.HistogramData, error)
}

// Options say what to measure with. Every field is needed but Progress and Warmup.
type Options struct {
	Driver target.Driver
	// Start starts a null target that takes latency, uniformly between latency −
	// spread and latency + spread; stop ends it.
	Start       func(ctx context.Context, latency, spread time.Duration) (t Target, stop func(), err error)
	Connections int
	// Rate of the schedule's part, in operations per second.
	Rate float64
	// Seconds of each of the three parts, after Warmup (one second when it is zero).
	Seconds float64
	Warmup  time.Duration
	// EachEngine measures the cost with each I/O engine too, for Seconds each.
	EachEngine bool
	// CPU returns the CPU time that this process has taken.
	CPU func() (time.Duration, error)
	// SpoolDir is for the recorded parts; they are removed.
	SpoolDir string
	Log      zerolog.Logger
	// Progress is told what begins.
	Progress func(text string)
}

// The latencies of the part that compares percentiles.
const (
	middle = 10 * time.Millisecond
	spread = 8 * time.Millisecond
)

// Run measures for about three times Seconds, and with EachEngine six times.
func Run(ctx context.Context, o Options) (engine.Calibration, error) {
	c := engine.Calibration{At: engine.At(time.Now()), CPUs: host.Processors(), Connections: o.Connections,
		ScheduleRate: o.Rate}
	if o.Warmup == 0 {
		o.Warmup = time.Second
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	type part struct {
		what string
		run  func(context.Context, Options, *engine.Calibration) error
	}
	parts := []part{
		{"the cost of an operation, on a target that answers at once", cost},
		{fmt.Sprintf("the schedule, at %.0f operations per second", o.Rate), schedule},
		{"percentiles, on a target whose latencies are known", percentiles},
	}
	if o.EachEngine {
		parts = append(parts, part{"the cost of an operation with each I/O engine", eachEngine})
	}
	for _, part := range parts {
		o.Progress("Measuring " + part.what + ".")
		if err := part.run(ctx, o, &c); err != nil {
			return c, fmt.Errorf("measuring %s: %w", part.what, err)
		}
	}
	return c, nil
}

// cost runs a closed loop against a target that answers at once.
func cost(ctx context.Context, o Options, c *engine.Calibration) error {
	m, err := measure(ctx, o, 0, 0,
		engine.Workload{LoadMode: engine.LoadConcurrency, ConcurrentConnections: o.Connections}, nil)
	if err != nil {
		return err
	}
	c.IOEngine = m.ioEngine
	c.CostNs = float64(m.cpu.Nanoseconds()) / float64(m.operations)
	c.MaxQPS = float64(m.operations) / m.took.Seconds()
	return nil
}

// eachEngine is cost with one I/O engine after the other.
func eachEngine(ctx context.Context, o Options, c *engine.Calibration) error {
	for _, io := range []engine.IOEngine{engine.IOUring, engine.IOEvents, engine.IOGoroutines} {
		m, err := measure(ctx, o, 0, 0, engine.Workload{LoadMode: engine.LoadConcurrency,
			ConcurrentConnections: o.Connections, IOEngine: io}, nil)
		if err != nil {
			return err
		}
		e := engine.IOCost{IOEngine: io}
		if m.ioEngine != string(io) {
			e.Refused = m.ioReason
		} else {
			e.CostNs = float64(m.cpu.Nanoseconds()) / float64(m.operations)
			e.MaxQPS = float64(m.operations) / m.took.Seconds()
		}
		c.Engines = append(c.Engines, e)
	}
	return nil
}

// schedule runs an open loop against a target that answers at once.
func schedule(ctx context.Context, o Options, c *engine.Calibration) error {
	rate := o.Rate
	var lags []int64
	m, err := measure(ctx, o, 0, 0,
		engine.Workload{LoadMode: engine.LoadQPS, TargetQPS: &rate, Arrival: engine.ArrivalConstant,
			ConcurrentConnections: o.Connections},
		func(r *engine.Execution) { lags = append(lags, r.ScheduleLag) })
	if err != nil {
		return err
	}
	c.RateErrorPct = (float64(m.operations)/m.took.Seconds()/rate - 1) * 100
	slices.Sort(lags)
	c.ScheduleLagP50Ms, c.ScheduleLagP99Ms = quantile(lags, 0.50), quantile(lags, 0.99)
	c.ScheduleLagMaxMs = quantile(lags, 1)
	return nil
}

// percentiles compares what was measured with what the target knows of itself.
func percentiles(ctx context.Context, o Options, c *engine.Calibration) error {
	a, err := Compare(ctx, o, middle, spread,
		engine.Workload{LoadMode: engine.LoadConcurrency, ConcurrentConnections: o.Connections})
	if err != nil {
		return err
	}
	c.Percentiles = a.Percentiles
	c.MachineBusyPct, c.ThreadsWaitedPct = a.Machine.HostCPUPercent, 100*a.Witness.WaitShare()
	return nil
}

// Accuracy is how far service times that were measured are from the target's own, and what the generator noticed.
type Accuracy struct {
	Percentiles []engine.PercentileError
	Operations  int64
	Witness     engine.Witness
	Machine     engine.Resources
	// DecodeMs is the mean time between the first byte of an answer and its record.
	DecodeMs float64
}

// Compare measures a workload on a target that takes a known time.
func Compare(ctx context.Context, o Options, latency, spread time.Duration, w engine.Workload) (a Accuracy, err error) {
	if o.Warmup == 0 {
		o.Warmup = time.Second
	}
	var elapsed []int64
	var split engine.LatencySplit
	m, err := measure(ctx, o, latency, spread, w, func(r *engine.Execution) {
		elapsed = append(elapsed, r.Elapsed-r.ScheduleLag-r.PoolWait)
		split.Add(engine.LatencySplit{Count: 1, Decode: r.Decode})
	})
	if err != nil {
		return a, err
	}
	truth, err := histogram.FromData(m.stats)
	if err != nil {
		return a, fmt.Errorf("reading the target's statistics: %w", err)
	}
	slices.Sort(elapsed)
	for _, q := range []float64{0.50, 0.95, 0.99} {
		p := engine.PercentileError{Percentile: math.Round(q * 100), TargetMs: truth.Quantile(q) / 1e6,
			MeasuredMs: quantile(elapsed, q)}
		p.ErrorMs = p.MeasuredMs - p.TargetMs
		a.Percentiles = append(a.Percentiles, p)
	}
	a.Operations, a.Witness, a.Machine = m.operations, m.witness, m.machine
	if mean := split.Mean(); mean != nil {
		a.DecodeMs = mean.Decode
	}
	return a, nil
}

// quantile is in milliseconds, of sorted nanoseconds; 0 of none.
func quantile(sorted []int64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(q*float64(len(sorted)-1))]) / 1e6
}

// measured is what one part gave.
type measured struct {
	operations int64
	took, cpu  time.Duration
	// ioEngine drove the connections; ioReason says why it did.
	ioEngine, ioReason string
	stats              *engine.HistogramData
	// machine is what the machine and the process did meanwhile, witness what the process noticed of its lateness.
	machine engine.Resources
	witness engine.Witness
}

// measure runs one load group the way a run worker does. each sees every measured execution, one at a time.
func measure(ctx context.Context, o Options, latency, spread time.Duration, w engine.Workload,
	each func(*engine.Execution)) (m measured, err error) {
	t, stop, err := o.Start(ctx, latency, spread)
	if err != nil {
		return m, err
	}
	defer stop()
	db, err := o.Driver.Open(target.Config{DSN: t.DSN, ApplicationName: "loadstone calibrate"})
	if err != nil {
		return m, fmt.Errorf("opening the null target: %w", err)
	}
	defer func() { _ = db.Close() }()
	dir, err := os.MkdirTemp(o.SpoolDir, "calibrate-")
	if err != nil {
		return m, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	plan := &engine.Plan{Statements: []engine.Statement{{ID: "lookup", Kind: engine.KindPointLookup,
		SQL: "SELECT v FROM t WHERE id = $1", Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}}}}
	s := &sink{each: each}
	g, err := load.Open(ctx, load.Config{Plan: plan, Workload: w, Stream: &lookups{rand.New(rand.NewPCG(1, 2))},
		Database: db, Sink: s, Log: o.Log}, o.Connections, nil)
	if err != nil {
		return m, fmt.Errorf("connecting to the null target: %w", err)
	}
	if s.writer, err = record.NewWriter(record.WriterOptions{Dir: dir, RunID: "calibration", ResultID: "calibration",
		WorkerID: "worker-0", Statements: plan.Statements, Errors: g.Error, OpenLoop: w.OpenLoop()}); err != nil {
		_ = g.Close()
		return m, fmt.Errorf("opening the recorder: %w", err)
	}
	// The group first: it writes until it is closed.
	defer func() {
		_ = g.Close()
		_, _ = s.writer.Close()
	}()
	machine := host.New()
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { machine.Watch(watching, func() bool { return true }) })
	defer watch.Wait()
	defer unwatch()
	g.Start(engine.PhaseWarmup)
	if err := wait(ctx, g, o.Warmup); err != nil {
		return m, err
	}
	if t.Stats != nil {
		if _, err := t.Stats(ctx); err != nil {
			return m, err
		}
	}
	used, err := o.CPU()
	if err != nil {
		return m, fmt.Errorf("reading the CPU time: %w", err)
	}
	earlier := machine.Sample()
	g.SetPhase(engine.PhaseMeasurement)
	before, begin := g.Totals(), time.Now()
	if err := wait(ctx, g, time.Duration(o.Seconds*float64(time.Second))); err != nil {
		return m, err
	}
	after := g.Totals()
	m.took = time.Since(begin)
	m.machine = machine.Sample()
	m.witness = m.machine.Witness.Since(*earlier.Witness)
	if m.cpu, err = o.CPU(); err != nil {
		return m, fmt.Errorf("reading the CPU time: %w", err)
	}
	m.cpu -= used
	m.operations, m.ioEngine, m.ioReason = after.Succeeded-before.Succeeded, g.IOEngine(), g.IOReason()
	if t.Stats != nil {
		if m.stats, err = t.Stats(ctx); err != nil {
			return m, err
		}
	}
	draining, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := g.Drain(draining); err != nil {
		return m, fmt.Errorf("recording: %w", err)
	}
	if after.Failed > 0 || m.operations == 0 {
		return m, fmt.Errorf("%d operations failed and %d succeeded: %s", after.Failed, m.operations, g.Error(1).Message)
	}
	return m, nil
}

func wait(ctx context.Context, g *load.Group, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case err := <-g.Failed():
		return fmt.Errorf("the load ended: %w", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sink records everything, as a run does, and shows what was measured.
type sink struct {
	writer *record.Writer
	each   func(*engine.Execution)
}

// Write implements record.Sink.
func (s *sink) Write(recs []engine.Execution) error {
	if s.each != nil {
		for i := range recs {
			if !recs[i].Warmup {
				s.each(&recs[i])
			}
		}
	}
	return s.writer.Write(recs)
}

// lookups is a stream of point lookups, as a plugin would give it.
type lookups struct{ rand *rand.Rand }

// Fill implements plugin.Stream.
func (l *lookups) Fill(b *plugin.Batch, most int) error {
	for range most {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(len(b.Args)), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: l.rand.Int64N(1_000_000)})
	}
	return nil
}

// Close implements plugin.Stream.
func (l *lookups) Close() error { return nil }
