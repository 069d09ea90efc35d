package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// searcher measures the steps of a search for the limit, and says which have to be measured again. It reads no clock
// and sends nothing: what it says, the loop carries out.
type searcher struct {
	run *facts
	// meter is the step under way, and what it has measured; step is what run workers know of it.
	meter lifecycle.Meter
	step  protocol.Step
	// load is what the run workers share in it.
	load SharedLoad
	// pendingStep is a step that waits for run workers to join.
	pendingStep *lifecycle.BeginStep
	// fullLoadAt is when all of the step's load was given to somebody, zero before; later: others bore some of it as it
	// began. inVain counts how often in a row its level was not measured as a whole.
	fullLoadAt     time.Time
	reachedLate    bool
	failedAttempts int
}

func newSearcher(run *facts) searcher {
	s := searcher{run: run}
	s.meter.Begin(0, 0, nil)
	return s
}

// overConnections reports whether the search is for a number of connections.
func (s *searcher) overConnections() bool { return s.run.sc.FindMax.Unit != engine.FindMaxRate }

// begin begins a step, which run workers measure together, and returns the load that they are to share. pool is how
// many connections all have in a search for a rate.
func (s *searcher) begin(a lifecycle.BeginStep, workers []*Worker, pool int) SharedLoad {
	s.meter.Begin(a.Number, a.Level, WorkerIDs(workers))
	s.step = protocol.Step{Number: a.Number, Settle: a.Settle, Length: a.Length}
	s.load = SharedLoad{Connections: int(a.Level)}
	if !s.overConnections() {
		s.load = SharedLoad{Connections: pool, Rate: &a.Level}
	}
	if s.run.sc.Scaling.Elastic() {
		s.load.MaxPerWorker = max(s.run.sc.Scaling.PerWorkerCapacity, 1)
	}
	s.fullLoadAt = time.Time{}
	return s.load
}

// loadShared takes that the load of the step that begins was shared, owed: as far as others bear less.
func (s *searcher) loadShared(now time.Time, owed bool) {
	s.checkFullLoad(now)
	connections, rate := s.run.HeldByLost(now)
	s.reachedLate = owed || connections > 0 || rate > 0
}

// sharesToJoin is how many connections each run worker has that has to join for a step over connections; none where
// those that there are can bear it, or no more can join.
func (s *searcher) sharesToJoin(a lifecycle.BeginStep, elastic bool) (shares []int) {
	have := len(s.run.ActiveWorkers())
	need := s.run.sc.Scaling.Workers(int(a.Level))
	if !elastic || need <= have || !s.run.hasSlots(need-have) {
		return nil
	}
	return engine.Spread(int(a.Level), need)[have:]
}

// takePendingStep hands out the step that waits for run workers to join, nil where none does or the run ends.
func (s *searcher) takePendingStep() *lifecycle.BeginStep {
	if s.run.life.Stopping() {
		return nil
	}
	a := s.pendingStep
	s.pendingStep = nil
	return a
}

// add takes a snapshot into the step under way, and reports whether all have measured it to its end.
func (s *searcher) add(snapshot *engine.WorkerSnapshot) (complete bool) {
	if s.run.life.Search() == nil || snapshot.Step == 0 {
		return false
	}
	s.meter.Add(snapshot)
	return snapshot.StepOver && s.meter.Complete(s.workerLeft)
}

func (s *searcher) workerLeft(id string) bool { return s.run.Worker(id).State.Status.Ended() }

// maxFailedAttempts is how often in a row a level is measured again. It is longer than anybody may be silent.
const maxFailedAttempts = 12

// sentLoad is what of the step's load somebody was told to bear.
func (s *searcher) sentLoad() (sum float64) {
	for _, w := range s.run.ActiveWorkers() {
		if s.load.Rate == nil {
			sum += float64(w.Connections)
		} else if w.Rate != nil {
			sum += *w.Rate
		}
	}
	return sum
}

// checkFullLoad notes when all of the step's load is given.
func (s *searcher) checkFullLoad(now time.Time) {
	const rounding = 1e-6
	if s.fullLoadAt.IsZero() && !s.run.HasUnknownLoad() && s.sentLoad() >= s.meter.Level()*(1-rounding) {
		s.fullLoadAt = now
	}
}

// mustRepeat says why the step is measured again, because it was not borne at its level: a run worker was not heard
// to its end, or a part of its load, owed, was given to nobody until it was settled. Empty is a step to be judged; what
// nobody is going to have is missing in what was observed then.
func (s *searcher) mustRepeat(o *findmax.Observation, owed bool) (why string) {
	if s.run.life.Stopping() {
		return ""
	}
	absent, full := s.meter.Missing(), s.fullLoadAt
	late := full.IsZero() && (s.reachedLate || owed) ||
		!full.IsZero() && s.run.life.Search().Settled(s.meter.Number(), full)
	if (len(absent) > 0 || late) && s.failedAttempts < maxFailedAttempts {
		s.failedAttempts++
		if len(absent) > 0 {
			return "nothing was heard of " + strings.Join(absent, ", ") + " to its end"
		}
		return "a part of its load was borne too late"
	}
	s.failedAttempts = 0
	if s.load.Rate == nil {
		o.Missing += max(int(s.meter.Level()-s.sentLoad()), 0)
		for _, id := range absent {
			o.Missing += s.run.Worker(id).Connections
		}
	}
	return ""
}

// missedRate reports whether those who measured a step of a search over the rate have missed it for want of
// connections: then further run workers may join, and measure it again.
func (s *searcher) missedRate(o findmax.Observation, cpuPercent float64) (seen lifecycle.RateSample, missed bool) {
	if s.run.life.Search() == nil || !scaling.ScalesWithRate(s.run.sc) || s.run.life.Stopping() || o.Operations == 0 {
		return seen, false
	}
	seen = lifecycle.RateSample{Target: s.meter.Level(), Achieved: o.QPS, Saturated: true, CPUPercent: cpuPercent}
	return seen, seen.MissesRate()
}

// logLines tell the log of a judged step, the end of a search and the result of all.
func (s *searcher) logLines(step engine.FindMaxStep) (ofStep string, more []string) {
	find := s.run.life.Search().Series()
	ofStep = runlog.StepMessage(step, find.Repeat())
	if step.StopReason != "" {
		ofStep += ". " + step.StopReason
	}
	if ended := find.Ended(); find.Repeat() > 1 && len(ended) == step.Repetition {
		more = append(more, fmt.Sprintf("Search %d of %d: %s", step.Repetition, find.Repeat(), ended[len(ended)-1].Reason))
	}
	if r := find.Result(); r != nil {
		more = append(more, r.Reason)
	}
	return ofStep, more
}

// state is the search as the page shows it, nil without one.
func (s *searcher) state(now time.Time) *engine.FindMaxState {
	search := s.run.life.Search()
	if search == nil {
		return nil
	}
	return search.State(now, &s.meter, s.run.sc.Workload.ConcurrentConnections)
}
