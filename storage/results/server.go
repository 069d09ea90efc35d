package results

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine/results/record"
)

// ReadServer gives what the server of a run's target was seen to do to a reader, in order, and says how many parts
// there are.
func (f *Results) ReadServer(ctx context.Context, runID string, into record.ServerReader) (parts int, err error) {
	names, err := f.objects.Names(ctx, runID)
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	for _, name := range names {
		if !record.IsServerPart(name) {
			continue
		}
		file, err := f.objects.Open(ctx, runID, name)
		if err != nil {
			return parts, fmt.Errorf("opening %s: %w", name, err)
		}
		err = record.ReadServer(file, name, into)
		_ = file.Close() // only read
		if err != nil {
			return parts, err
		}
		parts++
	}
	return parts, nil
}
