package cli

import (
	"fmt"

	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

type schemaCommand struct {
	Apply schemaApply `cmd:"" help:"Create or update the tables; may be repeated."`
	Check schemaCheck `cmd:"" help:"Say whether the tables, columns, constraints, functions and triggers are what this binary needs."`
	Print schemaPrint `cmd:"" help:"Print the DDL."`
}

type databaseURL struct {
	DatabaseURL string `required:"" env:"LOADSTONE_DATABASE_URL" placeholder:"URL" help:"The control store: postgres://user:password@host:5432/database."`
}

type schemaApply struct{ databaseURL }

func (c schemaApply) Run(e *env) error {
	if err := postgres.RepairSchema(e.ctx, c.DatabaseURL); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, "The schema is current.")
	return err
}

type schemaCheck struct{ databaseURL }

func (c schemaCheck) Run(e *env) error {
	if err := postgres.CompareSchema(e.ctx, c.DatabaseURL); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stdout, "The schema is current.")
	return err
}

type schemaPrint struct{}

func (schemaPrint) Run(e *env) error {
	_, err := fmt.Fprint(e.stdout, sql.Print())
	return err
}
