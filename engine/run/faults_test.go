package run_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestARestartEndsTheRunAndKeepsItsRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 60; sc.Workload.WarmupSeconds = 0 })
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Ops.Total > 0 && p.Timing.ElapsedDisplaySeconds > 2 })
	f.kill()
	// The node has ended its run workers in order; a process that is killed does not come to write what they counted.
	counts, _ := filepath.Glob(filepath.Join(f.dir, "spool", "*", "*", "counts.json"))
	for _, path := range counts {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	killed := time.Now()
	before, err := f.store.Run(t.Context(), run.RunID)
	if err != nil || before.Status != engine.StatusRunning {
		t.Fatalf("the killed server left %s, %v", before.Status, err)
	}
	f.start()
	d := f.settled(run.RunID)
	if d.Status != engine.StatusFailed || d.Phase != engine.PhaseNone || d.CancellationReason == nil ||
		!strings.HasPrefix(*d.CancellationReason, "The server restarted") {
		t.Fatalf("%s/%q %v", d.Status, d.Phase, d.CancellationReason)
	}
	t.Log(*d.CancellationReason)
	sum := f.wait(run.RunID)
	if sum.Operations == 0 || sum.Validity != engine.VerdictDegraded || sum.Accounting.Balanced ||
		sum.Accounting.Recorded != sum.Operations {
		t.Fatalf("%d operations, %+v, %+v", sum.Operations, sum.ValidityDetail, sum.Accounting)
	}
	found := false
	for _, c := range sum.ValidityDetail.Causes {
		found = found || (c.Cause == "incomplete_record" && !c.To.Before(killed) && c.From.Before(killed))
	}
	if !found || len(d.Artifacts) == 0 {
		t.Fatalf("%d artifacts, causes %+v", len(d.Artifacts), sum.ValidityDetail.Causes)
	}
	if left, _ := filepath.Glob(filepath.Join(f.dir, "spool", "*", "*", "*")); len(left) > 0 {
		t.Fatalf("acknowledged parts are left in the spool: %v", left)
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); !engine.HasCode(err, engine.CodeConflict) {
		t.Fatalf("stopping it gave %v", err)
	}
}

// A server that was killed while it computed figures computes them again at its next start.
func TestARestartFinishesTheProcessing(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(nil)
	want := f.wait(run.RunID)
	f.stop()
	conn, err := pgx.Connect(t.Context(), f.control)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range []string{"UPDATE run_status SET phase = 'PROCESSING' WHERE run_id = $1",
		"UPDATE test_results SET figures = NULL, validity = NULL WHERE test_id = $1"} {
		if _, err := conn.Exec(t.Context(), sql, run.RunID); err != nil {
			t.Fatal(err)
		}
	}
	f.start()
	f.settled(run.RunID)
	got := f.wait(run.RunID)
	// What the store remembers of the end may be a millisecond off, which divides the record otherwise: the sums are added
	// in another order, and their last digit differs.
	before, after := *want.LatencyMs, *got.LatencyMs
	for _, of := range [][2]*float64{{&before.Avg, &after.Avg}, {&before.StdDev, &after.StdDev}} {
		if math.Abs(*of[0]-*of[1]) < 1e-9**of[0] {
			*of[1] = *of[0]
		}
	}
	if got.Status != engine.StatusCompleted || got.Operations != want.Operations ||
		got.Accounting.Started != want.Accounting.Started || !got.Accounting.Balanced || after != before {
		t.Fatalf("%s %+v, before %+v\n%+v, before %+v", got.Status, got.Accounting, want.Accounting, after, before)
	}
}

func TestAStartWhoseAnswerIsLostLeavesNoRunWithoutOwner(t *testing.T) {
	f := newFixture(t)
	flaky := &faulty{}
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { flaky.ControlStore = s; return flaky }
	f.start()
	created, err := f.svc.Create(t.Context(), f.scenario(nil), engine.Actor{Name: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	flaky.loseReply.Store(1)
	if _, err := f.svc.Start(t.Context(), created.RunID, "tester"); !engine.HasCode(err, engine.CodeUnavailable) {
		t.Fatalf("start gave %v", err)
	}
	d := f.settled(created.RunID)
	if d.Status != engine.StatusFailed || !strings.HasPrefix(*d.CancellationReason, "The control store went away") {
		t.Fatalf("%s %v", d.Status, d.CancellationReason)
	}
}

// faulty is a control store that goes away, and that can lose answers.
type faulty struct {
	enginerun.ControlStore
	down      atomic.Bool
	loseReply atomic.Int32 // how many transitions are applied without an answer
}

func (s *faulty) gone(op string) error {
	if s.down.Load() {
		return fmt.Errorf("%s: %w", op, store.ErrUnavailable)
	}
	return nil
}

func (s *faulty) Transition(ctx context.Context, t store.Transition) ([]engine.Event, error) {
	if err := s.gone("changing run"); err != nil {
		return nil, err
	}
	events, err := s.ControlStore.Transition(ctx, t)
	if err == nil && s.loseReply.Add(-1) >= 0 {
		return nil, fmt.Errorf("reading the answer: %w", store.ErrUnavailable)
	}
	return events, err
}

func (s *faulty) SaveTick(ctx context.Context, t store.Tick) error {
	if err := s.gone("saving a second"); err != nil {
		return err
	}
	return s.ControlStore.SaveTick(ctx, t)
}

func (s *faulty) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	if err := s.gone("saving a result"); err != nil {
		return err
	}
	return s.ControlStore.SaveResult(ctx, rows...)
}

func (s *faulty) SaveArtifact(ctx context.Context, epoch int64, a engine.Artifact) error {
	if err := s.gone("saving an artifact"); err != nil {
		return err
	}
	return s.ControlStore.SaveArtifact(ctx, epoch, a)
}

func (s *faulty) Run(ctx context.Context, id string) (engine.Run, error) {
	if err := s.gone("reading run"); err != nil {
		return engine.Run{}, err
	}
	return s.ControlStore.Run(ctx, id)
}

func TestAStoreOutageDelaysOnlyTheWriting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	flaky := &faulty{}
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { flaky.ControlStore = s; return flaky }
	f.start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.WarmupSeconds = 0.5; sc.Workload.DurationSeconds = 60 })
	f.until(run.RunID, phase(engine.PhaseWarmup))
	flaky.down.Store(true)
	// The phase changes although the store is away, and STOP reaches the workers.
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 0 })
	begin := time.Now()
	stopped, err := f.svc.Stop(t.Context(), run.RunID, "tester")
	if err != nil || stopped.Status == engine.StatusRunning {
		t.Fatalf("stop gave %s, %v", stopped.Status, err)
	}
	f.until(run.RunID, func(p *engine.LiveState) bool { return p.Status == engine.StatusCancelled })
	if took := time.Since(begin); took > 8*time.Second {
		t.Fatalf("the workers left %v after STOP", took)
	}
	flaky.down.Store(false)
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCancelled || !sum.Accounting.Balanced {
		t.Fatalf("%s %+v", sum.Status, sum.Accounting)
	}
	d := f.detail(run.RunID)
	if d.Status != engine.StatusCancelled || d.Phase != engine.PhaseNone || d.WarmupEndTime.IsZero() ||
		partsOf(d) != 2 {
		t.Fatalf("stored: %s/%q, measured from %v, %d artifacts", d.Status, d.Phase, d.WarmupEndTime, len(d.Artifacts))
	}
	checkEvents(t, d.Events)
}

func TestAnAnswerThatWasLostIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	flaky := &faulty{}
	f.wrap = func(s enginerun.ControlStore) enginerun.ControlStore { flaky.ControlStore = s; return flaky }
	f.start()
	run := f.run(nil)
	flaky.loseReply.Store(100)
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCompleted {
		t.Fatalf("%s %v", sum.Status, sum.CancellationReason)
	}
	d := f.detail(run.RunID)
	// START, two phases, STOP, and the first target of each of two run workers.
	if d.Status != engine.StatusCompleted || len(d.Events) != 6 {
		t.Fatalf("%s with %d events", d.Status, len(d.Events))
	}
	checkEvents(t, d.Events)
}

func checkEvents(t *testing.T, events []engine.Event) {
	t.Helper()
	stops := 0
	for i, e := range events {
		if e.SequenceID != int64(i+1) {
			t.Fatalf("event %d has the sequence id %d", i, e.SequenceID)
		}
		if e.Type == engine.EventStop {
			stops++
		}
	}
	if stops != 1 {
		t.Fatalf("%d STOP events in %+v", stops, events)
	}
}

// trapping is a host whose workload streams trap after a few batches.
type trapping struct{ plugin.Host }

func (h trapping) Workload(ctx context.Context, ref string) (plugin.Workload, error) {
	w, err := h.Host.Workload(ctx, ref)
	return trappingWorkload{w}, err
}

type trappingWorkload struct{ plugin.Workload }

func (w trappingWorkload) Open(ctx context.Context, req plugin.OpenRequest,
	statements []engine.Statement) (plugin.Stream, error) {
	s, err := w.Workload.Open(ctx, req, statements)
	if err != nil {
		return nil, err
	}
	return &trappingStream{Stream: s, left: 5}, nil
}

type trappingStream struct {
	plugin.Stream
	left int
}

func (s *trappingStream) Fill(b *plugin.Batch, n int) error {
	if s.left--; s.left < 0 {
		return fmt.Errorf("%w: unreachable executed", plugin.ErrTrapped)
	}
	return s.Stream.Fill(b, n)
}

func TestAPluginThatTrapsFailsItsRunOnly(t *testing.T) {
	f := newFixture(t)
	f.plugins = trapping{f.plugins}
	f.start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 60 })
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusFailed || !strings.Contains(*sum.CancellationReason, "trapped") ||
		!sum.Accounting.Balanced {
		t.Fatalf("%s %v %+v", sum.Status, *sum.CancellationReason, sum.Accounting)
	}
	t.Log(*sum.CancellationReason)
}

func TestClosingTheServerEndsItsRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) { sc.Workload.DurationSeconds = 60 })
	f.until(run.RunID, phase(engine.PhaseMeasurement))
	f.stop()
	d, err := f.store.Run(t.Context(), run.RunID)
	if err != nil || d.Status != engine.StatusCancelled || d.Phase != engine.PhaseNone ||
		*d.CancellationReason != "The server was shut down" {
		t.Fatalf("%s/%q %v, %v", d.Status, d.Phase, d.CancellationReason, err)
	}
}
