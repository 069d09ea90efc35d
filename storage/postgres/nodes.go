// This part keeps what operators want of nodes, and what became of them, in Postgres.

package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// NodeStore implements nodes.Nodes. Its calls last as long as their context and the pool allow.
type NodeStore struct{ Pool *pgxpool.Pool }

var _ nodes.Nodes = NodeStore{}

// SetNodeDesiredState implements nodes.Nodes.
func (r NodeStore) SetNodeDesiredState(
	ctx context.Context,
	nodeID string,
	desired nodes.DesiredState,
	by string,
) (err error) {
	if desired == nodes.DesiredNone {
		_, err = r.Pool.Exec(ctx, "DELETE FROM node_intents WHERE node_id = $1", nodeID)
	} else {
		_, err = r.Pool.Exec(ctx, `INSERT INTO node_intents (node_id, desired_state, asked_by) VALUES ($1, $2, $3)
			ON CONFLICT (node_id) DO UPDATE SET desired_state = excluded.desired_state, asked_by = excluded.asked_by, asked_at = now()`,
			nodeID, string(desired), store.CleanText(by))
	}
	return dberr.Failed("writing what is wanted of a node", err)
}

// NodeDesiredStates implements nodes.Nodes.
func (r NodeStore) NodeDesiredStates(ctx context.Context) (map[string]nodes.DesiredState, error) {
	rows, err := r.Pool.Query(ctx, "SELECT node_id, desired_state FROM node_intents")
	if err != nil {
		return nil, dberr.Failed("reading what is wanted of nodes", err)
	}
	states := map[string]nodes.DesiredState{}
	var id, desired string
	_, err = pgx.ForEachRow(rows, []any{&id, &desired}, func() error {
		states[id] = nodes.DesiredState(desired)
		return nil
	})
	return states, dberr.Failed("reading what is wanted of nodes", err)
}

// AppendNodeEvents implements nodes.Nodes.
func (r NodeStore) AppendNodeEvents(ctx context.Context, events []nodes.NodeEvent) error {
	err := pgx.BeginFunc(ctx, r.Pool, func(tx pgx.Tx) error {
		var batch pgx.Batch
		for _, e := range events {
			var at *time.Time
			if !e.At.IsZero() {
				at = &e.At.Time
			}
			batch.Queue(`INSERT INTO node_events (at, node_id, server, kind, from_state, to_state, reason, asked_by)
				VALUES (coalesce($1, clock_timestamp()), $2, $3, $4, $5, $6, $7, $8)`, at, store.CleanText(e.NodeID),
				store.CleanText(e.Server), string(e.Kind), string(e.From), string(e.To), store.CleanText(e.Reason),
				store.CleanText(e.By))
		}
		return tx.SendBatch(ctx, &batch).Close()
	})
	return dberr.Failed("writing events of nodes", err)
}

// NodeEvents implements nodes.Nodes.
func (r NodeStore) NodeEvents(ctx context.Context, f nodes.NodeEventFilter) ([]nodes.NodeEvent, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	rows, err := r.Pool.Query(ctx, `SELECT seq, at, node_id, server, kind, from_state, to_state, reason, asked_by
		FROM node_events WHERE ($1 = '' OR node_id = $1) AND ($2::bigint = 0 OR seq < $2) ORDER BY seq DESC LIMIT $3`,
		f.NodeID, f.Before, limit)
	if err != nil {
		return nil, dberr.Failed("reading events of nodes", err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e nodes.NodeEvent, err error) {
		err = row.Scan(&e.Seq, &e.At.Time, &e.NodeID, &e.Server, &e.Kind, &e.From, &e.To, &e.Reason, &e.By)
		e.At = engine.At(e.At.Time)
		return e, err
	})
	return events, dberr.Failed("reading events of nodes", err)
}

// PruneNodeEvents implements nodes.Nodes.
func (r NodeStore) PruneNodeEvents(ctx context.Context, keep int) error {
	_, err := r.Pool.Exec(ctx, `DELETE FROM node_events
		WHERE seq <= (SELECT seq FROM node_events ORDER BY seq DESC OFFSET $1 LIMIT 1)`, keep)
	return dberr.Failed("deleting old events of nodes", err)
}
