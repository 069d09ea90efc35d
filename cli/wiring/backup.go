package wiring

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/storage/results"
)

// OpenRecord opens the files of runs of a data directory; done closes them.
func (f StoreFlags) OpenRecord(ctx context.Context, dir string, log zerolog.Logger) (_ *results.Results, done func(),
	err error) {
	s := &Services{DataDir: dir, Log: log}
	if err := s.openResults(ctx, f); err != nil {
		return nil, nil, err
	}
	return s.Results, func() { _ = s.Close(context.WithoutCancel(ctx)) }, nil
}
