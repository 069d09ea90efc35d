package run

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/results"
)

// virtualServer is a server in virtual time: the loop, the judge and the keeper are the
// real ones, and so are the parts; the control store is in memory, the
// preparation is done, and the run workers do as the test says.
type virtualServer struct {
	t     *testing.T
	store *memoryStore
	svc   *Service
	link  protocol.NodeEnd
	// connected is closed when link is there.
	connected chan struct{}
	dir       string

	mu      sync.Mutex
	workers map[string]*virtualWorker
	// served is what the target serves in a second by so many connections in all; nil: what is asked for.
	served func(connections int, rate float64) float64
	// closed is what the target serves in a second in a closed loop of so many connections, and how long each operation
	// takes; nil: ten of a millisecond to each run worker.
	closed func(connections int) (perSecond float64, each time.Duration)
	// quota is asked by the writers; nil is no bound.
	quota record.Quota
	// acked are the parts that the server has acknowledged.
	acked []protocol.ArtifactAck
	// slowWorker is a worker that stays STARTING.
	slowWorker string
	// rejects: the node takes no run worker; refused is when it did not.
	rejects    bool
	rejectedAt []time.Time
	// cpu is what the generator's processor is said to be used, in per cent.
	cpu float64
}

// virtualWorker reports once a second, unless it is silent.
type virtualWorker struct {
	a           protocol.AssignRun
	status      engine.WorkerStatus
	phase       engine.Phase
	connections int
	rate        float64
	step        protocol.Step
	stepStarted time.Time // of the step
	stepOver    bool
	silent      bool
	ignoresStop bool // does not leave
	// cutAt is when it was cut off from the server, zero before; it bears its load for a minute more.
	cutAt time.Time
	tick  int64
	// sequence is that of the last event that it follows.
	sequence int64
	// lostConnections is how many operations lost their connection so far.
	lostConnections int64
	started         int64
	rest            float64 // of an operation, for the next second
	writer          *record.Writer
}

// inVirtualTime runs a test with a server of one node.
func inVirtualTime(t *testing.T, test func(t *testing.T, v *virtualServer), with ...func(*Options)) {
	synctest.Test(t, func(t *testing.T) {
		link := protocol.NewMemory()
		folder, err := results.Open(filepath.Join(t.TempDir(), "results"))
		if err != nil {
			t.Fatal(err)
		}
		v := &virtualServer{t: t, store: newMemoryStore(), connected: make(chan struct{}), dir: t.TempDir(),
			workers: map[string]*virtualWorker{}}
		opts := Options{Store: v.store, Results: folder, Nodes: []protocol.Dialer{link}, Log: zerolog.Nop(),
			Version: "test", TempDir: t.TempDir()}
		for _, change := range with {
			change(&opts)
		}
		v.svc = New(opts)
		v.svc.opts.Plan = func(context.Context, prepare.Deps, engine.Scenario,
			func(engine.PrepareProgress)) (*prepare.Prepared,
			error) {
			return &prepare.Prepared{Plan: &engine.Plan{Driver: "postgres", KeySlots: 64,
				Statements: []engine.Statement{{ID: "point_lookup", Kind: engine.KindPointLookup}}},
				Server: target.ServerInfo{MaxConnections: 1000}}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var node sync.WaitGroup
		link.Serve(func(id string) (*os.File, error) {
			_, file, _ := strings.Cut(id, "/")
			return os.Open(filepath.Join(v.dir, file))
		})
		node.Go(func() {
			end, err := link.Accept(ctx)
			if err != nil {
				return
			}
			v.link = end
			close(v.connected)
			v.listen(ctx)
		})
		node.Go(func() { <-v.connected; v.reportAll(ctx) })
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

func (v *virtualServer) report(m protocol.FromNode) {
	if hello, is := m.(protocol.Hello); is {
		hello.Protocol = version.Protocol
		m = hello
	}
	_ = v.link.Send(context.Background(), m)
}

// listen does what the server says.
func (v *virtualServer) listen(ctx context.Context) {
	v.report(protocol.Hello{NodeID: "local", Session: "s"})
	for {
		m, err := v.link.Receive(ctx)
		if err != nil {
			return
		}
		v.mu.Lock()
		switch m := m.(type) {
		case protocol.Ping:
			v.report(protocol.Pong(m))
		case protocol.AssignRun:
			v.checkRowStored(m)
			if v.rejects {
				v.rejectedAt = append(v.rejectedAt, time.Now())
				v.report(protocol.RunRejected{RunID: m.RunID, WorkerID: m.WorkerID, NodeID: "local",
					Err: &engine.Error{Code: engine.CodeUnavailable, Message: "The node has no memory for it."}})
				break
			}
			w := &virtualWorker{a: m, connections: m.Connections, status: engine.WorkerReady, phase: engine.PhasePreparing}
			w.writer, err = record.NewWriter(record.WriterOptions{Dir: filepath.Join(v.dir, m.WorkerID), RunID: m.RunID,
				ResultID: m.ResultID, WorkerID: m.WorkerID, Statements: m.Plan.Statements, Quota: v.quota})
			if err != nil {
				v.t.Error(err)
			}
			if m.WorkerID == v.slowWorker {
				w.status = engine.WorkerStarting
			}
			v.workers[m.WorkerID] = w
			v.report(w.report())
		case protocol.ArtifactAck:
			v.acked = append(v.acked, m)
			if err := os.Remove(filepath.Join(v.dir, m.WorkerID, m.Name)); err != nil && !os.IsNotExist(err) {
				v.t.Error(err)
			}
		case protocol.RunEvent:
			for _, id := range slices.Sorted(maps.Keys(v.workers)) {
				if w := v.workers[id]; m.Event.For(id, w.a.WorkerGroupID) {
					w.follow(m.Event.SequenceID)
					v.apply(w, m.Event)
				}
			}
		case protocol.RunState:
			for id, w := range v.workers {
				if !w.cutAt.IsZero() {
					continue
				}
				w.follow(m.LastSequence)
				if t, ok := m.Targets[id]; ok && t.TargetQPS != nil {
					w.rate = *t.TargetQPS
				}
				if t, ok := m.Targets[id]; ok {
					w.connections = t.TargetConnections
				}
				if m.Started && w.status == engine.WorkerReady {
					w.status, w.phase = engine.WorkerRunning, m.Phase
					v.report(w.report())
				}
			}
		}
		v.mu.Unlock()
	}
}

func (v *virtualServer) apply(w *virtualWorker, e engine.Event) {
	if w.status.Ended() || !w.cutAt.IsZero() {
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
			w.step, w.stepStarted, w.stepOver = protocol.Step{Number: e.Data.StepNumber, Settle: seconds64(e.Data.SettleSeconds),
				Length: seconds64(e.Data.StepSeconds)}, time.Now(), false
		}
	case engine.EventStop:
		if w.silent || w.ignoresStop {
			return
		}
		v.leave(w)
		return
	}
	v.report(w.report())
}

func seconds64(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// leave ends a worker in order: its part, then its end.
func (v *virtualServer) leave(w *virtualWorker) {
	w.status = engine.WorkerCompleted
	parts, err := w.writer.Close()
	if err != nil {
		v.t.Error(err)
	}
	for _, a := range parts {
		a.Kind = "executions"
		id := protocol.PartWorkID(a)
		v.report(protocol.WorkReady{WorkID: id, NodeID: "local", Artifact: a, ArtifactURL: protocol.PartsPath + id})
	}
	r := w.report()
	r.Totals = &engine.Totals{Accounting: engine.Accounting{Scheduled: w.started, Started: w.started,
		Succeeded: w.started}}
	v.report(r)
}

// follow takes that it has heard of all events up to one, unless it is cut off.
func (w *virtualWorker) follow(sequence int64) {
	if w.cutAt.IsZero() {
		w.sequence = max(w.sequence, sequence)
	}
}

func (w *virtualWorker) report() protocol.WorkerState {
	return protocol.WorkerState{LastSequence: w.sequence, RunID: w.a.RunID, ResultID: w.a.ResultID, WorkerID: w.a.WorkerID,
		WorkerGroupID: w.a.WorkerGroupID, NodeID: "local",
		Status: w.status, Phase: w.phase, OpenConnections: w.connections, WantConnections: w.connections, At: time.Now()}
}

// reportAll reports each second of every worker that is not silent.
func (v *virtualServer) reportAll(ctx context.Context) {
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
				v.report(w.report())
			}
		}
		v.mu.Unlock()
	}
}

// second is a second of load: ten operations, 200 in a search, or what the target serves.
func (v *virtualServer) second(w *virtualWorker, connections int, rate float64) {
	n, target := int64(10), (*float64)(nil)
	if w.step.Number > 0 {
		n = 200 // enough for the percentiles of a step
	}
	waiting, each := 0, time.Millisecond
	if v.closed != nil && rate == 0 {
		var served float64
		served, each = v.closed(connections)
		w.rest += served * float64(w.connections) / float64(connections)
		n = int64(w.rest)
		w.rest -= float64(n)
	}
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
		recs[i] = engine.Execution{
			DueAt:     at,
			StartedAt: at,
			Elapsed:   int64(each),
			Seq:       uint32(w.started - n + int64(i)),
			Rows:      1,
			Kind:      engine.KindPointLookup,
			Success:   true,
			Warmup:    w.phase == engine.PhaseWarmup,
		}
		latency.Record(int64(each))
	}
	if err := w.writer.Write(recs); err != nil {
		v.t.Error(err)
	}
	s := engine.WorkerSnapshot{RunID: w.a.RunID, ResultID: w.a.ResultID, WorkerID: w.a.WorkerID,
		WorkerGroupID: w.a.WorkerGroupID, NodeID: "local", Tick: w.tick,
		Timestamp: engine.At(now), Phase: w.phase, Status: w.status, TickSeconds: 1, Started: w.started, Succeeded: w.started,
		TickStarted: n,
		ByKind:      map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: w.started}},
		TickByKind:  map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: n}},
		ByClass:     map[engine.ErrorClass]int64{engine.ErrClassConnection: w.lostConnections},
		TickLatency: histogram.Pack(latency.Data()), PhaseLatency: histogram.Pack(latency.Data()), TargetQPS: target,
		InFlight: waiting + w.connections*min(waiting, 1), Waiting: waiting, TickDropped: int64(waiting),
		ActiveConnections: w.connections, TargetConnections: w.connections, Resources: engine.Resources{CPUPercent: v.cpu}}
	if since := now.Sub(w.stepStarted); w.step.Number > 0 && !w.stepOver && since > w.step.Settle+time.Second {
		s.Step, s.StepOver = w.step.Number, since >= w.step.Settle+w.step.Length
		w.stepOver = s.StepOver
	}
	v.report(protocol.Snapshot{WorkerSnapshot: s})
}

// silence makes a worker be heard no more, or heard again.
func (v *virtualServer) silence(id string, yes bool) {
	v.mu.Lock()
	v.workers[id].silent = yes
	v.mu.Unlock()
}

// start begins a run and waits until it is measured.
func (v *virtualServer) start(sc engine.Scenario) engine.Run {
	v.t.Helper()
	shares, err := scaling.Shares(sc)
	if err != nil {
		v.t.Fatal(err)
	}
	run := engine.Run{RunID: "run-1", ResultID: "run-1", RunName: "virtual", Scenario: sc, Status: engine.StatusPrepared,
		Phase:           engine.PhasePreparing,
		WorkersExpected: len(shares), WorkerTargets: scaling.FirstTargets(sc, shares)}
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
func (v *virtualServer) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (v *virtualServer) live() *engine.LiveState {
	v.t.Helper()
	p := v.svc.LiveState("run-1")
	if p == nil {
		v.t.Fatalf("the run is not live\n%s", v.store.text())
	}
	return p
}

// figures waits for the end of the run.
func (v *virtualServer) figures() *engine.Summary {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), time.Hour)
	defer cancel()
	sum, err := v.svc.Wait(ctx, "run-1")
	if err != nil {
		v.t.Fatalf("%v\n%s", err, v.store.text())
	}
	return sum
}

// memoryStore is the store in memory, which can be away, and notes the states of a
// search second by second.
type memoryStore struct {
	*fake.Store

	mu   sync.Mutex
	gone bool
	// rowsTake is how long a row of the results takes, rowsAway that none is taken.
	rowsTake time.Duration
	rowsAway bool
	states   []engine.FindMaxState
}

func newMemoryStore() *memoryStore { return &memoryStore{Store: fake.New()} }

// away makes the store take no seconds, or again.
func (m *memoryStore) away(yes bool) {
	m.mu.Lock()
	m.gone = yes
	m.mu.Unlock()
}

func (m *memoryStore) SaveTick(ctx context.Context, t store.Tick) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return fmt.Errorf("saving a second: %w", store.ErrUnavailable)
	}
	if t.FindMax != nil {
		m.states = append(m.states, *t.FindMax)
	}
	return m.Store.SaveTick(ctx, t)
}

// lines, stored and beats are the log, the control events and the run workers of the one run.
func (m *memoryStore) lines() []engine.LogEntry {
	lines, err := m.Logs(context.Background(), "run-1", 0, "", 10_000)
	if err != nil {
		panic(err)
	}
	return lines
}

func (m *memoryStore) stored() []engine.Event {
	events, err := m.Events(context.Background(), "run-1", 0)
	if err != nil {
		panic(err)
	}
	return events
}

func (m *memoryStore) beats() map[string]store.WorkerRow {
	rows, err := m.Workers(context.Background(), "run-1")
	if err != nil {
		panic(err)
	}
	out := map[string]store.WorkerRow{}
	for _, w := range rows {
		out[w.WorkerID] = w
	}
	return out
}

// text is the run's log.
func (m *memoryStore) text() string {
	text := ""
	for _, l := range m.lines() {
		text += fmt.Sprintf("%d %s %s %s %s\n", l.Seq, l.Level, l.WorkerID, l.Message, l.Details)
	}
	return text
}
