package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

// TestASearchSaysHowOftenItsAnswerHeld: "confirmed" says less than how many of the steps at that level held.
func TestASearchSaysHowOftenItsAnswerHeld(t *testing.T) {
	step := func(level int, outcome engine.StepOutcome) engine.FindMaxStep {
		return engine.FindMaxStep{TotalTargetConnections: level, Outcome: outcome}
	}
	eight, four := 8.0, 4.0
	limit := 8
	for want, r := range map[string]engine.FindMaxResult{
		"held 1 of 3 times": {History: []engine.FindMaxStep{step(4, engine.OutcomeStable), step(8, engine.OutcomeStable),
			step(8, engine.OutcomeDegraded), step(8, engine.OutcomeDegraded)}},
		"held 2 of 2 times": {History: []engine.FindMaxStep{step(8, engine.OutcomeStable), step(8, engine.OutcomePlateau)}},
		"held once, not repeated": {History: []engine.FindMaxStep{step(8, engine.OutcomeStable),
			step(12, engine.OutcomeDegraded)}},
		"held 2 of 2 times, 1 of 3 searches reach it": {
			History: []engine.FindMaxStep{step(8, engine.OutcomeStable), step(8, engine.OutcomeStable)},
			Spread:  &engine.FindMaxSpread{Requested: 3, Finished: 2, Found: 2},
			Repetitions: []engine.FindMaxRepetition{{Repetition: 1, Level: &eight}, {Repetition: 2, Level: &four},
				{Repetition: 3}},
		},
	} {
		r.Unit, r.Found, r.MaxConnections = engine.FindMaxConnections, true, &limit
		if got := confirmationText(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		var out bytes.Buffer
		if err := Summary(&out, &engine.Summary{Status: engine.StatusCompleted, FindMax: &r}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "8 connections, "+want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestNobodyCallsARunWithoutOperationsValid: a target that never ran has no figures, so they are not valid either.
func TestNobodyCallsARunWithoutOperationsValid(t *testing.T) {
	r := matrix.Report{MatrixRun: engine.MatrixRun{Name: "one", Labels: []string{"a"}},
		Targets: []matrix.TargetReport{{Label: "a", Status: engine.StatusFailed}}}
	var out bytes.Buffer
	if err := MatrixJUnit(&out, r, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `message="none: the run ended before its measurement" type="validity"`) {
		t.Errorf("the figures of a run without any are valid:\n%s", out.String())
	}
}

// TestARunWhoseCountsAreLostIsAccountedForAllTheSame: a server that was killed did not tell what its run workers began;
// what they recorded is there.
func TestARunWhoseCountsAreLostIsAccountedForAllTheSame(t *testing.T) {
	s := &engine.Summary{Status: engine.StatusFailed, Validity: engine.VerdictDegraded}
	s.Accounting.Recorded, s.Operations = 900, 800
	var out bytes.Buffer
	if err := Summary(&out, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "validity") || !strings.Contains(out.String(), "DEGRADED") {
		t.Errorf("neither accounting nor verdict:\n%s", out.String())
	}
}
