package results

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
)

func openPart(ctx context.Context, kept objects.Store, runID, name string) (*record.Part, error) {
	file, err := kept.Open(ctx, runID, name)
	if err != nil {
		return nil, fmt.Errorf("opening part %s: %w", name, err)
	}
	return record.ReadPart(file, name)
}

// kindOf reads the name of a kind; one of a later version is some statement.
func kindOf(name string) engine.Kind {
	kind, err := engine.ParseKind(name)
	if err != nil {
		return engine.KindGenericSQL
	}
	return kind
}
