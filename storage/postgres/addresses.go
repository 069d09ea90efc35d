package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// addressTimeout bounds a call about the catalog of addresses whose caller has no limit of its own.
const addressTimeout = 30 * time.Second

func nodeBounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, addressTimeout)
}

func scanNodeAddress(row pgx.Row) (a store.NodeAddress, err error) {
	err = row.Scan(&a.Address, &a.AddedBy, &a.AddedAt.Time)
	a.AddedAt = engine.At(a.AddedAt.Time)
	return a, err
}

// AddNodeAddress implements pki.MemberStore.
func (r NodeStore) AddNodeAddress(ctx context.Context, address, by string) (store.NodeAddress, error) {
	ctx, cancel := nodeBounded(ctx)
	defer cancel()
	a, err := scanNodeAddress(r.Pool.QueryRow(ctx, `INSERT INTO node_addresses (address, added_by) VALUES ($1, $2)
		ON CONFLICT DO NOTHING RETURNING address, added_by, added_at`, address, by))
	if errors.Is(err, pgx.ErrNoRows) {
		return a, dberr.Conflict(fmt.Sprintf("The node at %s is in the catalog already.", address), "")
	}
	return a, dberr.Failed("adding the node at "+address, err)
}

// RemoveNodeAddress implements pki.MemberStore.
func (r NodeStore) RemoveNodeAddress(ctx context.Context, address string) error {
	ctx, cancel := nodeBounded(ctx)
	defer cancel()
	tag, err := r.Pool.Exec(ctx, "DELETE FROM node_addresses WHERE address = $1", address)
	if err == nil && tag.RowsAffected() == 0 {
		return dberr.NotFound("node in the catalog at", address)
	}
	return dberr.Failed("removing the node at "+address, err)
}

// NodeAddresses implements pki.MemberStore.
func (r NodeStore) NodeAddresses(ctx context.Context) ([]store.NodeAddress, error) {
	ctx, cancel := nodeBounded(ctx)
	defer cancel()
	rows, err := r.Pool.Query(ctx, "SELECT address, added_by, added_at FROM node_addresses ORDER BY address")
	if err != nil {
		return nil, dberr.Failed("reading the catalog of nodes", err)
	}
	all, err := pgx.CollectRows(rows,
		func(row pgx.CollectableRow) (store.NodeAddress, error) { return scanNodeAddress(row) })
	return all, dberr.Failed("reading the catalog of nodes", err)
}
