package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/export"
	"github.com/loadstone-db/loadstone/engine/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// exportTable is what says of finished runs whether they are in the account of --results-connection.
func exportTable() refresh.Table {
	return refresh.Table{Name: export.Table, Kind: refresh.Ingest, Bundled: true, TargetLagSeconds: 60,
		Mode: refresh.Incremental, PartitionBy: refresh.ByRun, Priority: 1, CreatedBy: "loadstone",
		Description: "The single executions of every finished run, in QUERY_EXECUTIONS of the results connection."}
}

// openExport has finished runs taken to the account of a stored connection, or no longer.
func (t *Tables) openExport(ctx context.Context, known []refresh.Table, connection string) error {
	there := slices.ContainsFunc(known, func(k refresh.Table) bool { return k.Name == export.Table && k.Bundled })
	if connection == "" {
		if !there {
			return nil
		}
		// What is in the account stays. Runs are compared with it when there is a connection again.
		if err := t.s.Store.DropDynamicTable(ctx, export.Table); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("leaving the results connection: %w", err)
		}
		return nil
	}
	s := t.s
	t.crew.export = func(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (r refresh.Result,
		err error) {
		account, err := s.account(ctx, connection)
		if err != nil {
			return r, err
		}
		defer func() { _ = account.Close() }() // nothing of it is open
		stager, ok := account.(export.Account)
		if !ok {
			return r, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("The results connection %q is not one of Snowflake.", connection),
				Hint:    "--results-connection names a saved connection of the driver snowflake."}
		}
		db, err := t.Database(ctx)
		if err != nil {
			return r, err
		}
		e := &export.Export{Store: s.Store, Record: s.Results, Detail: s.Runs.Detail, Account: stager,
			Book: book{db, connection}}
		return e.Run(ctx, c, prove)
	}
	return nil
}

// book notes in the results database what is in the account of a connection.
type book struct {
	db         *derived.Database
	connection string
}

func (b book) NoteExport(ctx context.Context, c refresh.Claim, s export.Standing) error {
	return b.db.NoteExport(ctx, c, b.connection, s)
}

// account opens the database of a stored connection.
func (s *Services) account(ctx context.Context, connection string) (target.Database, error) {
	name, dsn, err := s.Store.OpenDSN(ctx, engine.ConnectionRef{Name: connection})
	if err != nil {
		return nil, fmt.Errorf("reading the results connection: %w", err)
	}
	driver, ok := s.Drivers[name]
	if !ok {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The driver %q of the results connection is not in this program.", name)}
	}
	return driver.Open(target.Config{DSN: dsn}) //nolint:wrapcheck // it is the driver
}
