package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

func findMax(t *testing.T, s Store) {
	ctx := t.Context()
	Create(t, s, "r1")
	if state, err := s.FindMax(ctx, "r1"); err != nil || state != nil {
		t.Fatalf("a run without a search has %+v, %v", state, err)
	}
	if _, err := s.FindMax(ctx, "nobody"); err == nil {
		t.Error("a run that is not there has a search")
	}
	epoch, err := s.TakeOver(ctx, "r1")
	Must(t, err)
	ms, rate, gain := 1.5, 250.0, -3.5
	step := func(n int) engine.FindMaxStep {
		return engine.FindMaxStep{
			StepNumber:             n,
			StepID:                 fmt.Sprintf("step-%d", n),
			Repetition:             n,
			Stage:                  engine.StageStepping,
			TotalTargetConnections: 4 * n,
			StepStartTime:          engine.At(Noon),
			StepEndTime:            engine.At(Noon.Add(time.Second)),
			StepDurationSeconds:    1,
			TotalQueries:           100,
			QPS:                    100,
			P50LatencyMs:           &ms,
			P95LatencyMs:           &ms,
			P99LatencyMs:           &ms,
			ErrorCount:             1,
			DroppedCount:           2,
			ErrorRate:              new(0.01),
			QPSVsPriorPct:          &gain,
			P95VsBaselinePct:       &gain,
			Outcome:                engine.OutcomeStable,
			QPSError:               0.01 * float64(n),
			LateSteps:              3 - n,
			StoodStillMs:           12.5 * float64(3-n),
		}
	}
	second := step(2)
	second.TotalTargetConnections, second.TargetQPS, second.Outcome, second.StopReason = 0, &rate, engine.OutcomePlateau,
		"It no longer grew. \x00"
	second.P50LatencyMs, second.P95LatencyMs, second.P99LatencyMs, second.QPSVsPriorPct, second.QueueDetected = nil, nil,
		nil, nil, true
	state := engine.FindMaxState{Unit: engine.FindMaxConnections, CurrentStep: 2, TargetWorkers: 8,
		Status: engine.StageStepping, UpperBound: 90, LastUpdated: engine.At(Noon)}
	state.Steps = []engine.FindMaxStep{step(1)}
	p := store.FindMaxProgress{RunID: "r1", Epoch: epoch, State: state, Steps: []engine.FindMaxStep{step(1)}}
	Must(t, s.SaveFindMax(ctx, p))
	Must(t, s.SaveFindMax(ctx, p))
	p.State.CurrentStep, p.State.Steps, p.Steps = 3, []engine.FindMaxStep{step(1), second}, []engine.FindMaxStep{second}
	Must(t, s.SaveFindMax(ctx, p))
	got, err := s.FindMax(ctx, "r1")
	Must(t, err)
	want := p.State
	second.StopReason = "It no longer grew. "
	want.Steps = []engine.FindMaxStep{step(1), second}
	Same(t, "search", *got, want)

	// A step in which nothing was executed has no share of errors; an earlier version stored 0.
	idle := step(8)
	idle.TotalQueries, idle.ErrorCount, idle.ErrorRate = 0, 0, new(0.0)
	p.State.Steps, p.Steps = []engine.FindMaxStep{step(1), second, idle}, []engine.FindMaxStep{idle}
	Must(t, s.SaveFindMax(ctx, p))
	got, err = s.FindMax(ctx, "r1")
	Must(t, err)
	if idle.ErrorRate = nil; len(got.Steps) == 3 {
		Same(t, "idle step", got.Steps[2], idle)
	} else {
		t.Errorf("%d steps", len(got.Steps))
	}
	want = *got

	// A second of the run keeps the state too, and no step.
	state = p.State
	state.StepElapsed, state.Steps = 4.5, []engine.FindMaxStep{step(1), second, step(7)}
	Must(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Epoch: epoch, FindMax: &state}))
	got, err = s.FindMax(ctx, "r1")
	Must(t, err)
	want.StepElapsed = 4.5
	Same(t, "search of a second", *got, want)
	Must(t, s.SaveTick(ctx, store.Tick{RunID: "r1", Epoch: epoch}))
	got, err = s.FindMax(ctx, "r1")
	Must(t, err)
	Same(t, "search after a second without one", *got, want)

	p.Epoch--
	WantError(t, s.SaveFindMax(ctx, p), store.ErrFenced)

	answer := &engine.FindMaxResult{Unit: engine.FindMaxConnections, Found: true, MaxConnections: &step2Connections,
		QPS: new(9.0), Steps: 2, Reason: "It sustains 8.", History: want.Steps}
	for i := range answer.History { // what goes on with a search is not in its answer
		answer.History[i].QPSError, answer.History[i].LateSteps, answer.History[i].StoodStillMs = 0, 0, 0
	}
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", FindMax: answer}))
	Must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r1", RunID: "r1", FailureReason: "something else"}))
	rows, err := s.Results(ctx, "r1")
	Must(t, err)
	Same(t, "answer", rows[0].FindMax, answer)
}

var step2Connections = 8
