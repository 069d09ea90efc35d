package wiring

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
)

// The names of a server's own databases, as sentences have them.
const (
	controlStore    = "control store"
	resultsDatabase = "results database"
)

// identityInterval is how often it is asked again what the own databases are: they may have been restored or moved.
const identityInterval = time.Minute

// ownDatabases are those in which no connection of a user may land, as they were when they were asked last.
type ownDatabases struct {
	mu    sync.Mutex
	known map[string]engine.OwnDatabase
	ask   map[string]func(context.Context) (engine.OwnDatabase, error)
}

// all are those that are known.
func (o *ownDatabases) all() []engine.OwnDatabase {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]engine.OwnDatabase, 0, len(o.known))
	for _, what := range slices.Sorted(maps.Keys(o.known)) {
		list = append(list, o.known[what])
	}
	return list
}

func (o *ownDatabases) set(what string, own engine.OwnDatabase) {
	own.What = what
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[string]engine.OwnDatabase{}
	}
	o.known[what] = own
}

// keep asks what a database is, and goes on asking.
func (o *ownDatabases) keep(ctx context.Context, what string,
	ask func(context.Context) (engine.OwnDatabase, error)) error {
	own, err := ask(ctx)
	if err != nil {
		return err
	}
	o.set(what, own)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ask == nil {
		o.ask = map[string]func(context.Context) (engine.OwnDatabase, error){}
	}
	o.ask[what] = ask
	return nil
}

// follow asks again until ctx ends. What cannot be asked now stays what it was.
func (o *ownDatabases) follow(ctx context.Context, log zerolog.Logger) {
	tick := time.NewTicker(identityInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		o.mu.Lock()
		again := maps.Clone(o.ask)
		o.mu.Unlock()
		for what, ask := range again {
			asking, cancel := context.WithTimeout(ctx, 10*time.Second)
			own, err := ask(asking)
			cancel()
			if err != nil {
				log.Debug().Err(err).Str("database", what).Msg("what the database is cannot be asked now")
				continue
			}
			o.set(what, own)
		}
	}
}
