package cli

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
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
	ResultsAdmin string `name:"results-admin-url" placeholder:"URL" env:"LOADSTONE_RESULTS_ADMIN_URL" help:"With --results: the results database as a role that may change roles (default: the owner)."`
	SnowflakeFlags
	ResultsAdminFile string `name:"results-admin-url-file" placeholder:"FILE" env:"LOADSTONE_RESULTS_ADMIN_URL_FILE" help:"File with the URL."`
}

func (c schemaApply) Run(e *terminal.Env) error {
	if c.Snowflake != "" {
		if c.Results {
			return engine.InvalidField(
				"--snowflake",
				"is given, and --results too",
				"give one of them: each has a schema of its own",
			)
		}
		return c.withAccount(e, c.DatabaseFlags, applySnowflake)
	}
	if !c.Results {
		return withControlStore(c.DatabaseFlags, e, schema.Repair)
	}
	admin, err := terminal.SecretFlag("--results-admin-url", c.ResultsAdmin, c.ResultsAdminFile)
	if err != nil {
		return err
	}
	return c.ApplyResults(e.Ctx, admin, e.Stdout)
}

// SnowflakeFlags name an account instead of the control store.
type SnowflakeFlags struct {
	Snowflake string `placeholder:"CONNECTION" help:"Apply to (or check in) a Snowflake account instead: a saved connection, a connection string, or file:PATH of one."`
	DataDir   string `placeholder:"DIR" env:"LOADSTONE_DATA_DIR" help:"With --snowflake NAME: where the connection is saved (default: the system's data directory)."`
}

func (f SnowflakeFlags) withAccount(e *terminal.Env, database wiring.DatabaseFlags,
	do func(e *terminal.Env, a *Account) error) error {
	a, err := openAccount(e, wiring.StoreFlags{DatabaseFlags: database, DataDir: f.DataDir}, "--snowflake", f.Snowflake)
	if err != nil {
		return err
	}
	defer a.Close()
	return do(e, a)
}

// applySnowflake makes or updates the tables and views, and says of each what was done.
func applySnowflake(e *terminal.Env, a *Account) error {
	done, err := snowflakeexport.ApplySchema(e.Ctx, a.SQLAccount)
	refused := ""
	for _, step := range done {
		if step.Refused != "" {
			refused = step.Name
			_, _ = fmt.Fprintf(e.Stdout, "%s: not applied. %s\n", step.Name, step.Refused)
			continue
		}
		_, _ = fmt.Fprintf(e.Stdout, "%s: %s\n", step.Name, step.Done)
	}
	if err != nil {
		return err
	}
	if refused != "" {
		return &engine.Error{Code: engine.CodeConflict, Message: "Not all of the schema could be applied.",
			Hint: "the lines above say why; what was applied stays, and the command may be repeated"}
	}
	return checkSnowflake(e, a)
}

// checkSnowflake says whether an account has the tables and views.
func checkSnowflake(e *terminal.Env, a *Account) error {
	s, err := snowflakeexport.CheckSchema(e.Ctx, a.SQLAccount, wiring.SnowflakeSchemaCommand(a.Name))
	if s.Problem != "" {
		err = &engine.Error{Code: engine.CodeConflict, Message: "The schema of the account is not current.", Hint: s.Problem}
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "The schema is current: version %d.\n", sql.SnowflakeVersion)
	return err
}

type schemaCheck struct {
	wiring.DatabaseFlags
	SnowflakeFlags
}

func (c schemaCheck) Run(e *terminal.Env) error {
	if c.Snowflake != "" {
		return c.withAccount(e, c.DatabaseFlags, checkSnowflake)
	}
	return withControlStore(c.DatabaseFlags, e, schema.Compare)
}

type schemaPrint struct {
	Snowflake bool `help:"Print the tables of results in a Snowflake account instead."`
}

func (c schemaPrint) Run(e *terminal.Env) error {
	if c.Snowflake {
		for _, f := range sql.Snowflake() {
			if _, err := fmt.Fprintf(e.Stdout, "-- %s\n\n%s\n", f.Name, f.Text); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := fmt.Fprint(e.Stdout, sql.Print())
	return err
}
