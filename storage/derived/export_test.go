package derived

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// SetStepHook makes d ask f at each step of taking executions in.
func (d *Database) SetStepHook(f func(step string) error) { d.stepHook = f }

// StageName is the table that a refresh of many rows gathers them in.
func StageName(table string, epoch int64) string {
	_, name := stageName(refresh.Claim{Task: refresh.Task{Table: table}, Epoch: epoch})
	return name.Sanitize()
}

// Console lends out a session in which queries are executed.
func (d *Database) Console(ctx context.Context) (*pgxpool.Conn, error) { return d.console.Acquire(ctx) }

// Owner lends out a connection of the owner's.
func (d *Database) Owner(ctx context.Context) (*pgxpool.Conn, error) { return d.owner.Acquire(ctx) }

// Reader lends out a session in which definitions are executed.
func (d *Database) Reader(ctx context.Context) (*pgxpool.Conn, error) { return d.reader.Acquire(ctx) }

// ForgetRights has the rights of the reader looked at again.
func (d *Database) ForgetRights() { d.serving.until = time.Time{} }
