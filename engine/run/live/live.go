// Package live turns the snapshots of run workers into the live figures of
// a run: pure functions of what was reported, without clock, goroutine or I/O.
//
// Figures do not depend on the order in which snapshots arrive, nor on a
// snapshot arriving twice: snapshots of one run worker are told apart by their
// tick. Live figures cover WARMUP and MEASUREMENT, roll-ups MEASUREMENT only.
// A STALE run worker counts, a DEAD one does not (its executions are in the
// final figures all the same). While nothing is heard of any, a second is no point of the time series.
package live

import (
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// The values of latency_aggregation_method.
const (
	MethodMerged  = "merged_histogram"
	MethodSlowest = "slowest_worker_approximation"
)

// HeatmapSchema is the resolution of the histograms kept for every second.
const HeatmapSchema = 2

// Worker is what the orchestrator knows of a run worker beside its snapshots.
type Worker struct {
	WorkerID          string
	WorkerGroupID     int
	NodeID            string
	Status            engine.WorkerStatus
	Phase             engine.Phase
	Health            engine.Health
	LastHeartbeat     time.Time
	TargetConnections int
	// OpenConnections counts while the worker connects, before its first snapshot.
	OpenConnections int
	// Silent says that nothing has been heard from it for longer than reports may be late.
	Silent bool
	// LoadEndsBy is until when its load may go on without contact; it counts while it is silent.
	LoadEndsBy time.Time
	// LoadStart is nil until its load has begun.
	LoadStart *engine.LoadStart
}

// NodeSample is the peak telemetry of one node over a tick.
type NodeSample struct {
	NodeID    string
	Resources engine.Resources
}

// WorkerSample is what a tick says about the recording of one run worker.
type WorkerSample struct {
	WorkerID string
	// Newest is the time of the newest snapshot, zero when there is none yet.
	Newest    time.Time
	StalledMs float64
	Ended     bool
	// LagP99Ms is by how much an open loop's generator was late in the tick, nil
	// otherwise; Dropped and Scheduled count the tick's operations.
	LagP99Ms           *float64
	Dropped, Scheduled int64
	// PoolWaitMs and ServiceMs are the tick's means of the wait for a free
	// connection and of what followed it, nil without an execution.
	PoolWaitMs, ServiceMs *float64
	// Missing of Wanted connections have not been open for over a second, and Refusal says why.
	Missing, Target int
	Refusal         string
	// What the new snapshots of the measurement say, nil without an execution.
	P95Ms, P99Ms, ErrorPct *float64
}

// Second is the aggregate of one tick.
type Second struct {
	Payload engine.LiveState // only the parts that aggregation owns are set; see Fill
	// Rollup counts cover MEASUREMENT only.
	RollupOps, RollupErrors int64
	// PhaseCount is how many executions Payload.LatencyTotal is of.
	PhaseCount int64
	// Slowest are the highest P95 and P99 of any run worker in the tick, nil without executions.
	SlowestP95Ms, SlowestP99Ms *float64
	// Peak holds the highest telemetry of any node; Nodes each one's. Nodes
	// without a new snapshot in the tick are absent.
	Peak  engine.Resources
	Nodes []NodeSample
	// Workers tells what is new of each run worker, for the verdict.
	Workers []WorkerSample
	// Snapshots are those that arrived since the tick before, by worker and tick.
	Snapshots []engine.WorkerSnapshot
	// Tolerated: an outage is borne, and what the target does is not judged.
	Tolerated bool

	qpsByKind map[engine.Kind]float64
	// allSilent: run workers bear the load, and nothing is heard of any of them.
	allSilent bool
}

// Aggregator keeps the newest snapshots of a run's workers. It is not safe for concurrent use.
type Aggregator struct {
	// ownReads and ownWrites: statements of one's own all read, or all write.
	ownReads, ownWrites bool
	workers             map[string]*reports
	// The histograms keep their memory from tick to tick.
	tick  *adder
	phase *adder
	kinds [engine.NumKinds]*adder
	// Of an open loop: service times of the tick and the phase, and the schedule lag.
	service, phaseService, lag *adder

	one      *histogram.Histogram
	unpacker histogram.Unpacker

	// hasShown: a tick has shown snapshots. held is how many ticks before it had some and waited for other run workers.
	hasShown  bool
	heldTicks int
}

// reports are the snapshots of one run worker.
type reports struct {
	newest *engine.WorkerSnapshot
	// fresh arrived since the last tick, in order of their ticks; shown is what that tick showed.
	fresh   []*engine.WorkerSnapshot
	shown   []*engine.WorkerSnapshot
	emitted int64
	errors  errorSet
}

// New returns an empty aggregator.
func New() *Aggregator {
	a := &Aggregator{workers: map[string]*reports{}, tick: newAdder(), phase: newAdder(), service: newAdder(),
		phaseService: newAdder(), lag: newAdder(), one: histogram.New()}
	for k := range a.kinds {
		a.kinds[k] = newAdder()
	}
	return a
}

// CountOwn counts statements of kind GENERIC_SQL as reads or writes, where all of the plan's do the same. The figures
// after the end tell them apart one by one.
func (a *Aggregator) CountOwn(plan *engine.Plan) {
	if plan == nil {
		return
	}
	reads, writes := false, false
	for _, s := range plan.Statements {
		if s.Kind == engine.KindGenericSQL {
			reads, writes = reads || !s.Writes, writes || s.Writes
		}
	}
	a.ownReads, a.ownWrites = reads && !writes, writes && !reads
}

// Add takes a snapshot over; the caller must not change it afterwards. It
// reports false for one that is repeated, or too late for its second.
func (a *Aggregator) Add(s *engine.WorkerSnapshot) bool {
	r := a.workers[s.WorkerID]
	if r == nil {
		r = &reports{errors: errorSet{}}
		a.workers[s.WorkerID] = r
	}
	if s.Tick <= r.emitted {
		return false
	}
	at, found := slices.BinarySearchFunc(r.fresh, s.Tick,
		func(f *engine.WorkerSnapshot, tick int64) int { return int(f.Tick - tick) })
	if found {
		return false
	}
	r.fresh = slices.Insert(r.fresh, at, s)
	if r.newest == nil || s.Tick > r.newest.Tick {
		r.newest = s
	}
	return true
}

// Newest returns the newest snapshot of a run worker, or nil.
func (a *Aggregator) Newest(workerID string) *engine.WorkerSnapshot {
	if r := a.workers[workerID]; r != nil {
		return r.newest
	}
	return nil
}

// counted is the phase whose cumulative figures a payload of the given phase shows.
func counted(phase engine.Phase) engine.Phase {
	switch phase {
	case engine.PhasePreparing, engine.PhaseWarmup:
		return engine.PhaseWarmup
	default:
		return engine.PhaseMeasurement
	}
}

// Tick aggregates everything added so far, for a run in the given phase.
// Workers without a new snapshot show their last one again until they end or are
// dead; the row of one that is silent says since when. The first snapshots wait until each
// run worker that bears load has sent one, for two ticks at most: what some of them do is not what the run does.
func (a *Aggregator) Tick(phase engine.Phase, workers []Worker) *Second {
	workers = slices.Clone(workers)
	slices.SortFunc(workers, func(x, y Worker) int {
		if x.WorkerGroupID != y.WorkerGroupID {
			return x.WorkerGroupID - y.WorkerGroupID
		}
		return strings.Compare(x.WorkerID, y.WorkerID)
	})
	a.tick.reset()
	a.phase.reset()
	a.service.reset()
	a.phaseService.reset()
	a.lag.reset()
	for k := range a.kinds {
		a.kinds[k].reset()
	}
	f := fold{a: a, phase: counted(phase), out: &Second{}, errors: errorSet{}, nodes: map[string]*nodeFold{},
		hold: a.awaitsFirst(workers)}
	f.out.Payload.Workers = make([]engine.WorkerState, 0, len(workers))
	f.out.Workers = make([]WorkerSample, 0, len(workers))
	if n := a.waiting(); n > 0 && !f.hold {
		a.hasShown = true
		f.out.Snapshots = make([]engine.WorkerSnapshot, 0, n)
	}
	for i := range workers {
		f.worker(&workers[i])
	}
	f.finish()
	return f.out
}

// fold is the work of one tick.
type fold struct {
	a     *Aggregator
	phase engine.Phase
	out   *Second

	hold            bool // nothing is shown yet: the first snapshots wait for those of other run workers
	alive           int  // run workers that count live
	active, silent  int  // those of them that have not ended, and those of these of which nothing is heard
	missing         bool // one of them sent executions without a histogram
	started, failed int64
	succeeded       int64
	rate, errRate   float64
	kindRate        [engine.NumKinds]float64
	kindTotal       [engine.NumKinds]engine.KindCounts
	classes         map[engine.ErrorClass]int64
	dropped         int64
	retries         int64
	split           engine.LatencySplit
	errors          errorSet
	p50s            []float64
	nodes           map[string]*nodeFold
	nodeOrder       []string
}

type nodeFold struct {
	trend, peak engine.Resources
	fresh       bool
}

func (f *fold) worker(w *Worker) {
	row := engine.WorkerState{WorkerID: w.WorkerID, WorkerGroupID: w.WorkerGroupID, NodeID: w.NodeID, Status: w.Status,
		Phase: w.Phase, Health: w.Health, LastHeartbeat: engine.At(w.LastHeartbeat), LoadStart: w.LoadStart}
	row.Metrics.TargetConnections = w.TargetConnections
	row.Metrics.ActiveConnections = w.OpenConnections
	if w.LastHeartbeat.IsZero() {
		row.LastHeartbeat = engine.Time{}
	}
	if w.Silent && !w.Status.Ended() {
		row.SilentSince = row.LastHeartbeat
	}
	if !w.LoadEndsBy.IsZero() {
		row.LoadEndsBy = engine.At(w.LoadEndsBy)
	}
	dead := w.Health == engine.HealthDead || w.Status == engine.WorkerDead
	ended := w.Status.Ended()
	sample := WorkerSample{WorkerID: w.WorkerID, Ended: ended}
	r := f.a.workers[w.WorkerID]
	switch {
	case f.hold:
		r = &reports{errors: errorSet{}}
	case r == nil:
		r = &reports{errors: errorSet{}}
		f.a.workers[w.WorkerID] = r
	}
	show, had := r.fresh, len(f.out.Snapshots)
	var before []*engine.WorkerSnapshot
	if len(show) > 0 && coveredBy(show) < minSecond {
		before = r.shown
	}
	for _, s := range r.fresh {
		f.out.Snapshots = append(f.out.Snapshots, *s)
		sample.StalledMs += s.StalledMs
	}
	if len(show) > 0 {
		r.emitted = show[len(show)-1].Tick
		r.shown, r.fresh = show, nil
	} else if !ended {
		show, before = r.shown, nil
	}
	for _, s := range show {
		if s.Missing > sample.Missing && !ended && len(f.out.Snapshots) > had {
			sample.Missing, sample.Target, sample.Refusal = s.Missing, s.TargetConnections, s.Refusal
		}
	}
	if r.newest != nil {
		c := &f.out.Payload.Connections
		if !ended && !dead {
			c.Missing += r.newest.Missing
		}
		c.Lost += r.newest.Connections.Lost
		c.Refused += r.newest.Connections.Refused
		c.Reopened += r.newest.Connections.Reopened
		sample.Newest = r.newest.Timestamp.Time
		fresh := len(f.out.Snapshots) > had
		started, failed := f.metrics(w, r, show, before, ended || dead, &row)
		if fresh && started > 0 && r.newest.Phase == engine.PhaseMeasurement {
			pct := 100 * float64(failed) / float64(started)
			sample.P95Ms, sample.P99Ms, sample.ErrorPct = row.Metrics.P95LatencyMs, row.Metrics.P99LatencyMs, &pct
		}
		if !dead {
			f.load(r.newest, show, ended, &sample)
		}
		if !dead {
			f.resources(r.newest, show, sample)
		}
	}
	if !dead {
		f.alive++
		f.out.Payload.Connections.Active += row.Metrics.ActiveConnections
		if !ended {
			f.active++
			if w.Silent {
				f.silent++
			}
			f.out.Payload.Connections.Target += row.Metrics.TargetConnections
		}
	}
	f.out.Workers = append(f.out.Workers, sample)
	f.out.Payload.Workers = append(f.out.Payload.Workers, row)
}

// metrics folds the snapshots of one run worker into the run and into its row. It
// returns how many executions they show, and how many of these failed. Those before are in the rates too: the last
// snapshot may cover a moment, in which what was in flight ends, and that is no rate.
func (f *fold) metrics(w *Worker, r *reports, show, before []*engine.WorkerSnapshot, gone bool,
	row *engine.WorkerState) (started, errs int64) {
	dead := w.Health == engine.HealthDead || w.Status == engine.WorkerDead
	newest := r.newest
	r.errors.record(newest.LastErrors)
	f.errors.add(r.errors)
	m := &row.Metrics
	m.TotalQueries, m.ErrorCount, m.CPUPercent = newest.Started, new(newest.Failed), newest.Resources.CPUPercent
	m.ActiveConnections, m.TargetConnections = newest.ActiveConnections, newest.TargetConnections
	if gone {
		m.ActiveConnections = 0
	}
	var seconds float64
	var kinds [engine.NumKinds]int64
	one := f.a.one
	one.Reset()
	missing := false
	for _, s := range show {
		seconds += s.TickSeconds
		started += s.TickStarted
		errs += s.TickErrors
		addKinds(&kinds, s)
		latency := f.a.unpacker.Unpack(s.TickLatency)
		if !merge(one, latency) || (latency == nil && s.TickStarted > 0) {
			missing = true
		}
		if !dead {
			f.a.tick.add(latency)
		}
	}
	if one.Count() > 0 {
		m.P50LatencyMs, m.P95LatencyMs, m.P99LatencyMs = ms(one.Quantile(0.50)), ms(one.Quantile(0.95)),
			ms(one.Quantile(0.99))
	}
	ended, failed := started+tickStarted(before), errs
	for _, s := range before {
		seconds += s.TickSeconds
		failed += s.TickErrors
		addKinds(&kinds, s)
	}
	if dead {
		return started, errs
	}
	if seconds > 0 {
		rate := float64(ended) / seconds
		m.QPS = &rate
		f.rate += rate
		f.errRate += float64(failed) / seconds
		for k := range kinds {
			f.kindRate[k] += float64(kinds[k]) / seconds
		}
	}
	f.missing = f.missing || missing
	if m.P50LatencyMs != nil {
		f.p50s = append(f.p50s, *m.P50LatencyMs)
		f.out.SlowestP95Ms = larger(f.out.SlowestP95Ms, m.P95LatencyMs)
		f.out.SlowestP99Ms = larger(f.out.SlowestP99Ms, m.P99LatencyMs)
	}
	if newest.Phase == engine.PhaseMeasurement {
		f.out.RollupOps += newest.Started
		f.out.RollupErrors += newest.Failed
	}
	if newest.Phase != f.phase {
		return started, errs
	}
	f.started += newest.Started
	f.succeeded += newest.Succeeded
	f.failed += newest.Failed
	f.dropped += newest.Dropped
	f.retries += newest.Retries
	for k, c := range newest.ByKind {
		if k >= engine.NumKinds {
			continue
		}
		f.kindTotal[k].Count += c.Count
		f.kindTotal[k].Errors += c.Errors
	}
	for c, n := range newest.ByClass {
		if f.classes == nil {
			f.classes = map[engine.ErrorClass]int64{}
		}
		f.classes[c] += n
	}
	if !f.a.phase.add(f.a.unpacker.Unpack(newest.PhaseLatency)) || (newest.PhaseLatency == nil && newest.Started > 0) {
		f.missing = true
	}
	for k, h := range newest.KindLatency {
		if k < engine.NumKinds {
			f.a.kinds[k].add(f.a.unpacker.Unpack(h))
		}
	}
	return started, errs
}

// addKinds adds the operations of a snapshot to those of each kind.
func addKinds(kinds *[engine.NumKinds]int64, s *engine.WorkerSnapshot) {
	for k, c := range s.TickByKind {
		if k < engine.NumKinds {
			kinds[k] += c.Count
		}
	}
}

// tickStarted is how many executions snapshots tell of.
func tickStarted(snapshots []*engine.WorkerSnapshot) (n int64) {
	for _, s := range snapshots {
		n += s.TickStarted
	}
	return n
}

// coveredBy is how much time snapshots of one run worker cover.
func coveredBy(snapshots []*engine.WorkerSnapshot) (seconds float64) {
	for _, s := range snapshots {
		seconds += s.TickSeconds
	}
	return seconds
}

// load folds what snapshots say of the schedule and of where the time went.
func (f *fold) load(newest *engine.WorkerSnapshot, show []*engine.WorkerSnapshot, ended bool, sample *WorkerSample) {
	p := &f.out.Payload
	lag := f.a.one
	lag.Reset()
	var seconds float64
	var dropped int64
	var split engine.LatencySplit
	for _, s := range show {
		split.Add(s.TickSplit)
		f.a.service.add(f.a.unpacker.Unpack(s.TickService))
		late := f.a.unpacker.Unpack(s.TickLag)
		f.a.lag.add(late)
		merge(lag, late)
		seconds += s.TickSeconds
		dropped += s.TickDropped
		sample.Dropped += s.TickDropped
		sample.Scheduled += s.TickStarted + s.TickDropped
	}
	if lag.Count() > 0 {
		sample.LagP99Ms = ms(lag.Quantile(0.99))
	}
	f.split.Add(split)
	if m := split.Mean(); m != nil {
		service := m.RoundTrip + m.Decode
		sample.PoolWaitMs, sample.ServiceMs = &m.PoolWait, &service
	}
	if seconds > 0 {
		p.DroppedPerSec += float64(dropped) / seconds
	}
	if newest.Phase == f.phase {
		f.a.phaseService.add(f.a.unpacker.Unpack(newest.PhaseService))
	}
	if ended {
		return
	}
	p.InFlight += newest.InFlight
	p.Waiting += newest.Waiting
	if newest.TargetQPS != nil {
		sum := *newest.TargetQPS
		if p.TargetQPS != nil {
			sum += *p.TargetQPS
		}
		p.TargetQPS = &sum
	}
}

func larger(a, b *float64) *float64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}

// resources keeps one figure per node, however many run workers it hosts.
func (f *fold) resources(newest *engine.WorkerSnapshot, show []*engine.WorkerSnapshot, sample WorkerSample) {
	n := f.nodes[newest.NodeID]
	if n == nil {
		n = &nodeFold{}
		f.nodes[newest.NodeID] = n
		f.nodeOrder = append(f.nodeOrder, newest.NodeID)
	}
	n.trend = highest(n.trend, newest.Resources)
	if sample.Ended {
		return
	}
	for _, s := range show {
		n.fresh = true
		n.peak = highest(n.peak, s.Resources)
	}
}

func highest(a, b engine.Resources) engine.Resources {
	return engine.Resources{
		CPUPercent: max(a.CPUPercent, b.CPUPercent), MemoryPercent: max(a.MemoryPercent, b.MemoryPercent),
		MemoryBytes: max(a.MemoryBytes, b.MemoryBytes), HostCPUPercent: max(a.HostCPUPercent, b.HostCPUPercent),
		HostMemoryPercent: max(a.HostMemoryPercent, b.HostMemoryPercent), GCPauseMaxMs: max(a.GCPauseMaxMs, b.GCPauseMaxMs),
		MaxStallMs: max(a.MaxStallMs, b.MaxStallMs),
		Goroutines: max(a.Goroutines, b.Goroutines),
		Witness:    newestWitness(a.Witness, b.Witness),
	}
}

// newestWitness is the one that has seen more: counts of a process only grow.
func newestWitness(a, b *engine.Witness) *engine.Witness {
	if a == nil || b != nil && (b.RunNs > a.RunNs || b.Late.Count() > a.Late.Count()) {
		return b
	}
	return a
}

func (f *fold) finish() {
	p := &f.out.Payload
	p.Ops = engine.OpsRate{Total: f.started, CurrentPerSec: f.rate}
	p.OpsByKind = map[engine.Kind]engine.KindRate{}
	p.LatencyByKind = map[engine.Kind]engine.Latency{}
	p.CustomMetrics = engine.CustomMetrics{AppOpsBreakdown: map[string]int64{}, SFBench: map[string]any{}}
	f.out.qpsByKind = map[engine.Kind]float64{}
	for _, k := range engine.Kinds() {
		c := f.kindTotal[k]
		if c.Count == 0 && f.kindRate[k] == 0 {
			continue
		}
		p.OpsByKind[k] = engine.KindRate{Total: c.Count, Errors: c.Errors, PerSec: f.kindRate[k]}
		p.CustomMetrics.AppOpsBreakdown[k.String()] = c.Count
		f.out.qpsByKind[k] = f.kindRate[k]
		if total := f.a.kinds[k].total(); total.Count() > 0 {
			p.LatencyByKind[k] = latency(total)
		}
		switch {
		case k.Read() || k == engine.KindGenericSQL && f.a.ownReads:
			p.Operations.Reads += c.Count
			p.Operations.ReadsPerSec += f.kindRate[k]
		case k.Write() || k == engine.KindGenericSQL && f.a.ownWrites:
			p.Operations.Writes += c.Count
			p.Operations.WritesPerSec += f.kindRate[k]
		}
	}
	p.Errors = engine.ErrorStats{Count: f.failed, PerSec: f.errRate, ByClass: f.classes, Dropped: f.dropped,
		Retries: f.retries, Recent: f.errors.recent()}
	if ended := f.succeeded + f.failed; ended > 0 {
		p.Errors.Rate = new(float64(f.failed) / float64(ended))
	}
	if p.Errors.ByClass == nil {
		p.Errors.ByClass = map[engine.ErrorClass]int64{}
	}
	p.Service, p.ServiceTotal, p.ScheduleLag = latency(f.a.service.total()), latency(f.a.phaseService.total()),
		latency(f.a.lag.total())
	p.LatencySplit = f.split.Mean()
	tick := f.a.tick.total()
	phase := f.a.phase.total()
	p.Latency, p.LatencyTotal = latency(tick), latency(phase)
	f.out.PhaseCount = phase.Count()
	if tick.Count() > 0 {
		p.LatencyHistogram = tick.Downscale(HeatmapSchema)
	}
	f.out.allSilent = f.active > 0 && f.silent == f.active && len(f.out.Snapshots) == 0
	if f.alive > 1 {
		method := MethodMerged
		if f.missing {
			method = MethodSlowest
			p.Latency.P50, p.Latency.P95, p.Latency.P99 = mean(f.p50s), f.out.SlowestP95Ms, f.out.SlowestP99Ms
		}
		p.LatencyAggregationMethod = &method
	}
	f.telemetry()
}

// telemetry averages the nodes for the trend and keeps the peak for guardrails.
func (f *fold) telemetry() {
	slices.Sort(f.nodeOrder)
	var avg engine.Resources
	for _, id := range f.nodeOrder {
		n := f.nodes[id]
		avg.CPUPercent += n.trend.CPUPercent
		avg.MemoryPercent += n.trend.MemoryPercent
		avg.HostCPUPercent += n.trend.HostCPUPercent
		avg.HostMemoryPercent += n.trend.HostMemoryPercent
		avg.MemoryBytes += n.trend.MemoryBytes
		avg.Goroutines += n.trend.Goroutines
		avg.GCPauseMaxMs = max(avg.GCPauseMaxMs, n.trend.GCPauseMaxMs)
		avg.MaxStallMs = max(avg.MaxStallMs, n.trend.MaxStallMs)
		if n.fresh {
			f.out.Peak = highest(f.out.Peak, n.peak)
			f.out.Nodes = append(f.out.Nodes, NodeSample{NodeID: id, Resources: n.peak})
		}
	}
	if n := float64(len(f.nodeOrder)); n > 0 {
		avg.CPUPercent /= n
		avg.MemoryPercent /= n
		avg.HostCPUPercent /= n
		avg.HostMemoryPercent /= n
	}
	f.out.Payload.CustomMetrics.Resources = avg
}
