package target

import (
	"context"
	"time"
)

// LockPatience is how long a transaction of a Stager waits for what another holds.
const LockPatience = 30 * time.Second

// Stager is implemented by databases that take files in: they are put on a stage, and copied from there by SQL.
type Stager interface {
	// Put stores a file under a path of the user's own stage, in place of what is there.
	Put(ctx context.Context, path string, content []byte) error
	// InTransaction runs f in a transaction: all that it executes holds, or nothing. Others see the transaction's name,
	// a word of letters, digits and _, and may end it by that; it waits for locks for LockPatience at most.
	InTransaction(ctx context.Context, name string, f func(Tx) error) error
}

// Tx is a transaction.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) error
	Query(ctx context.Context, sql string, args ...any) (*ResultSet, error)
}
