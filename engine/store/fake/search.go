package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// searchState is the state of a search as it is stored, without its steps.
func searchState(state engine.FindMaxState) ([]byte, error) {
	return document("state of the search", store.KeepSearch(state))
}

// SaveFindMax implements run.ControlStore.
func (s *Store) SaveFindMax(ctx context.Context, p store.FindMaxProgress) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.fenced(p.RunID, p.Epoch)
	if err != nil {
		return err
	}
	state, err := searchState(p.State)
	if err != nil {
		return err
	}
	steps := map[int][]byte{}
	for _, step := range p.Steps {
		step.StepID, step.Repetition, step.StopReason = cmp.Or(step.StepID, newID()), max(step.Repetition, 1),
			store.CleanText(step.StopReason)
		if steps[step.StepNumber], err = document("step of the search", step); err != nil {
			return err
		}
	}
	for n, step := range steps {
		if r.steps[n] == nil {
			r.steps[n] = step
		}
	}
	r.search = state
	r.touch()
	return nil
}

// FindMax implements recovery.Store.
func (s *Store) FindMax(ctx context.Context, runID string) (*engine.FindMaxState, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, err := s.find(runID)
	if err != nil || r.search == nil {
		return nil, err
	}
	state, err := read[store.KeptSearch]("state of the search", r.search)
	if err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(r.steps)) {
		step, err := read[engine.FindMaxStep]("step of the search", r.steps[n])
		if err != nil {
			return nil, err
		}
		state.Complete(&step)
		state.Steps = append(state.Steps, step)
	}
	return &state.FindMaxState, nil
}
