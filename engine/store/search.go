package store

import "github.com/loadstone-db/loadstone/engine"

// KeptSearch is the state of a search as it is stored: without its steps, and with what those need beside their rows by
// their numbers.
type KeptSearch struct {
	engine.FindMaxState
	StepErrors map[int]float64 `json:"step_errors,omitempty"`
	StepsLate  map[int]int     `json:"steps_late,omitempty"`
	StepsStill map[int]float64 `json:"steps_stood_still_ms,omitempty"`
}

// KeepSearch makes it of a state with all its steps.
func KeepSearch(state engine.FindMaxState) KeptSearch {
	kept := KeptSearch{FindMaxState: state, StepErrors: map[int]float64{}, StepsLate: map[int]int{},
		StepsStill: map[int]float64{}}
	for _, step := range state.Steps {
		if step.QPSError > 0 {
			kept.StepErrors[step.StepNumber] = step.QPSError
		}
		if step.LateSteps > 0 {
			kept.StepsLate[step.StepNumber] = step.LateSteps
		}
		if step.StoodStillMs > 0 {
			kept.StepsStill[step.StepNumber] = step.StoodStillMs
		}
	}
	kept.Steps = nil
	return kept
}

// Complete gives a step that was read what its row does not have.
func (k *KeptSearch) Complete(step *engine.FindMaxStep) {
	step.QPSError, step.LateSteps = k.StepErrors[step.StepNumber], k.StepsLate[step.StepNumber]
	step.StoodStillMs = k.StepsStill[step.StepNumber]
	step.Upgrade()
}
