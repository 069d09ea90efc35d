package cli

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

type schemaCommand struct {
	Apply schemaApply `cmd:"" help:"Create or update the tables; rerunnable."`
	Check schemaCheck `cmd:"" help:"Check that the schema is what this binary needs."`
	Print schemaPrint `cmd:"" help:"Print the DDL."`
}

// withControlStore does something with the control store that the flags name.
func withControlStore(f wiring.DatabaseFlags, e *terminal.Env, do func(ctx context.Context, url string) error) error {
	url, err := f.URL()
	if err != nil {
		return err
	}
	if url == "" {
		return engine.InvalidField("--database-url", "is required",
			"give it as LOADSTONE_DATABASE_URL, --database-url-file or --database-url: "+
				"postgres://user:password@host:5432/database")
	}
	if err := do(e.Ctx, url); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.Stdout, "The schema is current.")
	return err
}

type schemaApply struct {
	wiring.DatabaseFlags
	Results bool `help:"Update the results database instead, and correct the reader's rights. What needs an administrator is printed as statements."`
	wiring.ResultsFlags
	ResultsAdmin     string `name:"results-admin-url" placeholder:"URL" env:"LOADSTONE_RESULTS_ADMIN_URL" help:"With --results: the results database as a role that may change roles (default: the owner)."`
	ResultsAdminFile string `name:"results-admin-url-file" placeholder:"FILE" env:"LOADSTONE_RESULTS_ADMIN_URL_FILE" help:"File with the URL."`
}

func (c schemaApply) Run(e *terminal.Env) error {
	if !c.Results {
		return withControlStore(c.DatabaseFlags, e, schema.Repair)
	}
	admin, err := terminal.SecretFlag("--results-admin-url", c.ResultsAdmin, c.ResultsAdminFile)
	if err != nil {
		return err
	}
	return c.ApplyResults(e.Ctx, admin, e.Stdout)
}

type schemaCheck struct{ wiring.DatabaseFlags }

func (c schemaCheck) Run(e *terminal.Env) error {
	return withControlStore(c.DatabaseFlags, e, schema.Compare)
}

type schemaPrint struct{}

func (schemaPrint) Run(e *terminal.Env) error {
	_, err := fmt.Fprint(e.Stdout, sql.Print())
	return err
}
