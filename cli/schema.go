package cli

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

type schemaCommand struct {
	Apply schemaApply `cmd:"" help:"Create or update the tables; may be repeated."`
	Check schemaCheck `cmd:"" help:"Say whether the tables, columns, constraints, functions and triggers are what this binary needs."`
	Print schemaPrint `cmd:"" help:"Print the DDL."`
}

// ofDatabase does something with the control store that the flags name.
func (f databaseFlags) ofDatabase(e *env, do func(ctx context.Context, url string) error) error {
	url, err := f.databaseURL()
	if err != nil {
		return err
	}
	if url == "" {
		return engine.InvalidField("--database-url", "is required",
			"give it as LOADSTONE_DATABASE_URL, --database-url-file or --database-url: "+
				"postgres://user:password@host:5432/database")
	}
	if err := do(e.ctx, url); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.stdout, "The schema is current.")
	return err
}

type schemaApply struct{ databaseFlags }

func (c schemaApply) Run(e *env) error { return c.ofDatabase(e, schema.Repair) }

type schemaCheck struct{ databaseFlags }

func (c schemaCheck) Run(e *env) error { return c.ofDatabase(e, schema.Compare) }

type schemaPrint struct{}

func (schemaPrint) Run(e *env) error {
	_, err := fmt.Fprint(e.stdout, sql.Print())
	return err
}
