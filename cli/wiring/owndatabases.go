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
	// shared is the results database as another server of the store has told it.
	shared *engine.OwnDatabase
	ask    map[string]func(context.Context) (engine.OwnDatabase, error)
}

// all are those that are known.
func (o *ownDatabases) all() []engine.OwnDatabase {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]engine.OwnDatabase, 0, len(o.known))
	for _, what := range slices.Sorted(maps.Keys(o.known)) {
		list = append(list, o.known[what])
	}
	if o.shared != nil && !slices.ContainsFunc(list, func(own engine.OwnDatabase) bool {
		return own.SystemID == o.shared.SystemID && own.OID == o.shared.OID && own.Name == o.shared.Name
	}) {
		list = append(list, *o.shared)
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

// keep asks what a database is, and goes on asking, also where it cannot be told now.
func (o *ownDatabases) keep(ctx context.Context, what string,
	ask func(context.Context) (engine.OwnDatabase, error)) error {
	o.mu.Lock()
	if o.ask == nil {
		o.ask = map[string]func(context.Context) (engine.OwnDatabase, error){}
	}
	o.ask[what] = ask
	o.mu.Unlock()
	own, err := ask(ctx)
	if err == nil {
		o.set(what, own)
	}
	return err
}

// learn takes what the servers of the store say about their results database, which this one may not be given.
func (o *ownDatabases) learn(ctx context.Context, read func(context.Context) (*engine.OwnDatabase, error)) error {
	shared, err := read(ctx)
	if err != nil || shared == nil {
		return err
	}
	shared.What = resultsDatabase
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shared = shared
	return nil
}

// follow asks again until ctx ends. What cannot be asked now stays what it was.
func (o *ownDatabases) follow(ctx context.Context, read func(context.Context) (*engine.OwnDatabase, error),
	log zerolog.Logger) {
	tick := time.NewTicker(identityInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, 10*time.Second)
		if err := o.learn(asking, read); err != nil {
			log.Debug().Err(err).Msg("what other servers say of the results database cannot be read now")
		}
		cancel()
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
