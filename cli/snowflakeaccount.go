package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/embedded"
	"github.com/loadstone-db/loadstone/storage/keyring"
)

// snowflakeScheme begins a connection string, which no name of a saved connection does.
const snowflakeScheme = "snowflake://"

// Account is a Snowflake account that a command works on.
type Account struct {
	target.Database
	snowflakeexport.SQLAccount
	// Name is that of the connection, as commands name it.
	Name string
	// DSN is what it was opened with.
	DSN  secret.Secret
	done []func()
}

// Exec is that of both.
func (a *Account) Exec(ctx context.Context, sql ...string) error {
	return a.SQLAccount.Exec(ctx, sql...)
}

// Close closes it, and what was started for it.
func (a *Account) Close() {
	if a.Database != nil {
		_ = a.Database.Close() // nothing of it is open
	}
	for _, done := range slices.Backward(a.done) {
		done()
	}
}

// openAccount opens the account of a connection: a saved one by its name, "" the one to which the servers of the
// control store take results, a connection string, or file:PATH of a file with one, which no other process of the
// machine sees. The caller closes it.
func openAccount(e *terminal.Env, flags wiring.StoreFlags, flag, connection string) (_ *Account, err error) {
	a := &Account{Name: "'" + snowflakeScheme + "…'"}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	dsn := secret.New(connection)
	path, inFile := strings.CutPrefix(connection, "file:")
	switch {
	case inFile:
		text, err := terminal.ReadSecret("The file of "+flag, path)
		if err != nil {
			return nil, err
		}
		dsn = secret.New(text)
	case !strings.HasPrefix(connection, snowflakeScheme):
		if dsn, err = a.saved(e, flags, flag, connection); err != nil {
			return nil, err
		}
	}
	a.DSN = dsn
	db, err := wiring.SnowflakeDriver(nil).Open(target.Config{DSN: dsn})
	if err != nil {
		return nil, err
	}
	a.Database = db
	account, ok := db.(snowflakeexport.SQLAccount)
	if !ok {
		return nil, fmt.Errorf("the driver of %s does not execute statements by itself", a.Name)
	}
	a.SQLAccount = account
	return a, nil
}

// saved reads a saved connection from the control store of this machine, whether a server runs on it or not.
func (a *Account) saved(e *terminal.Env, flags wiring.StoreFlags, flag, name string) (dsn secret.Secret, err error) {
	s, _, done, err := openKeys(e, flags, keyring.OpenExisting)
	if err != nil {
		return dsn, err
	}
	a.done = append(a.done, done)
	if name == "" {
		kept, err := s.ResultsConnection(e.Ctx)
		if err != nil {
			return dsn, err
		}
		name = kept.Name
	}
	if name == "" {
		return dsn, engine.InvalidField(flag, "is required",
			"no server of this control store takes results anywhere: name a saved connection, or give a connection string")
	}
	a.Name = name
	driver, dsn, err := s.OpenDSN(e.Ctx, engine.ConnectionRef{Name: name})
	if err != nil {
		return dsn, err
	}
	if driver != "snowflake" {
		return dsn, engine.InvalidField(flag, "is not a connection of Snowflake",
			fmt.Sprintf("the driver of %q is %s", name, driver))
	}
	return wiring.StandInDSN(e.Ctx, dsn, func() (string, error) {
		return embedded.RunningDSN(cmp.Or(flags.DataDir, wiring.DefaultDataDir()), embedded.SnowsimDatabase)
	}, func(end func()) { a.done = append(a.done, end) })
}
