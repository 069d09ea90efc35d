package prepare

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
)

// The test of a connection has 15 s, or as long as its hosts take one after the other; somebody waits for it.
const (
	checkLimit = 15 * time.Second
	maxCheck   = 2 * time.Minute
)

// CheckConnection connects once and returns what answered.
func CheckConnection(ctx context.Context, drivers map[string]target.Driver, driver string,
	dsn secret.Secret) (target.ServerInfo,
	error) {
	d := drivers[driver]
	if d == nil {
		return target.ServerInfo{}, engine.InvalidField("driver", fmt.Sprintf("there is no driver %q", driver),
			strings.Join(slices.Sorted(maps.Keys(drivers)), " and ")+" are known")
	}
	db, err := d.Open(target.Config{DSN: dsn, ApplicationName: "loadstone check"})
	if err != nil {
		return target.ServerInfo{}, err
	}
	defer func() { _ = db.Close() }()
	limit := checkLimit
	if l, ok := db.(target.CheckLimiter); ok {
		limit = min(max(limit, l.CheckLimit()), maxCheck)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return db.Check(ctx)
}

// OneTarget refuses a matrix, which is several runs.
func OneTarget(sc engine.Scenario) error {
	if sc.Matrix == nil {
		return nil
	}
	return engine.InvalidField("matrix", fmt.Sprintf("names %d targets, and a run has one", len(sc.Matrix.Targets)),
		"POST /api/matrices makes a run for each of them")
}
