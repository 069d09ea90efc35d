package translate

import (
	"context"
	_ "embed" // prelude.sql
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed prelude.sql
var prelude string

//go:embed casts.sql
var casts string

// Admit installs, in the database of a connection that belongs to a superuser, what only
// superusers may make. New does so itself when its own role is one; a role
// without that right needs Admit once, before New.
func Admit(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, casts); err != nil {
		return fmt.Errorf("installing the stand-in's casts: %w", err)
	}
	return nil
}

// SearchPath is the search_path that the connections of statements have.
const SearchPath = "public, snowsim_operators"

// admitted reports whether what Admit makes is there.
const admitted = `SELECT count(*) = 2 FROM pg_cast WHERE (castsource, casttarget) IN (('boolean'::regtype, 'numeric'::regtype), ('numeric'::regtype, 'boolean'::regtype))`
