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

// CatalogStore implements catalog.Store. Its calls last as long as their context and the pool allow.
type CatalogStore struct {
	Pool *pgxpool.Pool
	keys SecretSealer
	// changing has the changes of this process follow each other: only those of other processes meet.
	changing chan struct{}
}

var _ catalog.Store = (*CatalogStore)(nil)

// SecretSealer keeps the secrets of settings.
type SecretSealer interface {
	Seal(plain []byte, context string) string
	Open(sealed, context string) ([]byte, error)
}

// NewCatalogStore returns the catalog in a database, whose secrets are sealed.
func NewCatalogStore(pool *pgxpool.Pool, keys SecretSealer) *CatalogStore {
	return &CatalogStore{Pool: pool, keys: keys, changing: make(chan struct{}, 1)}
}

// catalogChannel is where changes are told of. It is the database's, whatever the schema.
const catalogChannel = "loadstone_catalog"

// maxTries is how often a change is tried that meets others.
const maxTries = 20

// CatalogContents implements catalog.Store.
func (r *CatalogStore) CatalogContents(ctx context.Context) (c catalog.Contents, err error) {
	err = pgx.BeginTxFunc(ctx, r.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			c, err = r.read(ctx, tx, catalog.Scope{All: true})
			return err
		})
	return c, dberr.Failed("reading the catalog of streams", err)
}

// ChangeCatalog implements catalog.Store.
func (r *CatalogStore) ChangeCatalog(ctx context.Context, needs catalog.Scope,
	change func(*catalog.Catalog) error) error {
	select {
	case r.changing <- struct{}{}:
		defer func() { <-r.changing }()
	case <-ctx.Done():
		return dberr.Failed("changing the catalog of streams", ctx.Err())
	}
	for n := 1; ; n++ {
		var refused error
		err := pgx.BeginTxFunc(ctx, r.Pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
			before, err := r.read(ctx, tx, needs)
			if err != nil {
				return err
			}
			c := catalog.FromContents(before)
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
		case !isRetryable(err) || n == maxTries:
			return dberr.Failed("changing the catalog of streams", err)
		}
		select {
		case <-time.After(rand.N(time.Duration(n) * 4 * time.Millisecond)):
		case <-ctx.Done():
			return dberr.Failed("changing the catalog of streams", ctx.Err())
		}
	}
}

// isRetryable reports whether a transaction has met another one, and another attempt may succeed.
func isRetryable(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

// retry tries a transaction until it meets no other.
func (r *CatalogStore) retry(ctx context.Context, f func(tx pgx.Tx) error) error {
	for n := 1; ; n++ {
		err := pgx.BeginFunc(ctx, r.Pool, f)
		if err == nil || !isRetryable(err) || n == maxTries {
			return err
		}
	}
}

// ClaimQueries implements catalog.Store.
func (r *CatalogStore) ClaimQueries(ctx context.Context, owner string, lease time.Duration) (n int, err error) {
	err = r.retry(ctx, func(tx pgx.Tx) error {
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
			_, err = tx.Exec(ctx, "SELECT pg_notify($1, '')", catalogChannel)
		}
		return err
	})
	return n, dberr.Failed("claiming queries", err)
}

// AdvanceQuery implements catalog.Store.
func (r *CatalogStore) AdvanceQuery(ctx context.Context, q catalog.Query) error {
	err := r.retry(ctx, func(tx pgx.Tx) error {
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
					desiredFragments(q), f.Attempts, catalogOrNull(f.RetryAt), store.CleanText(f.Failure), f.Terminal)
			}
		}
		b.Queue("SELECT pg_notify($1, '')", catalogChannel)
		return tx.SendBatch(ctx, b).Close()
	})
	if errors.Is(err, store.ErrFenced) {
		return err
	}
	return dberr.Failed("moving a query", err)
}

// desiredFragments is what is desired of the fragments of a query.
func desiredFragments(q catalog.Query) string {
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

// SetWorkers implements catalog.Store.
func (r *CatalogStore) SetWorkers(ctx context.Context, workers []catalog.Worker) error {
	err := r.retry(ctx, func(tx pgx.Tx) error {
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
		_, err := tx.Exec(ctx, "SELECT pg_notify($1, '')", catalogChannel)
		return err
	})
	return dberr.Failed("keeping the workers of streams", err)
}

// WatchCatalog implements catalog.Store, on a connection of its own.
func (r *CatalogStore) WatchCatalog(ctx context.Context, heard func()) error {
	return listen(ctx, r.Pool, catalogChannel, "listening to the catalog of streams", heard)
}
