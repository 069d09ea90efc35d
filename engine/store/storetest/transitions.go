package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"pgregory.net/rapid"
)

func lifecycle(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	epoch, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	warmup, processing, none := engine.PhaseWarmup, engine.PhaseProcessing, engine.PhaseNone
	group := 1
	target := 9
	events, err := s.Transition(ctx,
		store.Transition{RunID: "r1", Epoch: epoch, From: []engine.Status{engine.StatusPrepared},
			To: engine.StatusRunning, StartTime: Noon, Events: []engine.Event{
				{Type: engine.EventStart, Data: engine.EventData{ExpectedWorkers: 2}},
				{Type: engine.EventSetWorkerTarget,
					Data: engine.EventData{Scope: engine.ScopeWorkerGroup, WorkerGroupID: &group, TargetConnections: &target}},
			}})
	Must(t, err)
	if len(events) != 2 || events[0].SequenceID != 1 || events[1].SequenceID != 2 || events[0].EventID == "" ||
		events[0].RunID != "r1" || events[0].Data.Scope != engine.ScopeRun || events[0].CreatedAt.IsZero() {
		t.Errorf("events %+v", events)
	}
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", Epoch: epoch, Phase: &warmup,
		WarmupStartTime: Noon.Add(time.Second),
		WorkerTargets:   map[string]engine.WorkerTarget{"worker-0": {TargetConnections: 3}}})
	Must(t, err)
	more, err := s.Transition(ctx, store.Transition{RunID: "r1", Epoch: epoch, From: []engine.Status{engine.StatusRunning},
		To: engine.StatusCancelling, Phase: &processing, StopReason: engine.StopGuardrail,
		CancellationReason: "Guardrail triggered: CPU",
		WarmupEndTime:      Noon.Add(2 * time.Second), MeasurementEndTime: Noon.Add(3 * time.Second),
		Events: []engine.Event{{Type: engine.EventStop,
			Data: engine.EventData{Scope: engine.ScopeRun, Reason: "guardrail"}}}})
	Must(t, err)
	if len(more) != 1 || more[0].SequenceID != 3 {
		t.Errorf("the third event is %+v", more)
	}
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", Epoch: epoch, To: engine.StatusFailed, Events: more})
	WantError(t, err, store.ErrConflict) // they are there already, by their ids
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", Epoch: epoch, From: []engine.Status{engine.StatusCancelling},
		To: engine.StatusFailed, EndTime: Noon.Add(4 * time.Second)})
	Must(t, err)
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", Epoch: epoch, Phase: &none})
	Must(t, err)

	run, err := s.Run(ctx, "r1")
	Must(t, err)
	if run.Status != engine.StatusFailed || run.Phase != engine.PhaseNone || run.StopReason != engine.StopGuardrail ||
		run.CancellationReason == nil || *run.CancellationReason != "Guardrail triggered: CPU" || run.OwnerEpoch != epoch {
		t.Errorf("run %+v", run)
	}
	for i, at := range []engine.Time{run.StartTime, run.WarmupStartTime, run.WarmupEndTime, run.MeasurementEndTime,
		run.EndTime} {
		if want := Noon.Add(time.Duration(i) * time.Second); !at.Equal(want) {
			t.Errorf("time %d is %v, want %v", i, at, want)
		}
	}
	if len(run.WorkerTargets) != 2 || run.WorkerTargets["worker-0"].TargetConnections != 3 ||
		run.WorkerTargets["worker-1"].TargetConnections != 7 {
		t.Errorf("targets %v", run.WorkerTargets)
	}
	all, err := s.Events(ctx, "r1", 0)
	Must(t, err)
	Same(t, "events", all, append(events, more...))
	after, err := s.Events(ctx, "r1", 2)
	Must(t, err)
	Same(t, "events after 2", after, more)
}

// targetsMerge: a transition changes the targets that it names and no other.
func targetsMerge(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	rate := 12.5
	change := func(targets map[string]engine.WorkerTarget, expected int) engine.Run {
		t.Helper()
		_, err := s.Transition(ctx, store.Transition{RunID: "r1", WorkerTargets: targets, WorkersExpected: expected})
		Must(t, err)
		run, err := s.Run(ctx, "r1")
		Must(t, err)
		return run
	}
	change(map[string]engine.WorkerTarget{"worker-0": {TargetConnections: 3},
		"worker-1": {TargetConnections: 4, TargetQPS: &rate}}, 2)
	run := change(map[string]engine.WorkerTarget{"worker-2": {TargetConnections: 1}}, 3)
	if len(run.WorkerTargets) != 3 || run.WorkerTargets["worker-0"].TargetConnections != 3 || run.WorkersExpected != 3 {
		t.Errorf("after a join: %v, %d expected", run.WorkerTargets, run.WorkersExpected)
	}
	if q := run.WorkerTargets["worker-1"].TargetQPS; q == nil || *q != rate {
		t.Errorf("after a join worker-1 has %+v", run.WorkerTargets["worker-1"])
	}
	// A target replaces the worker's own as a whole.
	run = change(map[string]engine.WorkerTarget{"worker-1": {TargetConnections: 0}}, 0)
	if w := run.WorkerTargets["worker-1"]; len(run.WorkerTargets) != 3 || w.TargetConnections != 0 || w.TargetQPS != nil ||
		run.WorkersExpected != 3 {
		t.Errorf("after a retirement: %v, %d expected", run.WorkerTargets, run.WorkersExpected)
	}
	if run = change(map[string]engine.WorkerTarget{}, 0); len(run.WorkerTargets) != 3 {
		t.Errorf("no change left %v", run.WorkerTargets)
	}
}

func transitionConflict(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", From: []engine.Status{engine.StatusRunning},
		To:     engine.StatusStopping,
		Events: []engine.Event{{Type: engine.EventStop}}})
	WantError(t, err, store.ErrConflict)
	events, err := s.Events(ctx, "r1", 0)
	Must(t, err)
	if len(events) != 0 {
		t.Errorf("a refused transition left events: %v", events)
	}
}

func transitionForbidden(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	// From allows it, the life of a run does not.
	_, err := s.Transition(ctx, store.Transition{RunID: "r1", From: engine.Statuses(), To: engine.StatusCompleted,
		Events: []engine.Event{{Type: engine.EventStop}}})
	WantError(t, err, store.ErrConflict)
	run, err := s.Run(ctx, "r1")
	Must(t, err)
	if run.Status != engine.StatusPrepared {
		t.Errorf("status %s", run.Status)
	}
}

// transitionRace proves that of two contradicting transitions exactly one wins.
func transitionRace(t *testing.T, s Store) {
	ctx := t.Context()
	for round := range 10 {
		id := fmt.Sprintf("r%d", round)
		Create(t, s, id)
		Move(t, s, id, engine.StatusRunning)
		errs := make([]error, 4)
		var wait sync.WaitGroup
		for i := range errs {
			to := []engine.Status{engine.StatusStopping, engine.StatusCancelling}[i%2]
			wait.Go(func() {
				_, errs[i] = s.Transition(ctx, store.Transition{RunID: id, From: []engine.Status{engine.StatusRunning}, To: to,
					Events: []engine.Event{{Type: engine.EventStop}}})
			})
		}
		wait.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, store.ErrConflict) {
				t.Errorf("the loser got %v", err)
			}
		}
		events, err := s.Events(ctx, id, 0)
		Must(t, err)
		if won != 1 || len(events) != 1 {
			t.Fatalf("%d won, %d events, want one", won, len(events))
		}
	}
}

// transitionProperty compares random sequences of transitions with engine.Status.
func transitionProperty(t *testing.T, s Store) {
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		id := fmt.Sprintf("run-%d", runs)
		Create(t, s, id)
		model := engine.StatusPrepared
		sequence := int64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			to := rapid.SampledFrom(engine.Statuses()).Draw(rt, "to")
			from := rapid.SliceOfDistinct(rapid.SampledFrom(engine.Statuses()),
				func(s engine.Status) engine.Status { return s }).Draw(rt, "from")
			events := make([]engine.Event, rapid.IntRange(0, 3).Draw(rt, "events"))
			for i := range events {
				events[i].Type = engine.EventSetPhase
			}
			got, err := s.Transition(context.Background(), store.Transition{RunID: id, From: from, To: to, Events: events})
			allowed := (len(from) == 0 || slices.Contains(from, model)) && (to == model || model.CanBecome(to))
			switch {
			case allowed && err != nil:
				rt.Fatalf("%s → %s: %v", model, to, err)
			case !allowed && !errors.Is(err, store.ErrConflict):
				rt.Fatalf("%s → %s (from %v): got %v, want a conflict", model, to, from, err)
			case allowed:
				model = to
				for _, e := range got {
					if sequence++; e.SequenceID != sequence {
						rt.Fatalf("sequence id %d, want %d", e.SequenceID, sequence)
					}
				}
			}
			run, err := s.Run(context.Background(), id)
			if err != nil || run.Status != model {
				rt.Fatalf("status %s, %v, want %s", run.Status, err, model)
			}
		}
	})
}

func fencing(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	old, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	Must(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Epoch: old, TotalOps: 10}))
	now, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	if now <= old {
		t.Fatalf("epoch %d after %d", now, old)
	}
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", Epoch: old, To: engine.StatusRunning})
	WantError(t, err, store.ErrFenced)
	err = s.SaveTick(ctx, store.Tick{RunID: "r1", Epoch: old, TotalOps: 99,
		Workers: []store.WorkerRow{{WorkerID: "w", Status: engine.WorkerReady}},
		Logs:    []engine.LogEntry{{Seq: 1, Level: engine.LogInfo, Message: "late"}}})
	WantError(t, err, store.ErrFenced)
	run, err := s.Run(ctx, "r1")
	Must(t, err)
	workers, err := s.Workers(ctx, "r1")
	Must(t, err)
	logs, err := s.Logs(ctx, "r1", 0, "", 0)
	Must(t, err)
	if run.Status != engine.StatusPrepared || run.TotalOps != 10 || len(workers) != 0 || len(logs) != 0 {
		t.Errorf("a fenced writer changed the run: %+v, %v, %v", run, workers, logs)
	}
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", Epoch: now, To: engine.StatusRunning})
	Must(t, err)
}

func eventsUnderConcurrency(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 5 {
				if _, err := s.Transition(ctx, store.Transition{RunID: "r1",
					Events: []engine.Event{{Type: engine.EventSetPhase}, {Type: engine.EventSetPhase}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	events, err := s.Events(ctx, "r1", 0)
	Must(t, err)
	if len(events) != 80 {
		t.Fatalf("%d events, want 80", len(events))
	}
	for i, e := range events {
		if e.SequenceID != int64(i+1) {
			t.Fatalf("event %d has sequence id %d", i, e.SequenceID)
		}
	}
}

func eventsAreChecked(t *testing.T, s Store) {
	Create(t, s, "r1")
	for name, e := range map[string]engine.Event{
		"unknown type":           {Type: "PAUSE"},
		"unknown scope":          {Type: engine.EventStop, Data: engine.EventData{Scope: "PLANET"}},
		"worker without an id":   {Type: engine.EventStop, Data: engine.EventData{Scope: engine.ScopeWorker}},
		"group without a number": {Type: engine.EventStop, Data: engine.EventData{Scope: engine.ScopeWorkerGroup}},
	} {
		if _, err := s.Transition(t.Context(),
			store.Transition{RunID: "r1", To: engine.StatusRunning, Events: []engine.Event{e}}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	run, err := s.Run(t.Context(), "r1")
	Must(t, err)
	if run.Status != engine.StatusPrepared {
		t.Errorf("a refused event left the run %s", run.Status)
	}
}

// leases holds that only what is expired, or one's own, can be claimed.
func leases(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	// A row that nobody has claimed has the lease of its last change.
	_, err := s.Claim(ctx, store.Claim{RunID: "r1", Owner: "a"})
	WantError(t, err, store.ErrLeaseHeld)
	_, err = s.Claim(ctx, store.Claim{RunID: "none", Owner: "a"})
	WantError(t, err, store.ErrNotFound)
	_, err = s.Transition(ctx, store.Transition{RunID: "r1", From: []engine.Status{engine.StatusPrepared},
		To: engine.StatusRunning, Owner: "a"})
	Must(t, err)
	_, err = s.Claim(ctx, store.Claim{RunID: "r1", Owner: "b", Reclaim: true})
	WantError(t, err, store.ErrLeaseHeld)
	_, err = s.Claim(ctx, store.Claim{RunID: "r1", Owner: "a"})
	WantError(t, err, store.ErrLeaseHeld)
	first, err := s.Claim(ctx, store.Claim{RunID: "r1", Owner: "a", Reclaim: true})
	Must(t, err)
	second, err := s.Claim(ctx, store.Claim{RunID: "r1", Owner: "a", Reclaim: true})
	Must(t, err)
	if second <= first {
		t.Errorf("epoch %d after %d", second, first)
	}
	WantError(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Epoch: first}), store.ErrFenced)
	Must(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Epoch: second}))
	if run, err := s.Run(ctx, "r1"); err != nil || run.Owner != "a" {
		t.Errorf("the run is %q's, %v", run.Owner, err)
	}
	Must(t, s.RenewLeases(ctx, "a", []string{"r1", "none"}))
	expired, err := s.ExpiredRuns(ctx)
	Must(t, err)
	if live, err := s.LiveRuns(ctx); err != nil || len(live) != 1 || len(expired) != 0 {
		t.Errorf("%d live, %d of them expired, %v", len(live), len(expired), err)
	}
}
