package system_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a run worker that has recorded some executions and is asked for them.
type recorder struct {
	mu    sync.Mutex
	held  []engine.Execution
	stuck bool
	tap   executions.Observer
}

func (r *recorder) record(recs ...engine.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, recs...)
}

func (r *recorder) catchUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck {
		return false
	}
	r.tap.Write(r.held)
	r.held = nil
	return true
}

var statements = []engine.Statement{{ID: "find", Kind: engine.KindPointLookup},
	{ID: "pay", Kind: engine.KindUpdate, Transaction: "CHECKOUT"}}

func follow(h *system.Hub, worker string) *recorder { return followAt(h, worker, time.Now) }

func followAt(h *system.Hub, worker string, now func() time.Time) *recorder {
	r := &recorder{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tap = h.Observers().Open(
		executions.Stream{RunID: "r", WorkerID: worker, NodeID: "local", Statements: statements, Now: now,
			Flush: r.catchUp, Error: func(uint32) engine.ExecutionError {
				return engine.ExecutionError{Class: engine.ErrClassConstraint, Code: "23505", Message: "duplicate key 'secret'"}
			}},
	)
	return r
}

// columns are those of a stream.
func columns(t *testing.T, stream string) (names map[string]int) {
	t.Helper()
	want, _ := system.Fits(stream, nil)
	names = map[string]int{}
	for i, c := range strings.Split(want, ", ") {
		name, _, _ := strings.Cut(c, " ")
		names[name] = i
	}
	return names
}

func text(b *column.Batch, names map[string]int, i int, of ...string) string {
	var all []string
	for _, name := range of {
		all = append(all, string(b.Cols[names[name]].AppendValue(nil, i)))
	}
	return strings.Join(all, ",")
}

// read reads until there are so many rows, and returns them with the last mark.
func read(t *testing.T, s connector.Source, rows int, each func(b *column.Batch, i int)) (mark time.Time) {
	t.Helper()
	b := &column.Batch{}
	for n := 0; n < rows; {
		if err := s.Read(b); err != nil {
			t.Fatal(err)
		}
		for i := range b.N {
			each(b, i)
		}
		if n += b.N; b.HasWatermark {
			mark = time.UnixMicro(b.Watermark)
		}
	}
	return mark
}

// TestRowsOfExecutions: columns have what the record has, errors without the values in their messages, transactions
// under their names and without what is inside of them.
func TestRowsOfExecutions(t *testing.T) {
	t.Parallel()
	h := &system.Hub{Node: "local"}
	names := columns(t, connector.Executions)
	one, two := h.Open(connector.Executions, nil), h.Open(connector.Executions, nil)
	defer one.Close()
	defer two.Close()
	r := follow(h, "w")
	defer r.tap.Close()
	at := time.Date(2026, 11, 24, 6, 0, 0, 0, time.UTC).UnixNano()
	r.record(
		engine.Execution{DueAt: at, StartedAt: at + 1e6, Elapsed: 5e6, ScheduleLag: 1e6, Rows: 3, Success: true,
			Warmup: true, ConnectionID: 4, Seq: 9, Step: 2},
		engine.Execution{DueAt: at, StartedAt: at, Elapsed: 1e6, Statement: 1, Kind: engine.KindUpdate, Position: 1},
		engine.Execution{DueAt: at, StartedAt: at, Elapsed: 7e6, Statement: 1, Kind: engine.KindTransaction, ErrorID: 1,
			Retries: 2, QueryID: engine.QueryID{15: 1}})
	for _, s := range []connector.Source{one, two} {
		var got []string
		read(t, s, 2, func(b *column.Batch, i int) {
			got = append(got, text(b, names, i, "timestamp", "runId", "workerId", "nodeId", "connection", "seq", "step", "phase",
				"warmup", "kind", "statement", "startedAt", "latencyMs", "scheduleLagMs", "rows", "success", "errorClass",
				"errorCode", "errorMessage", "retries", "queryId"))
		})
		want := []string{
			"2026-11-24T06:00:00.005Z,r,w,local,4,9,2,WARMUP,true,POINT_LOOKUP,find,2026-11-24T06:00:00.001Z,5,1,3,true,,,,0,",
			"2026-11-24T06:00:00.007Z,r,w,local,0,0,0,MEASUREMENT,false,TRANSACTION,CHECKOUT,2026-11-24T06:00:00Z,7,0,0,false," +
				"constraint,23505,duplicate key '•••',2,00000000-0000-0000-0000-000000000001"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// TestNoRowIsOverlookedByTime: the time that goes with rows is that of the run worker that has come least far; one that
// cannot be asked holds it.
func TestNoRowIsOverlookedByTime(t *testing.T) {
	t.Parallel()
	h := &system.Hub{}
	s := h.Open(connector.Executions, nil)
	defer s.Close()
	a, b := follow(h, "a"), follow(h, "b")
	defer a.tap.Close()
	defer b.tap.Close()
	b.mu.Lock()
	b.stuck = true
	b.mu.Unlock()
	stuck := time.Now()
	for range 3 {
		a.record(engine.Execution{DueAt: time.Now().UnixNano(), Success: true})
		if mark := read(t, s, 1, func(*column.Batch, int) {}); mark.After(stuck) {
			t.Fatalf("the time is %v, though a run worker has not been heard since %v", mark, stuck)
		}
	}
	b.mu.Lock()
	b.stuck = false
	b.mu.Unlock()
	for end := time.Now().Add(10 * time.Second); ; {
		batch := &column.Batch{}
		if err := s.Read(batch); err != nil {
			t.Fatal(err)
		}
		if batch.HasWatermark && time.UnixMicro(batch.Watermark).After(stuck) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the time stands still")
		}
	}
}

// TestTimeIsThatOfTheRuns: the clock of a machine may be wrong, and a node has another one than the server of a run.
// The time that goes with rows is the run's, before, during and after it; with a run worker it is told at once.
func TestTimeIsThatOfTheRuns(t *testing.T) {
	t.Parallel()
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		h := &system.Hub{}
		s := h.Open(connector.Executions, nil)
		now := func() time.Time { return time.Now().Add(wrong) }
		time.Sleep(500 * time.Millisecond) // rounds without a run worker, of which nothing may be told
		began := now()
		r := followAt(h, "a", now)
		next := func() time.Time {
			t.Helper()
			b := &column.Batch{}
			if err := s.Read(b); err != nil || !b.HasWatermark {
				t.Fatal(b.HasWatermark, err)
			}
			return time.UnixMicro(b.Watermark)
		}
		if mark := next(); mark.Before(began.Add(-time.Second)) || mark.After(now()) {
			t.Errorf("%v: the first time is %v, the run's %v", wrong, mark, began)
		}
		r.record(engine.Execution{DueAt: now().UnixNano(), Success: true})
		for range 3 {
			next()
		}
		r.tap.Close()
		for range 5 {
			if mark, is := next(), now(); mark.Before(is.Add(-time.Second)) || mark.After(is) {
				t.Errorf("%v: behind the run the time is %v, not %v", wrong, mark, is)
			}
		}
		_ = s.Close()
	}
}

// TestWhoReadsNotIsToldSo: a query that takes nothing fails once too many rows wait for it, the other one has all of
// them, and who tells them has not waited.
func TestWhoReadsNotIsToldSo(t *testing.T) {
	t.Parallel()
	h := &system.Hub{}
	slow, quick := h.Open(connector.Executions, nil), h.Open(connector.Executions, nil)
	defer slow.Close()
	defer quick.Close()
	r := follow(h, "w")
	defer r.tap.Close()
	const blocks, block = 1200, 256
	recs := make([]engine.Execution, block)
	for i := range recs {
		recs[i] = engine.Execution{DueAt: time.Now().UnixNano(), Success: true}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(t, quick, blocks*block, func(*column.Batch, int) {})
	}()
	for range blocks {
		r.tap.Write(recs)
		time.Sleep(100 * time.Microsecond)
	}
	<-done
	err := slow.Read(&column.Batch{})
	var known *sql.Error
	if !errors.As(err, &known) || known.Kind != sql.Overloaded ||
		!strings.Contains(known.Message, "rows were waiting") {
		t.Errorf("%v", err)
	}
}

// TestWhatWasToldIsRead: a query that is ended has all that was told before, however it comes to lie.
func TestWhatWasToldIsRead(t *testing.T) {
	t.Parallel()
	h := &system.Hub{}
	for n := range 2000 {
		s := h.Open("Heartbeats", nil)
		read := make(chan int)
		go func() {
			rows, b := 0, &column.Batch{}
			for s.Read(b) == nil {
				rows += b.N
			}
			read <- rows
		}()
		if n%2 == 0 {
			time.Sleep(20 * time.Microsecond) // it waits
		}
		h.Tick(&store.Tick{RunID: "r", Workers: []store.WorkerRow{{WorkerID: "w"}}})
		_, _ = s.Close(), s.Close()
		if rows := <-read; rows != 1 {
			t.Fatalf("%d rows of 1, the %d. time", rows, n)
		}
	}
}

// TestExecutionsOfOtherNodes: a query that would not have all executions of a run fails.
func TestExecutionsOfOtherNodes(t *testing.T) {
	t.Parallel()
	h := &system.Hub{Node: "local"}
	tick := store.Tick{RunID: "r", Workers: []store.WorkerRow{{WorkerID: "w1", NodeID: "local",
		Status: engine.WorkerRunning, LastHeartbeat: time.Now()}}}
	for _, stream := range []string{connector.Executions, connector.StatementStatistics} {
		s := h.Open(stream, nil)
		h.Tick(&tick)
		if !h.HasReaders(stream) {
			t.Fatal("a run of the own node has ended it")
		}
		h.Tick(&store.Tick{RunID: "r", Workers: []store.WorkerRow{{WorkerID: "w2", NodeID: "far",
			Status: engine.WorkerRunning, LastHeartbeat: time.Now()}}})
		var err error
		for err == nil {
			err = s.Read(&column.Batch{})
		}
		var known *sql.Error
		if !errors.As(err, &known) || known.Kind != sql.PlacementError ||
			!strings.Contains(known.Message, "far") {
			t.Errorf("%s: %v", stream, err)
		}
		if h.HasReaders(stream) {
			t.Error("it is read on")
		}
	}
	asked := 0
	h.OnMissingNode(func() { asked++ })
	on := func(node string) *store.Tick {
		return &store.Tick{RunID: "r", Workers: []store.WorkerRow{{WorkerID: "w2", NodeID: node,
			Status: engine.WorkerRunning, LastHeartbeat: time.Now()}}}
	}
	have := h.Open(connector.Executions, nil)
	defer have.Close()
	have.(connector.Partial).SetRemote(func(node string) bool { return node == "far" })
	if h.Tick(on("far")); asked != 0 || !h.HasReaders(connector.Executions) {
		t.Error("what is had from another node is missed")
	}
	gone := on("gone")
	gone.Workers[0].LastHeartbeat = time.Now().Add(-time.Minute)
	if h.Tick(gone); asked != 0 || !h.HasReaders(connector.Executions) {
		t.Error("what nobody hears of is waited for")
	}
	// A node that has come may be given the query: that is asked for, for a while.
	if h.Tick(on("farther")); asked != 1 || !h.HasReaders(connector.Executions) {
		t.Errorf("it was asked for %d times", asked)
	}
	s := h.Open(connector.KindStatistics, nil)
	h.Tick(on("far"))
	if !h.HasReaders(connector.KindStatistics) {
		t.Error("figures by kind are of all nodes")
	}
	_ = s.Close()
	if err := s.Read(&column.Batch{}); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestKindsOfASecond: quantiles are those of the second, from distributions that count over the phase, and unknown
// where a snapshot is missing.
func TestKindsOfASecond(t *testing.T) {
	t.Parallel()
	h := &system.Hub{}
	s := h.Open(connector.KindStatistics, nil)
	defer s.Close()
	names := columns(t, connector.KindStatistics)
	phase := map[engine.Kind]*histogram.Histogram{}
	second := func(tick int64, p engine.Phase, ms map[engine.Kind]int64) {
		snap := engine.WorkerSnapshot{RunID: "r", WorkerID: "w", Tick: tick, Phase: p,
			TickByKind: map[engine.Kind]engine.KindCounts{}, KindLatency: map[engine.Kind]*engine.PackedHistogram{}}
		for k, v := range ms {
			if phase[k] == nil {
				phase[k] = histogram.New()
			}
			for range 100 {
				phase[k].Record(v * 1e6)
			}
			snap.TickByKind[k] = engine.KindCounts{Count: 100, Errors: int64(k)}
			snap.KindLatency[k] = histogram.Pack(phase[k].Data())
		}
		h.Tick(&store.Tick{RunID: "r", Snapshots: []engine.WorkerSnapshot{snap}})
	}
	first, last := engine.KindPointLookup, engine.KindTransaction
	second(1, engine.PhaseWarmup, map[engine.Kind]int64{first: 1000, last: 2000})
	phase = map[engine.Kind]*histogram.Histogram{}
	second(2, engine.PhaseMeasurement, map[engine.Kind]int64{first: 10, last: 100})
	second(3, engine.PhaseMeasurement, map[engine.Kind]int64{first: 20, last: 50})
	second(5, engine.PhaseMeasurement, map[engine.Kind]int64{first: 30, last: 30})
	second(6, engine.PhaseMeasurement, map[engine.Kind]int64{first: 40, last: 20})
	want := []string{"WARMUP,POINT_LOOKUP,100,0 1000", "WARMUP,TRANSACTION,100,6 2000",
		"MEASUREMENT,POINT_LOOKUP,100,0 10",
		"MEASUREMENT,TRANSACTION,100,6 100", "MEASUREMENT,POINT_LOOKUP,100,0 20", "MEASUREMENT,TRANSACTION,100,6 50",
		"MEASUREMENT,POINT_LOOKUP,100,0 -", "MEASUREMENT,TRANSACTION,100,6 -", "MEASUREMENT,POINT_LOOKUP,100,0 40",
		"MEASUREMENT,TRANSACTION,100,6 20"}
	n := 0
	read(t, s, len(want), func(b *column.Batch, i int) {
		what, p99, _ := strings.Cut(want[n], " ")
		n++
		if got := text(b, names, i, "phase", "kind", "recordsProcessed", "errors"); got != what {
			t.Errorf("%s, want %s", got, what)
		}
		v := &b.Cols[names["p99Ms"]]
		if p99 == "-" {
			if !v.Null[i] {
				t.Errorf("%s has a P99 of %g though its second is not known", what, v.Floats[i])
			}
			return
		}
		var ms float64
		if _, err := fmt.Sscan(p99, &ms); err != nil {
			t.Fatal(err)
		}
		if got := v.Floats[i]; got < ms*0.99 || got > ms*1.01 {
			t.Errorf("%s has a P99 of %g, want %g", what, got, ms)
		}
	})
}
