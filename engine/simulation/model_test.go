package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
)

// tolerated is what sums of rates may be wrong by.
const tolerated = 1e-6

// model knows what crosses the borders of processes, and holds the invariants against it.
type model struct {
	sim *simulation

	mu    sync.Mutex
	loads []*played
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
}

// offered holds the rates of all loads that may issue now against the target of the run (invariant
// 3). A load may issue once it has begun, until it has stopped or its licence has ended, whether or
// not its process is stopped just now.
func (m *model) offered(run, why string) {
	now, sum, of := time.Now(), 0.0, ""
	for _, l := range m.of(run) {
		until := l.p.licensed(run)
		l.mu.Lock()
		if l.begun && !l.stopped && !l.p.dead.Load() && now.Before(until) {
			sum += l.rate
			of += fmt.Sprintf(" %s@%s=%.3f", l.worker, l.p.node.name, l.rate)
		}
		l.mu.Unlock()
	}
	if most := m.sim.target(run); sum > most+tolerated {
		m.sim.w.violated(3, "%s: %.3f/s are offered of %.3f/s of %s:%s", why, sum, most, run, of)
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
		if (c.Cause == aggregate.CauseIncompleteRecord || c.Cause == aggregate.CauseLostWorker) && !c.To.Before(c.From.Time) {
			m.sim.w.note("%s is marked: %s, %s", run.RunID, c.Cause, c.Detail)
			m.sim.marked++
			return
		}
	}
	a := parent.Figures.Accounting
	if !a.Balanced || a.Scheduled != truth.Scheduled || a.Started != truth.Started || a.Dropped != truth.Dropped ||
		a.Succeeded != truth.Succeeded || a.Failed != truth.Failed || a.Recorded != truth.Started {
		m.sim.w.violated(4, "%s says %+v, was %+v, and marks nothing", run.RunID, a, truth)
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
	b, err := os.ReadFile(path) //nolint:gosec // a file of the test
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
