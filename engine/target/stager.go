package target

import "context"

// Stager is implemented by databases that take files in: they are put on a stage, and copied from there by SQL.
type Stager interface {
	// Put stores a file under a path of the user's own stage, in place of what is there.
	Put(ctx context.Context, path string, content []byte) error
	// InTransaction// Tx runs f in a transaction: all that it executes holds, or nothing.
	InTransaction(ctx context.Context, f func(Tx) error) error
}

// Tx is a transaction.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) error
	Query(ctx context.Context, sql string, args ...any) (*ResultSet, error)
}
