package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	resultsexecutions "github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// recordingObserver is told of executions, and keeps what it was told, in order.
type recordingObserver struct {
	mu       sync.Mutex
	of       []resultsexecutions.Stream
	received []string
}

func (l *recordingObserver) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received = append(l.received, fmt.Sprintf(format, args...))
}

func (l *recordingObserver) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.received...)
}

// Open implements executions.Observers.
func (l *recordingObserver) Open(of resultsexecutions.Stream) resultsexecutions.Observer {
	l.say("open %s", of.WorkerID)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of = append(l.of, of)
	return l
}

// Write implements executions.Observer.
func (l *recordingObserver) Write(recs []engine.Execution) { l.say("write %d", len(recs)) }

// Close implements executions.Observer.
func (l *recordingObserver) Close() { l.say("close") }

// known is a load that knows its errors and catches up.
type known struct {
	*fakeLoad
	caught int
}

func (known) Error(id uint32) engine.ExecutionError {
	return engine.ExecutionError{Message: fmt.Sprintf("the %d. error", id)}
}

func (k *known) CatchUp() bool { k.caught++; return true }

// TestWhatARunWorkerRecordsIsTold: from its first execution to its last one, once each, with whose they are; who is
// told is opened once there is a load and closed once nothing follows.
func TestWhatARunWorkerRecordsIsTold(t *testing.T) {
	for name, catches := range map[string]bool{"a load that catches up": true, "one that cannot": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, to := newFakeLoad(), &recordingObserver{}
				fake.records = 700
				loaded := &known{fakeLoad: fake}
				s := connect(t, t.TempDir(), fake, func(_ context.Context, cfg load.Config, _ int,
					_ func(int, int)) (Load, error) {
					if said := to.all(); len(said) != 0 {
						t.Errorf("without a load it says %v", said)
					}
					fake.sink = cfg.Sink
					if catches {
						return loaded, nil
					}
					return fake, nil
				})
				s.node.opts.Executions = to
				a := assign()
				a.Plan.Statements = []engine.Statement{{ID: "find"}, {ID: "pay"}}
				s.send(a, start(1), measure(2), stop(3))
				synctest.Wait()
				if got := s.last(); got.Status != engine.WorkerCompleted {
					t.Fatalf("%+v", got)
				}
				if got, want := to.all(), []string{"open worker-0", "write 700", "close"}; !reflect.DeepEqual(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				of := to.of[0]
				if of.RunID != runID || of.NodeID != "n" || !reflect.DeepEqual(of.Statements, a.Plan.Statements) ||
					of.Now().IsZero() {
					t.Errorf("%+v", of)
				}
				if caught := of.Flush(); caught != catches || loaded.caught > 1 || catches != (loaded.caught == 1) {
					t.Errorf("it has caught up: %t, %d times", caught, loaded.caught)
				}
				if why := of.Error(7).Message; catches && why != "the 7. error" {
					t.Errorf("%q", why)
				}
				s.end()
			})
		})
	}
}

// TestTimeOfATapIsThatOfTheRun: a node's own clock may be another one.
func TestTimeOfATapIsThatOfTheRun(t *testing.T) {
	to := &recordingObserver{}
	n := NewNode(Options{NodeID: "n", SpoolDir: t.TempDir(), Executions: to})
	defer n.Close()
	a := assign()
	a.Clock = clock.New(func() time.Time { return time.Now().Add(time.Hour) })
	w := newRunWorker(n, &clockSync{}, a)
	r := &resources{load: newFakeLoad(), writer: &record.Writer{}}
	if w.sink(r) != r.observed {
		t.Error("the load does not record to what tells it")
	}
	w.startObserver(r)
	before := a.Clock.Now()
	if now := to.of[0].Now(); now.Before(before) || now.After(a.Clock.Now()) {
		t.Errorf("%v, the run's time is %v", now, before)
	}
}

// TestNobodyIsToldOfALoadThatDoesNotOpen: and nothing is left to be closed.
func TestNobodyIsToldOfALoadThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &recordingObserver{}
		s := connect(t, t.TempDir(), newFakeLoad(), func(context.Context, load.Config, int, func(int, int)) (Load, error) {
			return nil, errors.New("nobody listens there")
		})
		s.node.opts.Executions = to
		s.send(assign())
		synctest.Wait()
		if got := s.last(); got.Status != engine.WorkerFailed || len(to.all()) != 0 {
			t.Errorf("%+v, it was told %v", got, to.all())
		}
		s.end()
	})
}

// TestWithoutAListenerNothingStandsBetween: the load records to the recorder itself.
func TestWithoutAListenerNothingStandsBetween(t *testing.T) {
	n := NewNode(Options{NodeID: "n", SpoolDir: t.TempDir()})
	defer n.Close()
	w := newRunWorker(n, &clockSync{}, assign())
	r := &resources{load: newFakeLoad(), writer: &record.Writer{}}
	if sink := w.sink(r); sink != r.writer || r.observed != nil {
		t.Errorf("%T stands between", sink)
	}
	w.startObserver(r)
	r.closeObserver()
}

// disk is a recorder that may have no room.
type disk struct{ err error }

func (d *disk) Write([]engine.Execution) error { return d.err }

// TestWhatCouldNotBeRecordedIsNotTold: a query says no more than the record will; the load has the recorder's error,
// and who is told goes on with what is recorded afterwards.
func TestWhatCouldNotBeRecordedIsNotTold(t *testing.T) {
	full, to := errors.New("no space left"), &recordingObserver{}
	d := &disk{}
	tp := &observedSink{Sink: d}
	recs := make([]engine.Execution, 3)
	if err := tp.Write(recs); err != nil || len(to.all()) != 0 {
		t.Errorf("before there is anybody: %v", err)
	}
	at := to.Open(resultsexecutions.Stream{})
	tp.tap.Store(&at)
	d.err = full
	if err := tp.Write(recs); !errors.Is(err, full) {
		t.Errorf("the load is told %v", err)
	}
	d.err = nil
	if err := tp.Write(recs[:2]); err != nil {
		t.Error(err)
	}
	r := &resources{observed: tp}
	r.closeObserver()
	r.closeObserver()
	if err := tp.Write(recs); err != nil {
		t.Error(err)
	}
	if got, want := to.all(), []string{"open ", "write 2", "close"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
