package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The limits of the verdict.
const (
	cpuLimitPercent = 90
	cpuHold         = 5 * time.Second
	gcPauseLimitMs  = 10
	stallLimitMs    = 10
	snapshotGap     = 3 * time.Second
	// A process that stood still for longer has not asked the target for anything meanwhile, and seen no answer.
	processStallLimit = time.Second
	// Shorter ones count from this length on, and are a cause where they are a tenth of the latest time.
	minShortStall    = 300 * time.Millisecond
	shortStallWindow = 20 * time.Second
	shortStallLimit  = shortStallWindow / 10
	// By how much the wall clock must be set to degrade a run.
	clockLimit = time.Second
	lagLimitMs = 10
	// A wait for a connection is a cause when it is longer than this and lasts so long.
	poolLimitMs = 10
	poolHold    = 5 * time.Second
	dropLimit   = 0.001 // of what was scheduled
	// Of the operations that were executed: from errorNote on failures are
	// remarked, beyond errorLimit the figures are of something else than the table.
	errorNote  = 0.01
	errorLimit = 0.5
	// adjoining intervals of one cause are joined when less than this lies between them.
	joinGap = 2500 * time.Millisecond
	// So many intervals are listed of each cause: one that comes often hides no other.
	maxPerCause = 25
	// So many are kept of CauseFailing, because not all of them are told.
	maxFailingKept = 100
)

// Validity judges whether a run's figures can be defended. It is a pure
// function of the ticks it observed: it knows no clock.
type Validity struct {
	causes  []*interval
	open    map[string]*interval // by cause and subject
	highCPU map[string]time.Time // since when a node's CPU has been over the limit
	notes   []engine.Note
	remarks []engine.Note // that the figures call for
	// unmeasured: the run has ended before its measurement.
	unmeasured bool
	// unlisted are the intervals that are not listed, by cause.
	unlisted     map[string]int
	last         time.Time // of the last observation, while the measurement went on
	lastObserved time.Time // of the last observation, or of Watch before the first
	// What was dropped and scheduled so far; drops below the limit are no cause.
	dropped, scheduled int64
	// toleratedDrops were dropped while an outage was borne.
	toleratedDrops int64
	outcome        Outcome
	stall          stall
	processStalls  processStalls
	failing        failing
	witnesses      witnesses
	contention     map[string]cpuContention // by node
	// changes is how often users changed the load, beside how many other runs were live at the same time at most.
	changes, concurrentRuns int
	waits                   map[string]pool      // by run worker
	freshness               map[string]freshness // by run worker
}

// freshness is when something was heard of a run worker that was new then: of a node behind a long way all that is
// heard is old, and nothing is missing.
type freshness struct{ newest, receivedAt time.Time }

// pool follows the seconds in which operations waited longer for a free connection
// than they then took.
type pool struct {
	since         time.Time // zero in a second in which they did not
	over, seconds int
	worst         float64
}

// Outcome is how the measurement stands, or how it ended.
type Outcome struct {
	From, To           time.Time
	Operations, Errors int64
	// CountedLive are the operations that were counted while the measurement went on: all that is known
	// of one whose record is lost.
	CountedLive int64
	// Warmup are the operations that are recorded and were begun in the warm-up.
	Warmup int64
	// Scheduled and Dropped count operations of an open loop, without its warm-up.
	Scheduled, Dropped int64
	// Ended: the measurement has ended, and nothing will follow.
	Ended bool
	// Searches go where operations fail and are dropped on purpose.
	Search bool
}

type interval struct {
	cause    string
	subject  string
	from, to time.Time
	worst    float64
	about    engine.Note
	// final: it was not over when the measurement ended.
	final bool
}

// found is the cause as it stands: with the worst of its interval, and its length.
func (i *interval) found() engine.ValidityCause {
	n, length := i.about, i.to.Sub(i.from).Seconds()
	n.Worst, n.Seconds = cmp.Or(n.Worst, i.worst), cmp.Or(n.Seconds, length)
	return engine.NewCause(i.cause, n, i.from, i.to)
}

// NewValidity returns a tracker without causes.
func NewValidity() *Validity {
	return &Validity{open: map[string]*interval{}, highCPU: map[string]time.Time{}, waits: map[string]pool{},
		freshness: map[string]freshness{}, unlisted: map[string]int{}, contention: map[string]cpuContention{},
		witnesses:     newWitnesses(),
		processStalls: processStalls{nodes: map[string]bool{}, short: map[string][]shortStall{}}}
}

// Clone returns an independent tracker that knows the same.
func (v *Validity) Clone() *Validity {
	c := NewValidity()
	c.last, c.dropped, c.scheduled, c.toleratedDrops = v.last, v.dropped, v.scheduled, v.toleratedDrops
	c.notes = slices.Clone(v.notes)
	maps.Copy(c.unlisted, v.unlisted)
	maps.Copy(c.contention, v.contention)
	c.remarks = slices.Clone(v.remarks)
	c.outcome, c.stall, c.processStalls = v.outcome, v.stall, v.processStalls.clone()
	c.failing, c.changes, c.concurrentRuns = v.failing, v.changes, v.concurrentRuns
	c.witnesses = v.witnesses.clone()
	c.stall.remarks = slices.Clone(v.stall.remarks)
	for _, i := range v.causes {
		same := *i
		c.causes = append(c.causes, &same)
		if v.open[i.cause+"\x00"+i.subject] == i {
			c.open[i.cause+"\x00"+i.subject] = &same
		}
	}
	maps.Copy(c.freshness, v.freshness)
	for id, since := range v.highCPU {
		c.highCPU[id] = since
	}
	maps.Copy(c.waits, v.waits)
	return c
}

// SetTimeError notes how wrong the times of a run worker's record may be that has ended elsewhere.
func (v *Validity) SetTimeError(workerID, nodeID string, ended bool, wrong time.Duration) {
	if ended && wrong > 0 {
		v.AddNote(engine.Note{Code: engine.NoteTimesUncertain, Worker: workerID, Node: nodeID,
			Ms: engine.Milliseconds(wrong)})
	}
}

// AddNote adds a remark that does not degrade; a repeated one is kept once, and one without words not at all.
func (v *Validity) AddNote(n engine.Note) {
	// Of a process that this one goes on for: what it has said of other runs is one with what this one sees.
	if n.Code == engine.NoteConcurrentRuns {
		v.SetConcurrentRuns(int(n.Count))
		return
	}
	n.Live = true
	text := n.String()
	if text == "" || slices.ContainsFunc(v.notes, func(o engine.Note) bool { return o.String() == text }) {
		return
	}
	v.notes = append(v.notes, n)
}

// SetConcurrentRuns tells how many other runs are live on the server now, and returns how many there were at most.
func (v *Validity) SetConcurrentRuns(others int) int {
	v.concurrentRuns = max(v.concurrentRuns, others)
	return v.concurrentRuns
}

// LoadChanged notes that a user changed the load: the first times in words, then how many more there were.
func (v *Validity) LoadChanged(n engine.Note) {
	if v.changes++; v.changes <= maxPerCause {
		v.AddNote(n)
	}
}

// AddFigureNote adds a note that follows from the figures, and is made anew with them.
func (v *Validity) AddFigureNote(n engine.Note) { v.remarks = append(v.remarks, n) }

// SetUnmeasured tells that the run has ended without a measurement: there is nothing to judge.
func (v *Validity) SetUnmeasured() { v.unmeasured = true }

// Add records a cause over an interval.
func (v *Validity) Add(cause string, about engine.Note, from, to time.Time) {
	v.mark(cause, about.String(), from, to, 0, about)
}

// mark extends the open interval of (cause, subject) or begins a new one.
func (v *Validity) mark(cause, subject string, from, to time.Time, worst float64, about engine.Note) {
	key := cause + "\x00" + subject
	if i := v.open[key]; i != nil && from.Sub(i.to) < joinGap {
		if to.After(i.to) {
			i.to = to
		}
		i.worst = max(i.worst, worst)
		return
	}
	i := &interval{cause: cause, subject: subject, from: from, to: to, worst: worst, about: about}
	v.open[key] = i
	listed := 0
	for _, one := range v.causes {
		if one.cause == cause {
			listed++
		}
	}
	if listed >= maxPerCause && (cause != engine.CauseFailing || listed >= maxFailingKept) {
		v.unlisted[cause]++
		return
	}
	v.causes = append(v.causes, i)
}

// StartObserving tells that this process looks after the run from now on: time in which it does not is missed.
func (v *Validity) StartObserving(from time.Time) { v.lastObserved = from }

// lastObservation is the later of the last observation and of the beginning of a measurement that goes on now or has
// begun since; zero where this process has not looked after the run before, or there is none.
func (v *Validity) lastObservation(phase engine.Phase) time.Time {
	began := v.outcome.From
	switch {
	case !v.last.IsZero():
		return v.last
	case v.lastObserved.IsZero() || began.IsZero() || phase != engine.PhaseMeasurement && !began.After(v.lastObserved):
		return time.Time{}
	case began.After(v.lastObserved):
		return began
	}
	return v.lastObserved
}

// Observe takes one tick of the run at the given time. Only the measurement is judged.
func (v *Validity) Observe(at time.Time, phase engine.Phase, s *Second) {
	last := v.lastObservation(phase)
	v.last, v.lastObserved = at, at
	// The measurement may have ended while nobody looked.
	if gap := at.Sub(last); !last.IsZero() && gap > snapshotGap {
		v.mark(engine.CauseSnapshotGap, "", last, at, gap.Seconds(), engine.Note{Code: engine.AboutProcessStalled})
	}
	v.witnesses.observe(at, phase == engine.PhaseMeasurement, s.Nodes)
	for i := range s.Snapshots {
		v.observeGap(&s.Snapshots[i])
	}
	for _, w := range s.Workers {
		if n, known := v.freshness[w.WorkerID]; !known || !n.newest.Equal(w.Newest) {
			v.freshness[w.WorkerID] = freshness{w.Newest, at}
		}
	}
	if phase != engine.PhaseMeasurement {
		clear(v.highCPU)
		v.last = time.Time{}
		v.stall.end()
		return
	}
	v.stall.observe(at, s.Snapshots)
	if s.Tolerated {
		v.failing = failing{}
	} else {
		v.observeFailures(at, s.Snapshots)
	}
	for _, n := range s.Nodes {
		v.node(at, n)
	}
	for _, w := range s.Workers {
		if w.Ended {
			continue
		}
		if w.StalledMs > stallLimitMs {
			v.mark(engine.CauseRecorderStall, w.WorkerID, at.Add(-time.Second), at, w.StalledMs,
				engine.Note{Code: engine.AboutRecorderStall, Worker: w.WorkerID})
		}
		v.load(at, w, s.Tolerated)
		v.pool(at, w, s.Tolerated)
		if w.Missing > 0 && !s.Tolerated {
			v.mark(engine.CauseConnectionsShort, w.WorkerID, at.Add(-time.Second), at, float64(w.Missing),
				engine.Note{Code: engine.AboutConnectionsShort, Worker: w.WorkerID, Total: int64(w.Target), Text: w.Refusal})
		}
		if heard := v.freshness[w.WorkerID].receivedAt; !w.Newest.IsZero() && at.Sub(heard) > snapshotGap {
			from := w.Newest
			if from.After(heard) {
				from = heard // it was told by the clock of a server that was ahead of this one
			}
			v.mark(engine.CauseSnapshotGap, w.WorkerID, from, at, 0,
				engine.Note{Code: engine.AboutSnapshotsMissing, Worker: w.WorkerID})
		}
	}
}

// ClockStepped tells that the wall clock was set between two looks at it. The run's own
// times do not follow, so that all of its figures stand; but a clock that is set
// forward may be that of a machine which was paused, and nothing in it can tell.
func (v *Validity) ClockStepped(from, to time.Time, phase engine.Phase, step time.Duration) {
	if phase != engine.PhaseMeasurement || step.Abs() < clockLimit {
		v.AddNote(engine.Note{Code: engine.NoteClockSet, At: engine.At(to), Seconds: step.Seconds()})
		return
	}
	v.Add(engine.CauseClockStep, engine.Note{Code: engine.AboutClockStep, Ms: engine.Milliseconds(step)}, from, to)
}

// Outcome tells how the measurement stands, before the Observe of that tick; the last call decides.
func (v *Validity) Outcome(o Outcome) { v.outcome = o }

// evaluate says what is wrong with an outcome, as causes and as remarks.
func (o Outcome) evaluate(dropsKnown bool) (causes []engine.ValidityCause, notes []engine.Note) {
	add := func(cause string, about engine.Note) {
		causes = append(causes, engine.NewCause(cause, about, o.From, o.To))
	}
	if o.Operations == 0 {
		switch {
		case !o.Ended || o.From.IsZero():
		case o.CountedLive > 0:
			add(engine.CauseIncompleteRecord, engine.Note{Code: engine.AboutNothingRecorded, Count: o.CountedLive})
		default:
			add(engine.CauseNothingMeasured, engine.Note{Code: engine.AboutNothingMeasured, Count: o.Warmup})
		}
	} else if share := float64(o.Errors) / float64(o.Operations); share > errorLimit &&
		(!o.Search || o.Ended && o.Errors >= o.Operations) {
		add(engine.CauseErrors, engine.Note{Code: engine.AboutErrors, Percent: share * 100})
	} else if share > errorNote {
		notes = append(notes, engine.Note{Code: engine.NoteErrors, Percent: share * 100})
	}
	if o.Ended && !o.Search && !dropsKnown && float64(o.Dropped) > dropLimit*float64(o.Scheduled) {
		add(engine.CauseDropped, engine.Note{Code: engine.AboutNeverBegun, Count: o.Dropped, Total: o.Scheduled})
	}
	return causes, notes
}

func (v *Validity) node(at time.Time, n NodeSample) {
	r := n.Resources
	if r.CPUPercent > cpuLimitPercent {
		since, high := v.highCPU[n.NodeID]
		if !high {
			since = at.Add(-time.Second)
			v.highCPU[n.NodeID] = since
		}
		if at.Sub(since) >= cpuHold {
			v.mark(engine.CauseGeneratorCPU, n.NodeID, since, at, r.CPUPercent,
				engine.Note{Code: engine.AboutGeneratorCPU, Node: n.NodeID})
		}
	} else {
		delete(v.highCPU, n.NodeID)
	}
	v.observeStall(at, n)
	v.observeContention(n)
	if r.GCPauseMaxMs > gcPauseLimitMs {
		v.mark(engine.CauseGCPause, n.NodeID, at.Add(-time.Second), at, r.GCPauseMaxMs,
			engine.Note{Code: engine.AboutGCPause, Node: n.NodeID})
	}
}

// load judges how a run worker kept its schedule.
func (v *Validity) load(at time.Time, w WorkerSample, tolerated bool) {
	if w.LagP99Ms != nil && *w.LagP99Ms > lagLimitMs {
		v.mark(engine.CauseScheduleLag, w.WorkerID, at.Add(-time.Second), at, *w.LagP99Ms,
			engine.Note{Code: engine.AboutScheduleLag, Worker: w.WorkerID})
	}
	v.scheduled += w.Scheduled
	if tolerated {
		v.toleratedDrops += w.Dropped
		return
	}
	v.dropped += w.Dropped
	if w.Dropped > 0 {
		v.mark(engine.CauseDropped, w.WorkerID, at.Add(-time.Second), at, float64(w.Dropped),
			engine.Note{Code: engine.AboutDropped, Worker: w.WorkerID})
	}
}

// pool judges whether there were connections enough for the operations that were due.
// A target that stands still for a moment makes them wait too: only what lasts counts.
func (v *Validity) pool(at time.Time, w WorkerSample, tolerated bool) {
	if w.PoolWaitMs == nil || w.ServiceMs == nil {
		return
	}
	p := v.waits[w.WorkerID]
	if tolerated {
		p.since = time.Time{}
		v.waits[w.WorkerID] = p
		return
	}
	p.seconds++
	if wait := *w.PoolWaitMs; wait <= poolLimitMs || wait <= *w.ServiceMs {
		p.since = time.Time{}
	} else {
		p.over++
		p.worst = max(p.worst, wait)
		if p.since.IsZero() {
			p.since = at.Add(-time.Second)
		}
		if at.Sub(p.since) >= poolHold {
			v.mark(engine.CausePoolWait, w.WorkerID, p.since, at, p.worst,
				engine.Note{Code: engine.AboutPoolWait, Worker: w.WorkerID})
		}
	}
	v.waits[w.WorkerID] = p
}

// shortOfConnections are the run workers that waited in most seconds of a measurement
// that was over before they had waited for long enough without a break.
func (v *Validity) shortOfConnections() (causes []engine.ValidityCause) {
	o := v.outcome
	if !o.Ended || o.From.IsZero() {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(v.waits)) {
		if p := v.waits[id]; 2*p.over > p.seconds && v.open[engine.CausePoolWait+"\x00"+id] == nil {
			causes = append(causes, engine.NewCause(engine.CausePoolWait, engine.Note{Code: engine.AboutPoolWait, Worker: id,
				Worst: p.worst, Seconds: float64(p.over)}, o.From, o.To))
		}
	}
	return causes
}

// LostWorker records that a run worker was lost: nothing is known of it after its last heartbeat.
func (v *Validity) LostWorker(workerID, why string, from, to time.Time) {
	v.Add(engine.CauseLostWorker, engine.Note{Code: engine.AboutLostWorker, Worker: workerID, Text: why}, from, to)
}

// Verdict returns the verdict so far. The caller owns it.
func (v *Validity) Verdict() engine.Validity {
	out := engine.Validity{Verdict: engine.VerdictValid, Causes: make([]engine.ValidityCause, 0, len(v.causes))}
	notes := slices.Clone(v.notes)
	live := func(n engine.Note) {
		n.Live = true
		notes = append(notes, n)
	}
	if more := v.changes - maxPerCause; more > 0 {
		live(engine.Note{Code: engine.NoteMoreLoadChanges, Count: int64(more)})
	}
	if v.concurrentRuns > 0 {
		live(engine.Note{Code: engine.NoteConcurrentRuns, Count: int64(v.concurrentRuns)})
	}
	for _, n := range v.contentionNotes() {
		live(n)
	}
	listed := func(i *interval) bool {
		return (i.cause != engine.CauseDropped || v.drops()) && (i.cause != engine.CauseFailing || v.listsFailing(i))
	}
	told := map[string]int{}
	for _, i := range v.causes {
		if !listed(i) {
			continue
		}
		if told[i.cause]++; told[i.cause] <= maxPerCause {
			out.Causes = append(out.Causes, new(v.withShare(*i)).found())
		}
	}
	drops := told[engine.CauseDropped] > 0
	out.Causes = append(out.Causes, v.shortOfConnections()...)
	outcome := v.outcome
	outcome.Dropped = max(0, outcome.Dropped-v.toleratedDrops)
	causes, ofOutcome := outcome.evaluate(drops)
	out.Causes = append(out.Causes, causes...)
	for _, n := range v.stall.notes() {
		n.Live = !v.stall.exact
		notes = append(notes, n)
	}
	notes = append(append(notes, v.remarks...), ofOutcome...)
	switch {
	case v.unmeasured:
		out.Verdict = engine.VerdictNone
	case len(out.Causes) > 0:
		out.Verdict = engine.VerdictDegraded
	}
	for _, cause := range slices.Sorted(maps.Keys(told)) {
		// Where none is told those that are not kept are not told either.
		if more := told[cause] + v.unlisted[cause] - maxPerCause; more > 0 {
			notes = append(notes, engine.Note{Code: engine.NoteMoreCauses, Cause: cause, Count: int64(more)})
		}
	}
	out.SetNotes(notes)
	return out
}

// drops reports whether more was dropped than a run may.
func (v *Validity) drops() bool { return float64(v.dropped) > dropLimit*float64(v.scheduled) }
