package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/histogram"
	"github.com/loadstone-db/loadstone/engine/prepare"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/results"
)

// virtual is a server in virtual time: the loop, the judge and the keeper are the
// real ones, and so are the parts; the control store is in memory, the
// preparation is done, and the run workers do as the test says.
type virtual struct {
	t     *testing.T
	store *memoryStore
	svc   *Service
	link  control.NodeEnd
	dir   string

	mu      sync.Mutex
	workers map[string]*virtualWorker
	// served is what the target serves in a second by so many connections in all; nil: what is asked for.
	served func(connections int, rate float64) float64
}

// virtualWorker reports once a second, unless it is silent.
type virtualWorker struct {
	a           control.AssignRun
	status      engine.WorkerStatus
	phase       engine.Phase
	connections int
	rate        float64
	step        control.Step
	begun       time.Time // of the step
	over        bool
	silent      bool
	stubborn    bool // does not leave
	tick        int64
	// lostConnections is how many operations lost their connection so far.
	lostConnections int64
	started         int64
	rest            float64 // of an operation, for the next second
	writer          *artifact.Writer
}

// inVirtualTime runs a test with a server of one node.
func inVirtualTime(t *testing.T, test func(t *testing.T, v *virtual)) {
	synctest.Test(t, func(t *testing.T) {
		serverEnd, nodeEnd := control.Pipe()
		folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
		if err != nil {
			t.Fatal(err)
		}
		v := &virtual{t: t, store: newMemoryStore(), link: nodeEnd, dir: t.TempDir(), workers: map[string]*virtualWorker{}}
		v.svc = New(Options{Store: v.store, Results: folder, Nodes: []control.ServerEnd{serverEnd}, Log: zerolog.Nop(), Version: "test", Scratch: t.TempDir()})
		v.svc.plan = func(context.Context, prepare.Deps, engine.Scenario, func(engine.PrepareProgress)) (*prepare.Prepared, error) {
			return &prepare.Prepared{Plan: &engine.Plan{Driver: "postgres", KeySlots: 64, Statements: []engine.Statement{{ID: "point_lookup", Kind: engine.KindPointLookup}}},
				Server: target.ServerInfo{MaxConnections: 1000}}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var node sync.WaitGroup
		node.Go(func() { v.listen(ctx) })
		node.Go(func() { v.beat(ctx) })
		if err := v.svc.Open(ctx); err != nil {
			t.Fatal(err)
		}
		defer func() {
			closing, done := context.WithTimeout(context.Background(), 10*time.Minute)
			defer done()
			if err := v.svc.Close(closing); err != nil {
				t.Error(err)
			}
			cancel()
			node.Wait()
		}()
		test(t, v)
	})
}

func (v *virtual) say(m control.FromNode) { _ = v.link.Send(context.Background(), m) }

// listen does what the server says.
func (v *virtual) listen(ctx context.Context) {
	v.say(control.Hello{NodeID: "local", Session: "s"})
	for {
		m, err := v.link.Receive(ctx)
		if err != nil {
			return
		}
		v.mu.Lock()
		switch m := m.(type) {
		case control.AssignRun:
			w := &virtualWorker{a: m, connections: m.Connections, status: engine.WorkerReady, phase: engine.PhasePreparing}
			w.writer, err = artifact.NewWriter(artifact.WriterOptions{Dir: filepath.Join(v.dir, m.WorkerID), RunID: m.RunID, TestID: m.TestID, WorkerID: m.WorkerID, Statements: m.Plan.Statements})
			if err != nil {
				v.t.Error(err)
			}
			v.workers[m.WorkerID] = w
			v.say(w.report())
		case control.RunEvent:
			for _, id := range slices.Sorted(maps.Keys(v.workers)) {
				if w := v.workers[id]; m.Event.For(id, w.a.WorkerGroupID) {
					v.apply(w, m.Event)
				}
			}
		case control.RunState:
			for id, w := range v.workers {
				if t, ok := m.Targets[id]; ok && t.TargetQPS != nil {
					w.rate = *t.TargetQPS
				}
				if m.Started && w.status == engine.WorkerReady {
					w.status, w.phase = engine.WorkerRunning, m.Phase
					v.say(w.report())
				}
			}
		}
		v.mu.Unlock()
	}
}

func (v *virtual) apply(w *virtualWorker, e engine.Event) {
	if w.status.Ended() {
		return
	}
	switch e.Type {
	case engine.EventStart:
		w.status, w.phase = engine.WorkerRunning, e.Data.Phase
	case engine.EventSetPhase:
		w.phase = e.Data.Phase
	case engine.EventSetWorkerTarget:
		if n := e.Data.TargetConnections; n != nil {
			w.connections = *n
		}
		if q := e.Data.TargetQPS; q != nil {
			w.rate = *q
		}
		if e.Data.StepNumber > w.step.Number {
			w.step, w.begun, w.over = control.Step{Number: e.Data.StepNumber, Settle: seconds64(e.Data.SettleSeconds), Length: seconds64(e.Data.StepSeconds)}, time.Now(), false
		}
		return
	case engine.EventStop:
		if w.silent || w.stubborn {
			return
		}
		v.leave(w)
		return
	}
	v.say(w.report())
}

func seconds64(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// leave ends a worker in order: its part, then its end.
func (v *virtual) leave(w *virtualWorker) {
	w.status = engine.WorkerCompleted
	parts, err := w.writer.Close()
	if err != nil {
		v.t.Error(err)
	}
	for _, a := range parts {
		a.Kind = "executions"
		v.say(control.WorkReady{WorkID: a.RunID + a.Name, NodeID: "local", Artifact: a, ArtifactURL: "file://" + filepath.Join(v.dir, w.a.WorkerID, a.Name)})
	}
	r := w.report()
	r.Totals = &control.Totals{Scheduled: w.started, Started: w.started, Succeeded: w.started}
	v.say(r)
}

func (w *virtualWorker) report() control.WorkerState {
	return control.WorkerState{RunID: w.a.RunID, TestID: w.a.TestID, WorkerID: w.a.WorkerID, WorkerGroupID: w.a.WorkerGroupID, NodeID: "local",
		Status: w.status, Phase: w.phase, OpenConnections: w.connections, WantConnections: w.connections, At: time.Now()}
}

// beat reports each second of every worker that is not silent.
func (v *virtual) beat(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		v.mu.Lock()
		connections, rate := 0, 0.0
		for _, w := range v.workers {
			if w.status == engine.WorkerRunning {
				connections += w.connections
				rate += w.rate
			}
		}
		for _, id := range slices.Sorted(maps.Keys(v.workers)) {
			if w := v.workers[id]; !w.silent && !w.status.Ended() {
				if w.status == engine.WorkerRunning {
					v.second(w, connections, rate)
				}
				v.say(w.report())
			}
		}
		v.mu.Unlock()
	}
}

// second is a second of load: ten operations, or the part of the rate that the target serves.
func (v *virtual) second(w *virtualWorker, connections int, rate float64) {
	n, target := int64(10), (*float64)(nil)
	waiting := 0
	if rate > 0 {
		served := rate
		if v.served != nil {
			served = min(rate, v.served(connections, rate))
		}
		w.rest += served * float64(w.connections) / float64(connections)
		n = int64(w.rest)
		w.rest -= float64(n)
		own := w.rate
		target, waiting = &own, max(int(own)-int(n), 0)
	}
	w.tick++
	w.started += n
	latency := histogram.New()
	now := time.Now()
	recs := make([]engine.Execution, n)
	for i := range recs {
		at := now.UnixNano() - int64(time.Second) + int64(i)
		recs[i] = engine.Execution{DueAt: at, StartedAt: at, Elapsed: 1e6, Seq: uint32(w.started - n + int64(i)), Rows: 1, Kind: engine.KindPointLookup, Success: true, Warmup: w.phase == engine.PhaseWarmup}
		latency.Record(1e6)
	}
	if err := w.writer.Write(recs); err != nil {
		v.t.Error(err)
	}
	s := engine.WorkerSnapshot{RunID: w.a.RunID, TestID: w.a.TestID, WorkerID: w.a.WorkerID, WorkerGroupID: w.a.WorkerGroupID, NodeID: "local", Tick: w.tick,
		Timestamp: engine.At(now), Phase: w.phase, Status: w.status, TickSeconds: 1, Started: w.started, Succeeded: w.started, TickStarted: n,
		ByKind: map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: w.started}}, TickByKind: map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: n}},
		ByClass:     map[engine.ErrorClass]int64{engine.ErrClassConnection: w.lostConnections},
		TickLatency: latency.Data(), PhaseLatency: latency.Data(), TargetQPS: target, InFlight: waiting + w.connections*min(waiting, 1), Waiting: waiting, TickDropped: int64(waiting),
		ActiveConnections: w.connections, TargetConnections: w.connections}
	if since := now.Sub(w.begun); w.step.Number > 0 && !w.over && since > w.step.Settle+time.Second {
		s.Step, s.StepOver = w.step.Number, since >= w.step.Settle+w.step.Length
		w.over = s.StepOver
	}
	v.say(control.Snapshot{WorkerSnapshot: s})
}

// silence makes a worker be heard no more, or heard again.
func (v *virtual) silence(id string, yes bool) {
	v.mu.Lock()
	v.workers[id].silent = yes
	v.mu.Unlock()
}

// start begins a run and waits until it is measured.
func (v *virtual) start(sc engine.Scenario) engine.Run {
	v.t.Helper()
	shares, err := spread(sc)
	if err != nil {
		v.t.Fatal(err)
	}
	run := engine.Run{RunID: "run-1", TestID: "run-1", TestName: "virtual", Scenario: sc, Status: engine.StatusPrepared, Phase: engine.PhasePreparing,
		WorkersExpected: len(shares), WorkerTargets: firstTargets(sc, shares)}
	if err := v.store.CreateRun(v.t.Context(), run); err != nil {
		v.t.Fatal(err)
	}
	if run, err = v.svc.Start(v.t.Context(), run.RunID, "tester"); err != nil {
		v.t.Fatal(err)
	}
	v.wait(3 * time.Second)
	return run
}

// wait lets time pass; it ends between two beats.
func (v *virtual) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (v *virtual) live() *engine.Payload {
	v.t.Helper()
	p := v.svc.Live("run-1")
	if p == nil {
		v.t.Fatalf("the run is not live\n%s", v.store.text())
	}
	return p
}

// figures waits for the end of the run.
func (v *virtual) figures() *engine.Summary {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Hour)
	defer cancel()
	sum, err := v.svc.Wait(ctx, "run-1")
	if err != nil {
		v.t.Fatalf("%v\n%s", err, v.store.text())
	}
	return sum
}

// memoryStore is as much of a control store as one run needs.
type memoryStore struct {
	ControlStore // what is not served here is not needed

	mu      sync.Mutex
	gone    bool
	run     engine.Run
	next    int64
	events  []engine.Event
	logs    []engine.LogEntry
	points  []engine.Point
	results map[string]engine.TestResult
	search  []store.FindMaxProgress
	states  []engine.FindMaxState // of the search, second by second
	parts   []engine.Artifact
	beats   map[string]store.WorkerRow
}

func newMemoryStore() *memoryStore {
	return &memoryStore{next: 1, results: map[string]engine.TestResult{}, beats: map[string]store.WorkerRow{}}
}

func (m *memoryStore) CreateRun(_ context.Context, run engine.Run) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run = run
	return nil
}

func (m *memoryStore) Run(_ context.Context, id string) (engine.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id != m.run.RunID {
		return engine.Run{}, store.ErrNotFound
	}
	return m.run, nil
}

func (m *memoryStore) LiveRuns(context.Context) ([]engine.Run, error)       { return nil, nil }
func (m *memoryStore) AwaitingAggregates(context.Context) ([]string, error) { return nil, nil }
func (m *memoryStore) Enriching(context.Context) ([]string, error)          { return nil, nil }
func (m *memoryStore) WarehouseChanges(context.Context, string) ([]engine.WarehousePoint, error) {
	return nil, nil
}

func (m *memoryStore) SaveWarehouse(context.Context, string, int64, engine.WarehousePoint) error {
	return nil
}

func (m *memoryStore) TakeOver(context.Context, string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run.OwnerEpoch++
	return m.run.OwnerEpoch, nil
}

func (m *memoryStore) Claim(ctx context.Context, c store.Claim) (int64, error) {
	return m.TakeOver(ctx, c.RunID)
}

func (m *memoryStore) ExpiredRuns(context.Context) ([]engine.Run, error) { return nil, nil }

func (m *memoryStore) RenewLeases(context.Context, string, []string) error { return nil }

func (m *memoryStore) Transition(_ context.Context, t store.Transition) ([]engine.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(t.From) > 0 && !slices.Contains(t.From, m.run.Status) {
		return nil, fmt.Errorf("%w: the run is %s", store.ErrConflict, m.run.Status)
	}
	l := live{run: m.run, clock: engine.NewClock(nil)}
	l.show(t)
	if m.run = l.run; !t.StartTime.IsZero() {
		m.run.StartTime = engine.At(t.StartTime)
	}
	var out []engine.Event
	for _, e := range t.Events {
		e.RunID, e.SequenceID = t.RunID, m.next
		m.next++
		out = append(out, e)
	}
	m.events = append(m.events, out...)
	return out, nil
}

// away makes the store answer no ticks and transitions, or again.
func (m *memoryStore) away(yes bool) {
	m.mu.Lock()
	m.gone = yes
	m.mu.Unlock()
}

func (m *memoryStore) SaveTick(_ context.Context, t store.Tick) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return fmt.Errorf("saving a second: %w", store.ErrUnavailable)
	}
	m.logs = append(m.logs, t.Logs...)
	if t.Point != nil {
		m.points = append(m.points, *t.Point)
	}
	if t.FindMax != nil {
		m.states = append(m.states, *t.FindMax)
	}
	for _, w := range t.Workers {
		m.beats[w.WorkerID] = w
	}
	return nil
}

func (m *memoryStore) SaveResult(_ context.Context, r engine.TestResult) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.results[r.TestID]
	if ok && r.Figures == nil {
		r.Figures = old.Figures
	}
	m.results[r.TestID] = r
	return nil
}

func (m *memoryStore) Results(_ context.Context, runID string) ([]engine.TestResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Collect(maps.Values(m.results))
	slices.SortFunc(out, func(a, b engine.TestResult) int {
		group := func(r engine.TestResult) int {
			if r.WorkerGroupID == nil {
				return -1
			}
			return *r.WorkerGroupID
		}
		return group(a) - group(b)
	})
	return out, nil
}

func (m *memoryStore) SaveArtifact(_ context.Context, a engine.Artifact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts = append(m.parts, a)
	return nil
}

func (m *memoryStore) Overviews(ctx context.Context, runID string) ([]engine.TestResult, error) {
	return m.Results(ctx, runID)
}

func (m *memoryStore) EventPage(ctx context.Context, runID string, after int64, _ int) ([]engine.Event, int64, error) {
	events, err := m.Events(ctx, runID, after)
	return events, int64(len(events)), err
}

func (m *memoryStore) ArtifactPage(ctx context.Context, runID, _ string, _ int) ([]engine.Artifact, int64, error) {
	parts, err := m.Artifacts(ctx, runID)
	return parts, int64(len(parts)), err
}

func (m *memoryStore) Artifacts(context.Context, string) ([]engine.Artifact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.parts), nil
}

func (m *memoryStore) Events(_ context.Context, _ string, after int64) ([]engine.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events[min(int(after), len(m.events)):]), nil
}

func (m *memoryStore) SaveFindMax(_ context.Context, p store.FindMaxProgress) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.search = append(m.search, p)
	return nil
}

func (m *memoryStore) FindMax(context.Context, string) (*engine.FindMaxState, error) {
	return nil, errors.ErrUnsupported
}

// text is the run's log.
func (m *memoryStore) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := ""
	for _, l := range m.logs {
		text += fmt.Sprintf("%d %s %s %s %s\n", l.Seq, l.Level, l.WorkerID, l.Message, l.Details)
	}
	return text
}
