// This part keeps the catalog of streams in Postgres. A change reads what it needs in a serializable
// transaction, and writes what is different then; of two that meet one is tried again. Foreign keys and checks hold
// what the change has checked before.

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// Rows implements catalog.Keeper. Its calls last as long as their context and the pool allow.
type Rows struct {
	Streams *pgxpool.Pool
	keys    Sealer
	// turn has the changes of this process follow each other: only those of other processes meet.
	turn chan struct{}
}

var _ catalog.Keeper = (*Rows)(nil)

// Sealer keeps the secrets of settings.
type Sealer interface {
	Seal(plain []byte, context string) string
	Open(sealed, context string) ([]byte, error)
}

// New returns the catalog in a database, whose secrets are sealed.
func New(pool *pgxpool.Pool, keys Sealer) *Rows {
	return &Rows{Streams: pool, keys: keys, turn: make(chan struct{}, 1)}
}

// channel is where changes are told of. It is the database's, whatever the schema.
const channel = "loadstone_catalog"

// tries is how often a change is tried that meets others.
const tries = 20

// CatalogContents implements catalog.Keeper.
func (r *Rows) CatalogContents(ctx context.Context) (c catalog.Contents, err error) {
	err = pgx.BeginTxFunc(ctx, r.Streams, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			c, err = r.read(ctx, tx, catalog.Needs{All: true})
			return err
		})
	return c, dberr.Failed("reading the catalog of streams", err)
}

// ChangeCatalog implements catalog.Keeper.
func (r *Rows) ChangeCatalog(ctx context.Context, needs catalog.Needs,
	change func(*catalog.Catalog) error) error {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return dberr.Failed("changing the catalog of streams", ctx.Err())
	}
	for n := 1; ; n++ {
		var refused error
		err := pgx.BeginTxFunc(ctx, r.Streams, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
			before, err := r.read(ctx, tx, needs)
			if err != nil {
				return err
			}
			c := catalog.Of(before)
			if refused = change(c); refused != nil {
				return refused
			}
			after := c.Contents()
			if refused, err = connected(ctx, tx, before, after); refused != nil || err != nil {
				return errors.Join(refused, err)
			}
			return r.write(ctx, tx, before, after)
		})
		switch {
		case refused != nil:
			return refused
		case err == nil:
			return nil
		case !met(err) || n == tries:
			return dberr.Failed("changing the catalog of streams", err)
		}
		select {
		case <-time.After(rand.N(time.Duration(n) * 4 * time.Millisecond)): //nolint:gosec // nothing secret depends on it
		case <-ctx.Done():
			return dberr.Failed("changing the catalog of streams", ctx.Err())
		}
	}
}

// met reports whether a transaction has met another one, and another attempt may succeed.
func met(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

// again tries a transaction until it meets no other.
func (r *Rows) again(ctx context.Context, f func(tx pgx.Tx) error) error {
	for n := 1; ; n++ {
		err := pgx.BeginFunc(ctx, r.Streams, f)
		if err == nil || !met(err) || n == tries {
			return err
		}
	}
}

// ClaimQueries implements catalog.Keeper.
func (r *Rows) ClaimQueries(ctx context.Context, owner string, lease time.Duration) (n int, err error) {
	err = r.again(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO query_owners (owner, lease_until) VALUES ($1, clock_timestamp() + $2)
			ON CONFLICT (owner) DO UPDATE SET lease_until = excluded.lease_until`, owner, lease)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE queries q SET owner = $1, epoch = q.epoch + 1 WHERE q.owner IS NULL
			OR q.owner IN (SELECT o.owner FROM query_owners o WHERE o.owner <> $1 AND o.lease_until < clock_timestamp())`, owner)
		if err != nil {
			return err
		}
		if n = int(tag.RowsAffected()); n > 0 {
			_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", channel)
		}
		return err
	})
	return n, dberr.Failed("claiming queries", err)
}

// AdvanceQuery implements catalog.Keeper.
func (r *Rows) AdvanceQuery(ctx context.Context, q catalog.Query) error {
	err := r.again(ctx, func(tx pgx.Tx) error {
		var tag pgconn.CommandTag
		var err error
		if q.State == catalog.Stopped {
			tag, err = tx.Exec(ctx, "DELETE FROM queries WHERE id = $1 AND owner = $2 AND epoch = $3 AND revision = $4", q.ID,
				q.Owner, q.Epoch, q.Revision)
		} else {
			tag, err = tx.Exec(ctx, `UPDATE queries SET execution_state = $4, state_since = $5, failure = $6,
				revision = revision + 1 WHERE id = $1 AND owner = $2 AND epoch = $3 AND revision = $7`, q.ID, q.Owner, q.Epoch,
				string(q.State), q.Since, store.CleanText(q.Failure), q.Revision)
		}
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("query %d in the epoch %d, revision %d: %w", q.ID, q.Epoch, q.Revision, store.ErrFenced)
		}
		b := &pgx.Batch{}
		if q.State != catalog.Stopped {
			for _, f := range q.Fragments {
				b.Queue(`UPDATE query_fragments SET execution_state = $3, desired_state = $4, attempts = $5, retry_at = $6,
					failure = $7, terminal = $8 WHERE query_id = $1 AND host_name = $2`, q.ID, f.Host, string(f.State),
					wanted(q), f.Attempts, catalogOrNull(f.RetryAt), store.CleanText(f.Failure), f.Terminal)
			}
		}
		b.Queue("SELECT pg_notify($1, '')", channel)
		return tx.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, store.ErrFenced) {
		return err
	}
	return dberr.Failed("moving a query", err)
}

// wanted is what is desired of the fragments of a query.
func wanted(q catalog.Query) string {
	if q.Desired == catalog.Running && q.State != catalog.Terminating && q.State != catalog.Failed {
		return string(catalog.FragmentRunning)
	}
	return string(catalog.FragmentStopped)
}

func catalogOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// SetWorkers implements catalog.Keeper.
func (r *Rows) SetWorkers(ctx context.Context, workers []catalog.Worker) error {
	err := r.again(ctx, func(tx pgx.Tx) error {
		changed := int64(0)
		for _, w := range workers {
			tag, err := tx.Exec(ctx, `INSERT INTO workers AS w (host_name, capacity, state) VALUES ($1, $2, $3)
				ON CONFLICT (lower(host_name)) DO UPDATE SET state = excluded.state WHERE w.state <> excluded.state`,
				w.Host, w.Slots, string(w.State))
			if err != nil {
				return err
			}
			changed += tag.RowsAffected()
		}
		if changed == 0 {
			return nil
		}
		_, err := tx.Exec(ctx, "SELECT pg_notify($1, '')", channel)
		return err
	})
	return dberr.Failed("keeping the workers of streams", err)
}

// quiet is how long nothing may be heard until the connection is asked whether it is there.
const quiet = 30 * time.Second

// HearCatalog implements catalog.Keeper, on a connection of its own.
func (r *Rows) HearCatalog(ctx context.Context, heard func()) error {
	const what = "listening to the catalog of streams"
	conn, err := pgx.ConnectConfig(ctx, r.Streams.Config().ConnConfig.Copy())
	if err != nil {
		return dberr.Failed(what, err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return dberr.Failed(what, err)
	}
	heard()
	for {
		waiting, cancel := context.WithTimeout(ctx, quiet)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			heard()
		case !errors.Is(err, context.DeadlineExceeded):
			return dberr.Failed(what, err)
		default:
			asking, cancel := context.WithTimeout(ctx, quiet)
			err := conn.Ping(asking)
			cancel()
			if err != nil {
				return dberr.Failed(what, err)
			}
		}
	}
}
