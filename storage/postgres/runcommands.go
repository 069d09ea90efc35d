// This part keeps what is wanted of runs that other servers carry in Postgres, and tells
// them of it.

package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// commandChannel is where new commands are told of. It is the database's, whatever the schema.
const commandChannel = "loadstone_run_commands"

// RunCommandStore implements run.CommandStore. Its calls last as long as their context and the pool allow.
type RunCommandStore struct{ Pool *pgxpool.Pool }

// EnqueueRunCommand implements run.CommandStore.
func (w RunCommandStore) EnqueueRunCommand(ctx context.Context, command store.RunCommand) (seq int64, err error) {
	err = pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
		// One that is answered between the two statements is no conflict any more: it is noted anew.
		const insert = `INSERT INTO run_commands (run_id, kind, asked_by, server) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run_id, kind) WHERE answered_by IS NULL DO UPDATE SET heard_by = NULL RETURNING seq`
		err := tx.QueryRow(ctx, insert, command.RunID, string(command.Kind), store.CleanText(command.By),
			store.CleanText(command.Server)).Scan(&seq)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, $2)", commandChannel, command.RunID)
		return err
	})
	return seq, dberr.Failed("noting what is wanted of a run", err)
}

const commandColumns = "seq, run_id, kind, asked_by, server, asked_at, coalesce(heard_by, ''), " +
	"coalesce(answered_by, '')"

func scanCommand(row pgx.CollectableRow) (w store.RunCommand, err error) {
	err = row.Scan(&w.Seq, &w.RunID, &w.Kind, &w.By, &w.Server, &w.EnqueuedAt.Time, &w.HeardBy, &w.AckedBy)
	w.EnqueuedAt = engine.At(w.EnqueuedAt.Time)
	return w, err
}

// RunCommand implements run.CommandStore.
func (w RunCommandStore) RunCommand(ctx context.Context, seq int64) (store.RunCommand, error) {
	rows, err := w.Pool.Query(ctx, "SELECT "+commandColumns+" FROM run_commands WHERE seq = $1", seq)
	if err != nil {
		return store.RunCommand{}, dberr.Failed("reading what is wanted of a run", err)
	}
	command, err := pgx.CollectExactlyOneRow(rows, scanCommand)
	return command, dberr.Failed("reading what is wanted of a run", err)
}

// PendingRunCommands implements run.CommandStore.
func (w RunCommandStore) PendingRunCommands(ctx context.Context) ([]store.RunCommand, error) {
	rows, err := w.Pool.Query(ctx, "SELECT "+commandColumns+" FROM run_commands WHERE answered_by IS NULL ORDER BY seq")
	if err != nil {
		return nil, dberr.Failed("reading what is wanted of runs", err)
	}
	commands, err := pgx.CollectRows(rows, scanCommand)
	return commands, dberr.Failed("reading what is wanted of runs", err)
}

// HearRunCommand implements run.CommandStore.
func (w RunCommandStore) HearRunCommand(ctx context.Context, seq int64, server string) (by string, err error) {
	err = w.Pool.QueryRow(ctx, `UPDATE run_commands SET heard_by = coalesce(heard_by, $2)
		WHERE seq = $1 AND answered_by IS NULL RETURNING heard_by`, seq, store.CleanText(server)).Scan(&by)
	return by, dberr.Reading("open command", strconv.FormatInt(seq, 10), err)
}

// AckRunCommand implements run.CommandStore.
func (w RunCommandStore) AckRunCommand(ctx context.Context, seq int64, server string) error {
	_, err := w.Pool.Exec(ctx, `UPDATE run_commands SET answered_by = $2, answered_at = clock_timestamp()
		WHERE seq = $1 AND answered_by IS NULL`, seq, store.CleanText(server))
	return dberr.Failed("answering what is wanted of a run", err)
}

// WatchRunCommands implements run.CommandStore, on a connection of its own.
func (w RunCommandStore) WatchRunCommands(ctx context.Context, heard func()) error {
	return listen(ctx, w.Pool, commandChannel, "listening to what is wanted of runs", heard)
}
