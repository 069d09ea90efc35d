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
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
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
