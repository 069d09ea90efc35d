package ingest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// world is a run with parts of ten executions each, and what was taken in of it.
type world struct {
	parts   map[string]string // name: bytes
	sums    map[string]string
	damaged string // a part that is what was recorded and cannot be read to its end
	midway  error  // what is heard of that part instead: it could be looked at a moment ago
	gone    bool
	expires bool // the single executions are deleted between the reading of the run and of its parts
	expired engine.Time
	name    string // of the run
	stuck   bool   // a segment cannot be removed
	left    []store.PendingDeletion
	away    error
	taken   *rollup.Run
	puts    int
	dropped bool
	// segments are the files that are there, by name; epoch is that of the next claim, fence the highest that has begun.
	segments     map[string][]byte
	epoch, fence int64
	stale        bool
	// The single executions: of which parts, how often they were staged, and that removed.
	executions         bool
	staged             string
	stagings, unstaged int
	unreadable         string // a part whose seconds can be read, and not all else
	reports            []engine.WorkerSnapshot
	polls              []engine.WarehousePoint
	start              engine.Time
	summary            *engine.Summary
	// The step of that number fails, as if the process had ended there.
	steps, failAt int
}

func newWorld(names ...string) *world {
	w := &world{parts: map[string]string{}, sums: map[string]string{}, segments: map[string][]byte{}}
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		w.parts[name], w.sums[name] = name, hex.EncodeToString(sum[:])
	}
	return w
}

func (w *world) Artifacts(context.Context, string) ([]engine.Artifact, error) {
	list := []engine.Artifact{{RunID: "r", Name: "enrichment-1", Kind: "enrichment"}}
	if w.expires {
		w.expired, w.parts, w.sums = engine.At(time.Now()), nil, nil
	}
	for name, sum := range w.sums {
		list = append(list, engine.Artifact{RunID: "r", Name: name, SHA256: sum, Kind: record.KindExecutions})
	}
	return list, nil
}

func (w *world) Warehouse(context.Context, string) ([]engine.WarehousePoint, error) {
	return w.polls, nil
}

func (w *world) Reports(_ context.Context, _ string, fn func(*engine.WorkerSnapshot)) error {
	for i := range w.reports {
		fn(&w.reports[i])
	}
	return nil
}

func (w *world) QueueDeletion(_ context.Context, l store.PendingDeletion) error {
	w.left = append(w.left, l)
	return nil
}

func (w *world) Place() (place, label string, err error) { return "folder", "/results", nil }

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// flipped is a part of a storage that finds by itself that what it has is not what it was given.
type flipped struct{ file }

func (flipped) Read([]byte) (int, error) {
	return 0, fmt.Errorf("reading: %w", &engine.Error{Message: "The part e is damaged in the bucket.",
		Cause: store.ErrDamaged})
}

func (flipped) Close() error { return nil }

func (w *world) Open(_ context.Context, _, name string) (io.ReadSeekCloser, int64, error) {
	if w.away != nil {
		return nil, 0, w.away
	}
	text, ok := w.parts[name]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	if text == "flipped" {
		return flipped{}, 7, nil
	}
	return file{bytes.NewReader([]byte(text))}, int64(len(text)), nil
}

func (w *world) RollUp(_ context.Context, _, name string, into *rollup.Seconds) error {
	rows := 10
	if name == w.damaged {
		rows = 7
	}
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP"}}}
	for range rows {
		b.DueNs, b.ElapsedNs = append(b.DueNs, 0), append(b.ElapsedNs, 1e6)
		b.Rows, b.Position = append(b.Rows, 1), append(b.Position, 0)
		b.Warmup, b.Success = append(b.Warmup, false), append(b.Success, true)
		b.Kind.Index = append(b.Kind.Index, 0)
		for _, c := range []*record.Texts{&b.Statement, &b.Worker, &b.Class, &b.Code} {
			c.Index = append(c.Index, -1)
		}
	}
	into.Add(b)
	if name == w.damaged {
		return cmp.Or(w.midway, errors.New("damaged Parquet data"))
	}
	return nil
}

func (w *world) ReadExecutions(_ context.Context, _, name string, _ func(*rollup.Executions) error) error {
	if name == w.unreadable {
		return cmp.Or(w.midway, errors.New("damaged Parquet data"))
	}
	return nil
}

func (w *world) KnownExecutions(context.Context, string) (string, error) {
	if w.taken == nil {
		return "", nil
	}
	return w.staged, nil
}

func (w *world) StageExecutions(ctx context.Context, c refresh.Claim, _ time.Time, fingerprint string,
	feed func(ctx context.Context, take func(*rollup.Executions) error) error) (rollup.Staged, error) {
	w.stagings++
	s := rollup.Staged{Table: fmt.Sprint("t", c.Epoch), Fingerprint: fingerprint}
	err := feed(ctx, func(*rollup.Executions) error { return nil })
	if err == nil {
		w.staged = fingerprint
	}
	return s, err
}

func (w *world) Unstage(context.Context, rollup.Staged) { w.unstaged++ }

func (w *world) PutSegment(_ context.Context, a engine.Artifact, content []byte) error {
	if sum := sha256.Sum256(content); a.SHA256 != hex.EncodeToString(sum[:]) || a.SizeBytes != int64(len(content)) {
		return errors.New("a segment that is not what it is said to be")
	}
	if err := w.step("put segment"); err != nil {
		return err
	}
	w.segments[a.Name] = content
	return w.step("segment put")
}

func (w *world) OpenSegment(_ context.Context, _, name string) (*segment.File, error) {
	content, ok := w.segments[name]
	if !ok {
		return nil, store.ErrNotFound
	}
	return segment.Open(sized{file{bytes.NewReader(content)}})
}

type sized struct{ file }

func (w *world) RemoveSegment(_ context.Context, _, name string) error {
	if w.stuck {
		return errors.New("permission denied")
	}
	delete(w.segments, name)
	return nil
}

func (w *world) RemoveSegments(_ context.Context, _ string, below int64, keep string) error {
	for name := range w.segments {
		if epoch, ok := segment.Epoch(name); ok && epoch < below && name != keep {
			if err := w.step("remove " + name); err != nil {
				return err
			}
			delete(w.segments, name)
		}
	}
	return nil
}

// step fails when it is the one that the test wants to fail at.
func (w *world) step(name string) error {
	w.steps++
	if w.steps == w.failAt {
		return fmt.Errorf("%s: %w", name, errFault)
	}
	return nil
}

var errFault = errors.New("killed here")

func (w *world) Begin(_ context.Context, c refresh.Claim) error {
	if c.Epoch < w.fence {
		return store.ErrClaimLost
	}
	w.fence = c.Epoch
	return w.step("begin")
}

func (w *world) Known(context.Context, string) (string, string, error) {
	if w.taken == nil {
		return "", "", w.step("known")
	}
	return w.taken.Fingerprint, w.taken.Segment.Name, w.step("known")
}

func (w *world) PutRun(_ context.Context, c refresh.Claim, r rollup.Run, prove func(context.Context) error) (rows,
	bytes int64, err error) {
	if w.stale {
		return 0, 0, fmt.Errorf("writing: %w", store.ErrClaimLost)
	}
	if err := w.step("put run"); err != nil {
		return 0, 0, err
	}
	if err := prove(context.Background()); err != nil {
		return 0, 0, err
	}
	w.taken = &r
	w.puts++
	return r.Seconds.Executions, 1, w.step("run put")
}

func (w *world) DropRun(context.Context, refresh.Claim) error {
	w.dropped, w.taken = true, nil
	return nil
}

func (w *world) take(t *testing.T) (refresh.Result, error) {
	t.Helper()
	in := &ingest.Ingest{Store: w, Record: w, Target: w, Executions: w.executions,
		Detail: func(context.Context, string) (engine.RunDetail, error) {
			if w.gone {
				return engine.RunDetail{}, &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound}
			}
			return engine.RunDetail{Run: engine.Run{RunID: "r", RunName: w.name, StartTime: w.start,
				ExecutionsDeletedAt: w.expired}, Summary: w.summary}, nil
		}}
	w.epoch++
	c := refresh.Claim{Task: refresh.Task{Table: ingest.Table, Subtask: "r"}, Epoch: w.epoch}
	return in.Run(t.Context(), c, func(context.Context) error { return nil })
}

// one checks that there is exactly one copy of the run: its seconds, and the one segment that it names.
func (w *world) one(t *testing.T, executions int64) {
	t.Helper()
	if w.taken == nil || w.taken.Seconds.Executions != executions || len(w.segments) != 1 {
		t.Fatalf("%+v was taken in, and there are %d segments", w.taken, len(w.segments))
	}
	content, ok := w.segments[w.taken.Segment.Name]
	if !ok {
		t.Fatalf("the segment %s is not there", w.taken.Segment.Name)
	}
	s, err := segment.Open(sized{file{bytes.NewReader(content)}})
	if err != nil {
		t.Fatal(err)
	}
	var operations int64
	if err := s.Read(segment.Query{Relations: []string{segment.RunSeconds}}, func(r *segment.Row) error {
		operations += r.Operations
		return nil
	}); err != nil || operations != executions {
		t.Fatalf("the segment has %d executions of %d, %v", operations, executions, err)
	}
}

func TestARunIsTakenInAgainWhenItHasChanged(t *testing.T) {
	w := newWorld("a", "b")
	for i := range 3 {
		r, err := w.take(t)
		if err != nil || r.Unchanged != (i > 0) || w.puts != 1 || w.taken.Seconds.Executions != 20 {
			t.Fatalf("time %d: %+v, %v, %d puts", i, r, err, w.puts)
		}
	}
	later := newWorld("a", "b", "c")
	w.parts, w.sums = later.parts, later.sums
	if r, err := w.take(t); err != nil || r.Unchanged || w.puts != 2 || w.taken.Seconds.Executions != 30 {
		t.Errorf("with another part: %+v, %v", r, err)
	}
	w.one(t, 30)
	w.gone = true
	if r, err := w.take(t); err != nil || !r.Gone || !w.dropped || len(w.segments) != 0 {
		t.Errorf("a run that was deleted: %+v, %v", r, err)
	}
}

// TestExecutionsThatAreDeletedMidway: what was taken in before stays.
func TestExecutionsThatAreDeletedMidway(t *testing.T) {
	w := newWorld("a", "b")
	if _, err := w.take(t); err != nil {
		t.Fatal(err)
	}
	w.name, w.expires = "another name", true
	for range 2 {
		r, err := w.take(t)
		if err != nil || !r.Unchanged || !strings.Contains(r.Note, "were deleted") || w.puts != 1 {
			t.Fatalf("%+v, %v, taken in %d times", r, err, w.puts)
		}
		w.one(t, 20)
	}
}

// TestASegmentThatStaysIsLeftOver: of a run whose executions were deleted midway no later claim looks for it.
func TestASegmentThatStaysIsLeftOver(t *testing.T) {
	w := newWorld("a", "b")
	w.expires, w.stuck = true, true
	r, err := w.take(t)
	if err != nil || !r.Unchanged || len(w.segments) != 1 || len(w.left) != 1 || w.left[0].RunID != "r" ||
		w.left[0].Location != "folder" || w.left[0].Whole || w.segments[w.left[0].Part] == nil {
		t.Errorf("%+v, %v; there are %d segments, left over %+v", r, err, len(w.segments), w.left)
	}
}

// TestLoadsAndCreditsAreTakenIn: of each second what run workers reported, counted from the report before, but for
// those while there was no load; and what the warehouse takes, at the rate of the run's cost.
func TestLoadsAndCreditsAreTakenIn(t *testing.T) {
	w := newWorld("a")
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	w.start = engine.At(noon)
	w.summary = &engine.Summary{Cost: &engine.Cost{CreditsPerHour: 4}}
	w.polls = []engine.WarehousePoint{{Warehouse: engine.Warehouse{Name: "W", StartedClusters: new(3)}},
		{ElapsedSeconds: 5, Warehouse: engine.Warehouse{Name: "W", State: "SUSPENDED"}}}
	for i, phase := range []engine.Phase{engine.PhasePreparing, engine.PhaseWarmup, engine.PhaseMeasurement,
		engine.PhaseMeasurement, engine.PhaseCooldown} {
		w.reports = append(w.reports, engine.WorkerSnapshot{WorkerID: "w1", Phase: phase, TickSeconds: 1, NodeID: "n",
			Timestamp: engine.At(noon.Add(time.Duration(i+1) * time.Second)), ActiveConnections: i, Dropped: int64(10 * i)})
	}
	if _, err := w.take(t); err != nil {
		t.Fatal(err)
	}
	got := map[rollup.WorkerKey]rollup.Load{}
	for k, l := range w.taken.Seconds.Loads {
		got[k] = *l
	}
	of := func(second int32, warmup bool, dropped int64) (rollup.WorkerKey, rollup.Load) {
		return rollup.WorkerKey{Moment: rollup.Moment{Second: second, Warmup: warmup}, Worker: "w1"},
			rollup.Load{Node: "n", Connections: int(second), Counts: rollup.Counts{Dropped: dropped}, TargetRate: rollup.Unknown}
	}
	want := map[rollup.WorkerKey]rollup.Load{}
	for second, dropped := range map[int32]int64{1: 10, 2: 20, 3: 10} {
		k, l := of(second, second == 1, dropped)
		want[k] = l
	}
	if !maps.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	polls := w.taken.WarehouseSeconds()
	if len(polls) != 2 || polls[0].CreditsPerHour != 12 || polls[1].CreditsPerHour != 0 {
		t.Errorf("%+v", polls)
	}
}

// TestPartsThatAreLostMarkTheRun: what is there is taken in, once, and the run says what is not.
func TestPartsThatAreLostMarkTheRun(t *testing.T) {
	w := newWorld("a", "b", "c", "d", "e")
	delete(w.parts, "a")
	w.parts["b"], w.parts["e"] = "other bytes", "flipped"
	w.damaged = "c"
	r, err := w.take(t)
	if err != nil || w.taken.Seconds.Executions != 10 || w.taken.Parts != 5 || len(w.taken.Problems) != 4 ||
		!strings.Contains(r.Note, "4 of 5 parts of the record could not be read: ") {
		t.Fatalf("%+v, %v, taken in: %+v", r, err, w.taken)
	}
	all := strings.Join(w.taken.Problems, "\n")
	for _, want := range []string{"a is not there.", "b is not what was recorded", "c is damaged.",
		"part e is damaged in the bucket."} {
		if !strings.Contains(all, want) || !strings.Contains(r.Note, want) {
			t.Errorf("the run says %q, its history %q, not %q", all, r.Note, want)
		}
	}
	// What comes back is taken in.
	w.parts["a"] = "a"
	if r, err := w.take(t); err != nil || r.Unchanged || w.taken.Seconds.Executions != 20 {
		t.Errorf("a part that is back: %+v, %v", r, err)
	}
	// Storage that does not answer says nothing about the parts.
	w.away = store.ErrUnavailable
	if _, err := w.take(t); !errors.Is(err, store.ErrUnavailable) || w.puts != 2 {
		t.Errorf("storage that is away: %v", err)
	}
}

// TestNothingIsRatedWhereThereIsNoWholeRecord: rates of such a run are over the time of which all of its record is
// there, and no sum over its duration gives them.
func TestNothingIsRatedWhereThereIsNoWholeRecord(t *testing.T) {
	for _, partial := range []bool{false, true} {
		w := newWorld("a")
		w.summary = &engine.Summary{Figures: engine.Figures{RecordPartial: partial,
			MeasuredFrom: engine.At(time.Unix(0, 0).Add(-time.Second)), MeasuredTo: engine.At(time.Unix(9, 0))}}
		if _, err := w.take(t); err != nil {
			t.Fatal(err)
		}
		rated := int64(0)
		for _, c := range w.taken.Seconds.Run {
			rated += c.Rated
		}
		if s := w.taken.Seconds; s.HasRated() == partial || s.Executions != 10 || partial != (rated == 0) {
			t.Errorf("partial %t: %d of %d count in rates, known %t", partial, rated, s.Executions, s.HasRated())
		}
	}
}

// TestWhatGoesAwayMidwayIsNoDamage: a part that could be looked at a moment ago, and now cannot be reached, is not
// taken for a damaged one: nothing is taken in, and all of it later.
func TestWhatGoesAwayMidwayIsNoDamage(t *testing.T) {
	for name, away := range map[string]error{"a database": store.ErrUnavailable,
		"S3":             fmt.Errorf("row group 1: %w", &engine.Error{Code: engine.CodeUnavailable}),
		"a disk":         fmt.Errorf("row group 1: %w", &fs.PathError{Op: "read", Path: "p", Err: errors.New("EIO")}),
		"it was removed": fmt.Errorf("reading a: %w", store.ErrNotFound)} {
		for _, executions := range []bool{false, true} {
			w := newWorld("a", "b")
			w.midway, w.executions = away, executions
			if w.damaged = "a"; executions {
				w.damaged, w.unreadable = "", "a"
			}
			if r, err := w.take(t); !errors.Is(err, away) || w.puts != 0 {
				t.Fatalf("%s, executions %v: %+v, %v, taken in %d times", name, executions, r, err, w.puts)
			}
			w.damaged, w.unreadable = "", ""
			if r, err := w.take(t); err != nil || r.Note != "" || w.taken.Seconds.Executions != 20 {
				t.Errorf("%s, executions %v, when it is back: %+v, %v", name, executions, r, err)
			}
		}
	}
}

// TestAKillAtAnyStepLeavesOneCopy: whatever step a worker ends at, the one who comes next leaves one copy of the run
// and one segment, that which the run names; and until then the run names a segment that is there.
func TestAKillAtAnyStepLeavesOneCopy(t *testing.T) {
	for failAt := 1; ; failAt++ {
		w := newWorld("a", "b")
		if _, err := w.take(t); err != nil {
			t.Fatal(err)
		}
		later := newWorld("a", "b", "c")
		w.parts, w.sums = later.parts, later.sums
		w.steps, w.failAt = 0, failAt
		_, err := w.take(t)
		if err == nil {
			if failAt < 7 {
				t.Fatalf("there were only %d steps", failAt)
			}
			return
		}
		if !errors.Is(err, errFault) {
			t.Fatal(err)
		}
		if _, ok := w.segments[w.taken.Segment.Name]; !ok {
			t.Fatalf("ended at step %d: the run names a segment that is not there", failAt)
		}
		if _, err := w.take(t); err != nil {
			t.Fatal(err)
		}
		w.one(t, 30)
	}
}

// TestAStaleWorkerLeavesNothing: who has lost the claim removes its own segment, and never one that a later claim
// wrote.
func TestAStaleWorkerLeavesNothing(t *testing.T) {
	w := newWorld("a")
	w.epoch = 4
	if _, err := w.take(t); err != nil {
		t.Fatal(err)
	}
	current := w.taken.Segment.Name
	w.parts, w.sums = newWorld("a", "b").parts, newWorld("a", "b").sums
	w.stale = true
	if _, err := w.take(t); !errors.Is(err, store.ErrClaimLost) || len(w.segments) != 1 || w.segments[current] == nil {
		t.Errorf("%v, and there are %d segments", err, len(w.segments))
	}
	// One that lost it before it begins does nothing.
	w.stale, w.epoch = false, 2
	if _, err := w.take(t); !errors.Is(err, store.ErrClaimLost) || len(w.segments) != 1 || w.segments[current] == nil {
		t.Errorf("%v, and there are %d segments", err, len(w.segments))
	}
}

// TestALostSegmentIsWrittenAgain: a run that is there without its segment is taken in once more.
func TestALostSegmentIsWrittenAgain(t *testing.T) {
	w := newWorld("a")
	for _, lose := range []func(){func() {}, func() { clear(w.segments) },
		func() { w.segments[w.taken.Segment.Name] = []byte("damaged") }} {
		lose()
		if _, err := w.take(t); err != nil {
			t.Fatal(err)
		}
		w.one(t, 10)
	}
}

// TestExecutionsAreCopiedWhenTheirPartsChange, and kept while other things of the run do.
func TestExecutionsAreCopiedWhenTheirPartsChange(t *testing.T) {
	w := newWorld("a", "b")
	if _, err := w.take(t); err != nil || w.stagings != 0 || w.taken.Executions.Table != "" {
		t.Fatalf("nobody asked for them: %v, %+v", err, w.taken.Executions)
	}
	w.executions = true
	if _, err := w.take(t); err != nil || w.stagings != 1 || w.taken.Executions.Table != "t2" || w.puts != 2 {
		t.Fatalf("%v, %+v", err, w.taken.Executions)
	}
	w.name = "another name"
	if _, err := w.take(t); err != nil || w.stagings != 1 || !w.taken.Executions.Unchanged || w.puts != 3 {
		t.Fatalf("another name: %v, %+v", err, w.taken.Executions)
	}
	w.damaged = "b"
	w.name = "yet another"
	if _, err := w.take(t); err != nil || w.stagings != 2 || w.taken.Executions.Unchanged || w.unstaged != 0 {
		t.Fatalf("without a part: %v, %+v", err, w.taken.Executions)
	}
	w.damaged, w.unreadable, w.name = "", "a", "and another"
	if _, err := w.take(t); err != nil || w.stagings != 4 || len(w.taken.Problems) != 1 ||
		w.taken.Executions.Table == "" || w.taken.Seconds.Executions != 20 {
		t.Fatalf("a part of which not all can be read: %v, %q, %+v", err, w.taken.Problems, w.taken.Executions)
	}
	w.stale, w.unreadable, w.name = true, "", "a stale one"
	if _, err := w.take(t); !errors.Is(err, store.ErrClaimLost) || w.stagings != 5 || w.unstaged != 1 {
		t.Fatalf("a claim that is lost: %v, %d, %d", err, w.stagings, w.unstaged)
	}
}
