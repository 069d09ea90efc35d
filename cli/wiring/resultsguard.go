package wiring

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// Guard bounds the time and the memory of the readers of a results database from its machine, until ctx ends.
// dedicated: the Postgres serves results alone.
func (f ResultsFlags) Guard(ctx context.Context, dedicated bool, log zerolog.Logger) error {
	owner, reader, err := f.urls()
	if err != nil {
		return err
	}
	if owner == "" {
		return engine.InvalidField("--results-database-url", "is required",
			"the results database as its owner, by its unix socket or loopback; and --results-reader-url as its reader")
	}
	db, err := derived.OpenGuard(ctx, owner, reader)
	for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		log.Warn().Err(err).Msg("the results database is away; it is tried again")
		select {
		case <-ctx.Done():
		case <-time.After(superviseRetry):
		}
		db, err = derived.OpenGuard(ctx, owner, reader)
	}
	if ctx.Err() != nil {
		err = nil
	}
	if db == nil {
		return err
	}
	defer db.Close()
	log.Info().Bool("dedicated", dedicated).Msg("the readers of the results database are supervised, their memory too")
	return db.Supervise(ctx, derived.Supervision{Own: dedicated, Guard: true, Log: log})
}
