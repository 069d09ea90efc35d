// This part keeps what is wanted of runs that other servers carry in Postgres, and tells
// them of it.

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// wishChannel is where new wishes are told of. It is the database's, whatever the schema.
const wishChannel = "loadstone_run_wishes"

// wishQuiet is how long nothing may be heard until the connection is asked whether it is there.
const wishQuiet = 30 * time.Second

// Wishes implements store.RunWishes. Its calls last as long as their context and the pool allow.
type Wishes struct{ Pool *pgxpool.Pool }

var _ store.RunWishes = Wishes{}

// AskOfRun implements store.RunWishes.
func (w Wishes) AskOfRun(ctx context.Context, wish store.RunWish) (seq int64, err error) {
	err = pgx.BeginFunc(ctx, w.Pool, func(tx pgx.Tx) error {
		// One that is answered between the two statements is no conflict any more: it is noted anew.
		const insert = `INSERT INTO run_wishes (run_id, kind, asked_by, server) VALUES ($1, $2, $3, $4)
			ON CONFLICT (run_id, kind) WHERE answered_by IS NULL DO UPDATE SET run_id = excluded.run_id RETURNING seq`
		err := tx.QueryRow(ctx, insert, wish.RunID, string(wish.Kind), store.CleanText(wish.By),
			store.CleanText(wish.Server)).Scan(&seq)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, $2)", wishChannel, wish.RunID)
		return err
	})
	return seq, dberr.Failed("noting what is wanted of a run", err)
}

const wishColumns = "seq, run_id, kind, asked_by, server, asked_at, coalesce(answered_by, '')"

func wishScan(row pgx.CollectableRow) (w store.RunWish, err error) {
	err = row.Scan(&w.Seq, &w.RunID, &w.Kind, &w.By, &w.Server, &w.AskedAt.Time, &w.AnsweredBy)
	w.AskedAt = engine.At(w.AskedAt.Time)
	return w, err
}

// RunWish implements store.RunWishes.
func (w Wishes) RunWish(ctx context.Context, seq int64) (store.RunWish, error) {
	rows, err := w.Pool.Query(ctx, "SELECT "+wishColumns+" FROM run_wishes WHERE seq = $1", seq)
	if err != nil {
		return store.RunWish{}, dberr.Failed("reading what is wanted of a run", err)
	}
	wish, err := pgx.CollectExactlyOneRow(rows, wishScan)
	return wish, dberr.Failed("reading what is wanted of a run", err)
}

// OpenRunWishes implements store.RunWishes.
func (w Wishes) OpenRunWishes(ctx context.Context) ([]store.RunWish, error) {
	rows, err := w.Pool.Query(ctx, "SELECT "+wishColumns+" FROM run_wishes WHERE answered_by IS NULL ORDER BY seq")
	if err != nil {
		return nil, dberr.Failed("reading what is wanted of runs", err)
	}
	wishes, err := pgx.CollectRows(rows, wishScan)
	return wishes, dberr.Failed("reading what is wanted of runs", err)
}

// AnswerRunWish implements store.RunWishes.
func (w Wishes) AnswerRunWish(ctx context.Context, seq int64, server string) error {
	_, err := w.Pool.Exec(ctx, `UPDATE run_wishes SET answered_by = $2, answered_at = clock_timestamp()
		WHERE seq = $1 AND answered_by IS NULL`, seq, store.CleanText(server))
	return dberr.Failed("answering what is wanted of a run", err)
}

// HearRunWishes implements store.RunWishes, on a connection of its own.
func (w Wishes) HearRunWishes(ctx context.Context, heard func()) error {
	conn, err := pgx.ConnectConfig(ctx, w.Pool.Config().ConnConfig.Copy())
	if err != nil {
		return dberr.Failed("listening to what is wanted of runs", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+wishChannel); err != nil {
		return dberr.Failed("listening to what is wanted of runs", err)
	}
	for {
		heard()
		for silent := true; silent; {
			waiting, cancel := context.WithTimeout(ctx, wishQuiet)
			_, err := conn.WaitForNotification(waiting)
			cancel()
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err == nil:
				silent = false
			case !errors.Is(err, context.DeadlineExceeded):
				return dberr.Failed("listening to what is wanted of runs", err)
			default:
				asking, cancel := context.WithTimeout(ctx, wishQuiet)
				err := conn.Ping(asking)
				cancel()
				if err != nil {
					return dberr.Failed("listening to what is wanted of runs", err)
				}
			}
		}
	}
}
