package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// maxParameterRows is how many executions are read of one run: far more than its run workers may keep.
const maxParameterRows = 200_000

// Parameters reads what these parts of a run hold of the parameters of single executions, of all run workers one after
// another, and how many executions these had no room for.
func (f *Results) Parameters(ctx context.Context, runID string, parts []engine.Artifact) (all []params.KeptExecution,
	left int64, err error) {
	for _, a := range parts {
		if a.Kind != record.KindParams {
			continue
		}
		kept, without, err := f.bindsOf(ctx, runID, a.Name)
		if err != nil {
			return nil, 0, err
		}
		left += without
		if all = append(all, kept...); len(all) > maxParameterRows {
			return nil, 0, fmt.Errorf("reading parameters of run %s: there are more than %d executions", runID, maxParameterRows)
		}
	}
	return all, left, nil
}

func (f *Results) bindsOf(ctx context.Context, runID, name string) ([]params.KeptExecution, int64, error) {
	file, err := f.objects.Open(ctx, runID, name)
	if err != nil {
		return nil, 0, fmt.Errorf("opening parameters %s: %w", name, err)
	}
	defer func() { _ = file.Close() }() // only read
	return params.Read(file, name)
}
