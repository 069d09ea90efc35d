package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// steps are the judged steps of the search.
func (v *virtualServer) steps() []engine.FindMaxStep {
	v.t.Helper()
	state, err := v.store.FindMax(v.t.Context(), "run-1")
	if err != nil {
		v.t.Fatal(err)
	}
	return state.Steps
}

// TestAStepIsJudgedWhenAllHaveMeasuredIt: one whose run worker is not heard to its end says nothing about its level,
// which is measured again: with those who have the load by then.
func TestAStepIsJudgedWhenAllHaveMeasuredIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := redistributions()["a step of a search"].sc
		sc.FindMax.StepDurationSeconds = 10
		v.closed = slots(64, 10*time.Millisecond)
		v.start(sc)
		v.until("worker-1")
		v.disconnect("worker-1")
		silent := time.Now()
		v.wait(protocol.ReassignAfter + 5*time.Second)
		for _, s := range v.steps() {
			if s.Level() > 4 && s.Outcome == engine.OutcomeStable && s.StepEndTime.After(silent.Add(time.Second)) {
				t.Errorf("a step at %v held while the half of its load was not heard of\n%s", s.Level(), v.store.text())
			}
		}
		v.wait(2 * time.Minute)
		if !strings.Contains(v.store.text(), "is measured again: nothing was heard of worker-1 to its end") ||
			!slices.ContainsFunc(v.steps(), func(s engine.FindMaxStep) bool {
				return s.Level() == 6 && s.Outcome == engine.OutcomeStable
			}) {
			t.Error(v.store.text())
		}
	})
}

// TestALevelThatNobodyBearsDoesNotHold: where no run worker can join, the connections that it would have had are
// missing, and the answer is what was borne.
func TestALevelThatNobodyBearsDoesNotHold(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := redistributions()["a step of a search"].sc
		sc.FindMax.StepDurationSeconds = 10
		v.closed = slots(64, 10*time.Millisecond)
		v.start(sc)
		v.store.rows(0, true)
		v.wait(5 * time.Minute)
		steps := v.live().FindMax.Steps // nothing is stored behind the row that is not taken
		if len(steps) == 0 || slices.ContainsFunc(steps, func(s engine.FindMaxStep) bool {
			return s.Level() > 4 && s.Outcome == engine.OutcomeStable
		}) || !slices.ContainsFunc(steps, func(s engine.FindMaxStep) bool {
			return strings.Contains(s.StopReason, "were not open")
		}) {
			t.Errorf("%+v\n%s", steps, v.store.text())
		}
		v.store.rows(0, false)
		if r := v.figures().FindMax; r == nil || r.MaxConnections == nil || *r.MaxConnections != 4 {
			t.Errorf("%+v\n%s", r, v.store.text())
		}
	})
}
