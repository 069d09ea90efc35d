package simtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/store"
)

// promptly is within what a node hears of a stop that speaks with the owner of the run: it repeats
// how the run stands every 5 s.
const promptly = 12 * time.Second

// followed is within what who speaks with the owner of a run follows its stages.
const followed = 20 * time.Second

// tolerated is what sums of rates may be wrong by.
const tolerated = 1e-6

// model knows what crosses the borders of processes, and holds the invariants against it.
type model struct {
	sim *simulation

	// ticks are what the seconds of each run worker have counted, by its tick; of the loop.
	ticks map[string]map[int64]int64
	// rules are those of runs as they are stored; of the loop.
	rules map[string][]engine.RuleState

	mu    sync.Mutex
	loads []*played
	// stops are when it was decided that a run ends; heard are its snapshots.
	stops map[string]time.Time
	heard map[string][]*engine.WorkerSnapshot
	// bore is what the loads of each run may have borne together.
	bore map[string][]borne
	// lines are the times of runs.
	lines map[string]line
	// fires are runs with a rule that stops them, with the number of the execution that breaks it; reached is when that
	// was recorded first.
	fires   map[string]uint32
	reached map[string]time.Time
}

// decided takes note of the end of a run.
func (m *model) decided(t store.Transition) {
	for _, e := range t.Events {
		if e.Type == engine.EventStop && e.Data.Scope == engine.ScopeRun {
			m.mu.Lock()
			if m.stops[t.RunID].IsZero() {
				m.stops[t.RunID] = time.Now()
			}
			m.mu.Unlock()
		}
	}
}

// counted holds what the seconds of a run worker count against what it has done (invariant 5).
func (m *model) counted(t store.Tick) {
	for _, s := range t.Snapshots {
		key := t.RunID + " " + s.WorkerID
		if m.ticks[key] == nil {
			m.ticks[key] = map[int64]int64{}
		}
		m.ticks[key][s.Tick] = s.TickStarted
		sum, done := int64(0), int64(0)
		for _, n := range m.ticks[key] {
			sum += n
		}
		for _, l := range m.of(t.RunID) {
			if l.worker == s.WorkerID {
				l.mu.Lock()
				done += l.account.Succeeded + l.account.Failed
				l.mu.Unlock()
			}
		}
		if sum > done {
			m.sim.w.violated(5, "the seconds of %s count %d operations of %d", key, sum, done)
		}
	}
}

// aggregated holds the sum of all snapshots of a run against that of the same ones in another
// order, some of them twice (invariant 5).
func (m *model) aggregated(run string) {
	// A run worker that a new owner does not know is ended, and another one may have its name; each has its own results.
	of := map[string]string{}
	for _, s := range m.heard[run] {
		of[s.WorkerID] = s.ResultID
	}
	heard := slices.DeleteFunc(slices.Clone(m.heard[run]),
		func(s *engine.WorkerSnapshot) bool { return of[s.WorkerID] != s.ResultID })
	if len(heard) == 0 {
		return
	}
	var workers []live.Worker
	seen := map[string]bool{}
	in, mixed := live.New(), live.New()
	for _, s := range heard {
		if !seen[s.WorkerID] {
			seen[s.WorkerID] = true
			workers = append(workers, live.Worker{WorkerID: s.WorkerID, WorkerGroupID: s.WorkerGroupID,
				NodeID: s.NodeID, Status: engine.WorkerRunning, Phase: s.Phase})
		}
		one := *s
		in.Add(&one)
	}
	chance := m.sim.chanceOf("order of " + run)
	order := append(chance.Perm(len(heard)), chance.Perm(len(heard))[:len(heard)/2]...)
	for _, i := range order {
		one := *heard[i]
		mixed.Add(&one)
	}
	a, b := in.Tick(engine.PhaseMeasurement, workers), mixed.Tick(engine.PhaseMeasurement, workers)
	if a.RollupOps != b.RollupOps || !reflect.DeepEqual(a.Payload, b.Payload) ||
		!reflect.DeepEqual(a.Snapshots, b.Snapshots) {
		m.sim.w.violated(5, "%s: %d snapshots give %+v, and in another order %+v", run, len(heard), a.Payload, b.Payload)
	}
}

func (m *model) opened(l *played) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads = append(m.loads, l)
}

// gone takes note that a process has ended: its loads issue nothing any more.
func (m *model) gone(*process) { m.sim.w.note("a process is killed") }

// of are the loads of a run, those of processes that are gone among them.
func (m *model) of(run string) (found []*played) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.loads {
		if l.run == run {
			found = append(found, l)
		}
	}
	return found
}

// issued holds an operation against the licence of its process (invariant 3).
func (m *model) issued(l *played, now time.Time) {
	if until := l.p.licensed(l.run); !now.Before(until) {
		m.sim.w.violated(3, "%s of %s on %s issues an operation %v after its deadline", l.worker, l.run, l.p.node.name,
			now.Sub(until))
	}
	m.mu.Lock()
	stopped := m.stops[l.run]
	m.mu.Unlock()
	since, touched := l.p.together(l.run)
	if since.Before(stopped) {
		since = stopped
	}
	if !stopped.IsZero() && touched.Sub(since) > promptly && !l.strands(touched) {
		m.sim.w.violated(7, "%s of %s on %s issues an operation %v after the run was stopped, and %v after its owner spoke "+
			"with it", l.worker, l.run, l.p.node.name, now.Sub(stopped), now.Sub(touched))
	}
}

// events holds what each load was told, and what the store keeps, against invariant 7.
func (m *model) events(run string) {
	for _, l := range m.of(run) {
		l.mu.Lock()
		if l.starts > 1 {
			m.sim.w.violated(7, "%s was started %d times", l.worker, l.starts)
		}
		for i := 1; i < len(l.phases); i++ {
			if l.phases[i-1] != engine.PhaseWarmup || l.phases[i] != engine.PhaseMeasurement {
				m.sim.w.violated(7, "%s passed through %v", l.worker, l.phases)
			}
		}
		l.mu.Unlock()
	}
	events, err := m.sim.store.Events(context.Background(), run, 0)
	if err != nil {
		m.sim.w.violated(7, "the events of %s cannot be read: %v", run, err)
	}
	order := map[string]int{"START": 1, string(engine.EventSetPhase) + string(engine.PhaseMeasurement): 2}
	seen, last := map[string]int{}, 0
	for i, e := range events {
		if e.SequenceID != int64(i)+1 {
			m.sim.w.violated(7, "event %d of %s has the number %d", i+1, run, e.SequenceID)
		}
		key := string(e.Type)
		switch e.Type {
		case engine.EventSetPhase:
			key += string(e.Data.Phase)
		case engine.EventSetWorkerTarget:
			continue
		case engine.EventStop:
			if e.Data.Scope == engine.ScopeWorker {
				continue
			}
		}
		if seen[key]++; seen[key] > 1 && e.Type != engine.EventStop {
			m.sim.w.violated(7, "%s of %s is stored %d times", key, run, seen[key])
		}
		if at := order[key]; at != 0 {
			if at < last {
				m.sim.w.violated(7, "%s of %s is stored after what follows it", key, run)
			}
			last = at
		}
	}
}

// account holds what was issued against what the run says (invariant 4).
func (m *model) account(run engine.Run) {
	var truth engine.Accounting
	for _, l := range m.of(run.RunID) {
		l.mu.Lock()
		a, flying := l.account, int64(len(l.ops))
		l.mu.Unlock()
		if a.Scheduled != a.Started+a.Dropped || a.Started != a.Succeeded+a.Failed+flying {
			m.sim.w.violated(4, "%s has counted %+v with %d in flight", l.worker, a, flying)
		}
		truth.Add(a)
	}
	rows, err := m.sim.store.Results(context.Background(), run.RunID)
	if err != nil || len(rows) == 0 {
		m.sim.w.violated(4, "%s has no results: %v", run.RunID, err)
		return
	}
	parent := rows[0]
	if truth.Started == 0 {
		return
	}
	if parent.Figures == nil || parent.Validity == nil {
		m.sim.w.violated(4, "%s has issued %d operations and has no figures", run.RunID, truth.Started)
		return
	}
	for _, c := range parent.Validity.Causes {
		if (c.Cause == engine.CauseIncompleteRecord || c.Cause == engine.CauseLostWorker) && !c.To.Before(c.From.Time) {
			m.sim.w.note("%s is marked: %s, %s", run.RunID, c.Cause, c.Detail)
			m.sim.marked++
			return
		}
	}
	a := parent.Figures.Accounting
	if !a.Balanced || a.Scheduled != truth.Scheduled || a.Started != truth.Started || a.Dropped != truth.Dropped ||
		a.Succeeded != truth.Succeeded || a.Failed != truth.Failed || a.Recorded != truth.Started {
		m.sim.w.violated(4, "%s says %+v, was %+v, and marks nothing but %+v", run.RunID, a, truth, parent.Validity.Causes)
	}
}

// stored holds the parts that are stored against their sums, and their rows against the figures (invariant 6).
func (m *model) stored(run string) {
	parts, err := m.sim.store.Artifacts(context.Background(), run)
	if err != nil {
		m.sim.w.violated(6, "the parts of %s cannot be listed: %v", run, err)
	}
	seen := map[string]bool{}
	for _, a := range parts {
		if seen[a.SHA256] {
			m.sim.w.violated(6, "%s is stored twice", a.Name)
		}
		seen[a.SHA256] = true
		m.whole(a)
	}
}

// whole checks that a part is stored as its node made it.
func (m *model) whole(a engine.Artifact) {
	f, _, err := m.sim.results.Open(context.Background(), a.RunID, a.Name)
	if err != nil {
		m.sim.w.violated(6, "%s is said to be stored, and is not there: %v", a.Name, err)
		return
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil || hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		m.sim.w.violated(6, "%s is stored with another sum than its source has (%v)", a.Name, err)
	}
}

func sumOf(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
