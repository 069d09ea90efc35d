package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// SnowflakeSchemaCommand is the command that makes the tables in the account of a connection.
func SnowflakeSchemaCommand(connection string) string {
	return "loadstone schema apply --snowflake " + connection
}

// exportTable is what says of finished runs whether they are in the account of --results-connection.
func exportTable() refresh.Table {
	return refresh.Table{Name: snowflakeexport.Table, Kind: refresh.Ingest, Bundled: true, TargetLagSeconds: 60,
		Mode: refresh.Incremental, PartitionBy: refresh.ByRun, Priority: 1, CreatedBy: "loadstone",
		Description: "The single executions of every finished run, in QUERY_EXECUTIONS of the results connection."}
}

// startExport has finished runs taken to the account of a stored connection, or no longer.
func (t *Tables) startExport(ctx context.Context, known []refresh.Table, connection string) error {
	there := slices.ContainsFunc(known, func(k refresh.Table) bool { return k.Name == snowflakeexport.Table && k.Bundled })
	if connection == "" {
		if err := t.s.releaseResultsConnection(ctx); err != nil {
			return err
		}
		if !there {
			return nil
		}
		// What is in the account stays. Runs are compared with it when there is a connection again.
		if err := t.s.Store.DropDynamicTable(ctx, snowflakeexport.Table); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("leaving the results connection: %w", err)
		}
		return nil
	}
	s := t.s
	if err := s.guardResultsConnection(ctx, connection); err != nil {
		return err
	}
	t.refreshers.export = func(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (r refresh.Result,
		err error) {
		account, err := s.account(ctx, connection)
		if err != nil {
			return r, err
		}
		defer func() { _ = account.Close() }() // nothing of it is open
		stager, ok := account.(snowflakeexport.Account)
		if !ok {
			return r, &engine.Error{Code: engine.CodeInvalid,
				Message: fmt.Sprintf("The results connection %q is not one of Snowflake.", connection),
				Hint:    "--results-connection names a saved connection of the driver snowflake."}
		}
		db, err := t.Database(ctx)
		if err != nil {
			return r, err
		}
		b := &exportLog{db: db, connection: connection, tables: t}
		e := &snowflakeexport.Export{
			Store:       s.Store,
			Record:      s.Results,
			Detail:      s.Runs.Detail,
			Account:     stager,
			Cure:        SnowflakeSchemaCommand(connection),
			StatusStore: b,
			RaiseEpochs: s.Store.RaiseRefreshEpochs,
			IngestPending: func(ctx context.Context, runID string) (bool, error) {
				return s.Store.IngestPending(ctx, ingest.Table, runID)
			},
		}
		r, err = e.Run(ctx, c, prove)
		if err == nil && b.whole && t.pendingExports.CompareAndSwap(true, false) {
			// What could not be written of others now can.
			b.reexport(ctx, c.Subtask)
		}
		return r, err
	}
	t.startLiveExport(connection)
	t.onceInBackground(func(ctx context.Context) error {
		db, err := t.Database(ctx)
		if err != nil {
			return err
		}
		return t.reexport(ctx, db, connection)
	})
	return nil
}

// reexport has runs taken to the account once more of which something is owed there: an earlier version took them
// without what views show, or a table of somebody else's was in the way. What is there of them is not sent again.
func (t *Tables) reexport(ctx context.Context, db *derived.Database, connection string, but ...string) error {
	taken, err := t.s.Store.TakenIn(ctx, snowflakeexport.Table)
	if err != nil {
		return err
	}
	whole, err := db.ExportedRuns(ctx, connection)
	if err != nil {
		return err
	}
	owed := slices.DeleteFunc(taken, func(run string) bool { return whole[run] || slices.Contains(but, run) })
	if len(owed) == 0 {
		return nil
	}
	n, err := t.s.Store.TakeInAgain(ctx, snowflakeexport.Table, owed)
	if err == nil && n > 0 {
		t.s.Log.Info().Int64("runs", n).Str("connection", connection).
			Msg("runs are taken to the results connection again, for what is missing of them there")
	}
	return err
}

// exportLog notes in the results database what is in the account of a connection, and for people what is missing.
type exportLog struct {
	db         *derived.Database
	connection string
	tables     *Tables
	whole      bool
}

// NoteExport implements snowflakeexport.StatusStore.
func (b *exportLog) NoteExport(ctx context.Context, c refresh.Claim, s snowflakeexport.ExportStatus) error {
	if s.Problem != "" {
		b.tables.s.Log.Warn().Str("run_id", c.Subtask).Str("connection", b.connection).Str("problem", s.Problem).
			Msg("not all of a run is in the results connection")
	}
	b.whole = s.Whole && !s.Failed && !s.Gone
	if !s.Whole && !s.Failed && !s.Gone {
		b.tables.pendingExports.Store(true)
	}
	return b.db.NoteExport(ctx, c, b.connection, s)
}

// reexport has other runs than one taken there once more, as far as that is known now; a later run asks again.
func (b *exportLog) reexport(ctx context.Context, but string) {
	if err := b.tables.reexport(ctx, b.db, b.connection, but); err != nil && ctx.Err() == nil {
		b.tables.pendingExports.Store(true)
		b.tables.s.Log.Warn().Err(err).Msg("which runs are to be taken to the results connection again is not known")
	}
}

// guardResultsConnection keeps which connection the flag names, when a server starts. From then on admins alone change
// it, and give its name to another one. The name is kept first: it is nobody's who saves one meanwhile.
func (s *Services) guardResultsConnection(ctx context.Context, name string) error {
	kept, err := s.Store.ResultsConnection(ctx)
	if err != nil {
		return err
	}
	if kept.Name != name {
		kept = kept.Looked(name)
		if err := s.Store.KeepResultsConnection(ctx, kept); err != nil {
			return err
		}
	}
	found, err := store.FindConnection(ctx, s.Store, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil // an admin may save one, or has renamed the one that is kept
	}
	if err != nil {
		return fmt.Errorf("reading the results connection: %w", err)
	}
	return s.adoptResultsConnection(ctx, kept, found)
}

// adoptResultsConnection keeps which connection was found, and says so where it was changed while nobody guarded it.
func (s *Services) adoptResultsConnection(
	ctx context.Context,
	kept store.ResultsConnection,
	found store.Connection,
) error {
	adopted, changed := kept.Adopted(found)
	if changed {
		s.Log.Warn().Str("connection", kept.Name).Msg("the results connection leads elsewhere than when results were taken " +
			"there last, and while no server was guarding it others than admins could change it: the results of all users go " +
			"to the new address")
	}
	return s.Store.KeepResultsConnection(ctx, adopted)
}

// releaseResultsConnection lets the connection be its owner's again: results are taken nowhere.
func (s *Services) releaseResultsConnection(ctx context.Context) error {
	kept, err := s.Store.ResultsConnection(ctx)
	if err != nil || kept.Name == "" {
		return err
	}
	var leads store.Connection
	if kept.ConnectionID != "" {
		if leads, err = s.Store.Connection(ctx, kept.ConnectionID); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("reading the results connection: %w", err)
		}
	}
	return s.Store.KeepResultsConnection(ctx, kept.Released(leads))
}

// resultsConnection is the connection that is kept under the flag's name.
func (s *Services) resultsConnection(ctx context.Context, name string) (c store.Connection, err error) {
	kept, err := s.Store.ResultsConnection(ctx)
	if err != nil {
		return c, err
	}
	if kept.Name != name {
		return c, fmt.Errorf("another server of this store was started with another --results-connection: %w",
			store.ErrUnavailable)
	}
	if kept.ConnectionID != "" {
		if c, err = s.Store.Connection(ctx, kept.ConnectionID); !errors.Is(err, store.ErrNotFound) {
			return c, err
		}
	}
	if c, err = store.FindConnection(ctx, s.Store, name); err == nil {
		err = s.adoptResultsConnection(ctx, kept, c)
	}
	return c, err
}

// account opens the database of the results connection.
func (s *Services) account(ctx context.Context, connection string) (target.Database, error) {
	saved, err := s.resultsConnection(ctx, connection)
	if err != nil {
		return nil, fmt.Errorf("reading the results connection: %w", err)
	}
	name, dsn, err := s.Store.OpenDSN(ctx, engine.ConnectionRef{ID: saved.ConnectionID})
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
