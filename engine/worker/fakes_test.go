package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLoad records what a run worker asks of its load.
type fakeLoad struct {
	mu      sync.Mutex
	calls   []string
	sink    record.Sink
	started bool
	phases  int64 // that it has entered
	records int   // written to the sink when drained
	hang    bool
	failed  chan error
	done    chan struct{}
	once    sync.Once
	until   time.Time // the deadline
}

func newFakeLoad() *fakeLoad {
	return &fakeLoad{failed: make(chan error, 1), done: make(chan struct{})}
}

func (l *fakeLoad) call(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func (l *fakeLoad) callList() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.calls...)
}

func (l *fakeLoad) SetDeadline(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
}

func (l *fakeLoad) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

func (l *fakeLoad) Start(p engine.Phase) {
	l.call("start %s", p)
	l.started = true
	l.phases++
}
func (l *fakeLoad) SetPhase(p engine.Phase) {
	l.call("phase %s", p)
	l.phases++
}
func (l *fakeLoad) SetTarget(n int, ramp time.Duration) { l.call("target %d in %v", n, ramp) }
func (l *fakeLoad) Collect(s *engine.WorkerSnapshot) {
	s.TickSeconds, s.Started, s.Scheduled = 1, 7, l.phases
}
func (l *fakeLoad) SetRate(rate float64, ramp time.Duration) {
	l.call("rate %g in %v", rate, ramp)
}
func (l *fakeLoad) SetStep(n uint16)                   { l.call("step %d", n) }
func (l *fakeLoad) Connections() (open, target int)    { return 2, 2 }
func (l *fakeLoad) DropQueued()                        { l.call("drop") }
func (l *fakeLoad) Stop()                              { l.call("stop"); l.once.Do(func() { close(l.done) }) }
func (l *fakeLoad) Failed() <-chan error               { return l.failed }
func (l *fakeLoad) Done() <-chan struct{}              { return l.done }
func (l *fakeLoad) Close() error                       { return nil }
func (l *fakeLoad) Error(uint32) engine.ExecutionError { return engine.ExecutionError{} }
func (l *fakeLoad) Totals() engine.Totals {
	return engine.Totals{Accounting: engine.Accounting{Started: int64(l.records)}}
}
func (l *fakeLoad) Drain(ctx context.Context) error {
	begin := time.Now()
	if l.hang {
		<-ctx.Done()
	}
	l.call("drained after %v", time.Since(begin).Round(time.Second))
	recs := make([]engine.Execution, l.records)
	for i := range recs {
		recs[i] = engine.Execution{StartedAt: time.Now().UnixNano(), Seq: uint32(i), Success: true}
	}
	if len(recs) == 0 {
		return nil
	}
	return l.sink.Write(recs)
}

type fakeHost struct{ plugin.Host }

func (fakeHost) Workload(context.Context, string) (plugin.Workload, error) {
	return fakeWorkload{}, nil
}

type fakeWorkload struct{ plugin.Workload }

func (fakeWorkload) Open(context.Context, plugin.OpenRequest, []engine.Statement) (plugin.Stream, error) {
	return fakeStream{}, nil
}

type fakeStream struct{ plugin.Stream }

func (fakeStream) Close() error { return nil }

type fakeDriver struct{ target.Driver }

func (fakeDriver) Open(target.Config) (target.Database, error) { return fakeDatabase{}, nil }

type fakeDatabase struct{ target.Database }

func (fakeDatabase) Close() error { return nil }

// server is the other end of a node in a test.
type server struct {
	t    *testing.T
	link protocol.ServerEnd
	node *Node
	load *fakeLoad

	mu       sync.Mutex
	received []protocol.FromNode
	ahead    time.Duration // of the node's clock
	mute     bool          // what the node reports is not acknowledged
	cancel   context.CancelFunc
	served   chan error
}

// acknowledge answers a Status as the owner of the run does.
func (s *server) acknowledge(ctx context.Context, m protocol.Status, epoch int64) {
	s.mu.Lock()
	now := time.Now().Add(s.ahead)
	s.mu.Unlock()
	_ = s.link.Send(ctx, protocol.StatusAck{Sequence: m.Sequence, Runs: []protocol.OwnedRun{{RunID: runID, Epoch: epoch}},
		Received: now, Sent: now})
}

// silence ends the acknowledgements.
func (s *server) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = true
}

// connect serves a node whose run workers get fake. open replaces opening it.
func connect(t *testing.T, spool string, fake *fakeLoad, open OpenLoad) *server {
	t.Helper()
	return connectAhead(t, spool, fake, open, 0)
}

// connectAhead is connect to a server whose clock is ahead of the node's from the first word on, and to a node with
// further options.
func connectAhead(t *testing.T, spool string, fake *fakeLoad, open OpenLoad, ahead time.Duration,
	more ...func(*Options)) *server {
	t.Helper()
	if open == nil {
		open = func(_ context.Context, cfg load.Config, _ int, _ func(int, int)) (Load, error) {
			fake.sink = cfg.Sink
			return fake, nil
		}
	}
	s := &server{t: t, load: fake, ahead: ahead, served: make(chan error, 1)}
	var end protocol.NodeEnd
	s.link, end = protocol.Pipe(nil)
	opts := Options{NodeID: "n", Plugins: fakeHost{}, Sample: sampleMachine(), SpoolDir: spool, Log: zerolog.Nop(),
		Drivers: map[string]target.Driver{"fake": fakeDriver{}}, OpenLoad: open}
	for _, change := range more {
		change(&opts)
	}
	s.node = NewNode(opts)
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	go func() { s.served <- s.node.Serve(ctx, end) }()
	go func() {
		for {
			m, err := s.link.Receive(ctx)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.received = append(s.received, m)
			mute := s.mute
			s.mu.Unlock()
			if m, ok := m.(protocol.Status); ok && !mute {
				s.acknowledge(ctx, m, 3)
			}
		}
	}()
	return s
}

func (s *server) end() {
	s.cancel()
	if err := <-s.served; err != nil {
		s.t.Errorf("serving: %v", err)
	}
	_ = s.link.Close()
}

func (s *server) send(messages ...protocol.ToNode) {
	for _, m := range messages {
		if err := s.link.Send(context.Background(), m); err != nil {
			s.t.Fatal(err)
		}
	}
}

// messages are those of one type, oldest first.
func messages[M protocol.FromNode](s *server) (found []M) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.received {
		if m, ok := m.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

// last is the newest state of the run worker.
func (s *server) last() protocol.WorkerState {
	states := messages[protocol.WorkerState](s)
	if len(states) == 0 {
		return protocol.WorkerState{}
	}
	return states[len(states)-1]
}

const runID = "run-1"

func assign() protocol.AssignRun {
	return protocol.AssignRun{RunID: runID, ResultID: "test-1", WorkerID: "worker-0", Epoch: 3,
		Plan:     &engine.Plan{Driver: "fake", KeySlots: 4},
		Workload: engine.Workload{Seed: 1, Params: json.RawMessage("{}")}, Connections: 2}
}

func event(seq int64, kind engine.EventType, data engine.EventData) protocol.RunEvent {
	return protocol.RunEvent{Epoch: 3, Event: engine.Event{RunID: runID, Type: kind, SequenceID: seq, Data: data}}
}

// sampleMachine is what nodes of tests sample: the machine as it is, without the thread that looks how late it wakes,
// which virtual time would wait for, and without what the verdict would say of it.
func sampleMachine() func() engine.Resources {
	sampler := host.New()
	return func() engine.Resources {
		r := sampler.Sample()
		r.Witness = nil
		return r
	}
}
