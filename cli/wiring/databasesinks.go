package wiring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	targetpostgres "github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/server/auth"
)

// ConnectionOpener are the saved ones.
type ConnectionOpener interface {
	auth.Store
	OpenDSN(ctx context.Context, ref engine.ConnectionRef) (driver string, dsn secret.Secret, err error)
}

// DSNReader reads connection strings as the server lets them be used.
type DSNReader interface {
	Config(dsn string) (*pgx.ConnConfig, error)
}

// tables reach tables of saved connections. A secret is read when it is needed, and kept nowhere.
type tables struct {
	connections ConnectionOpener
	reader      DSNReader
}

// connectTimeout bounds the log-in; an attempt may take longer than that.
const connectTimeout = 10 * time.Second

// dial returns what connects with the credentials that are saved when it is called, if may lets it.
func (t tables) dial(id, application string, may func(context.Context, store.Connection) error) postgres.Dial {
	return func(ctx context.Context) (*pgconn.PgConn, error) {
		saved, err := t.connections.Connection(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("%w: it is not there any more", postgres.ErrRefused)
		case err != nil:
			return nil, err
		}
		if err := may(ctx, saved); err != nil {
			return nil, err // it is tried again until its query is suspended: see auth.QueriesWork
		}
		_, dsn, err := t.connections.OpenDSN(ctx, engine.ConnectionRef{ID: saved.ConnectionID})
		if err != nil {
			return nil, err
		}
		config, err := t.reader.Config(dsn.Reveal())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", postgres.ErrRefused, err)
		}
		config.ConnectTimeout = connectTimeout
		delete(config.RuntimeParams, targetpostgres.InspectRole) // it is for who looks at results
		if config.RuntimeParams["application_name"] == "" {
			config.RuntimeParams["application_name"] = application
		}
		conn, err := pgconn.ConnectConfig(ctx, &config.Config)
		if errors.Is(err, egress.ErrRefused) {
			err = fmt.Errorf("%w: %w", postgres.ErrRefused, err)
		}
		return conn, err
	}
}

// Describe implements coordinator.Tables. Who asks was judged.
func (t tables) Describe(ctx context.Context, connectionID, schema, name string) (postgres.Table, error) {
	return postgres.Describe(ctx, t.dial(connectionID, "loadstone",
		func(context.Context, store.Connection) error { return nil }), schema, name)
}

// authorize is an error when a query is not its creator's any more. It is not for ever: the query is suspended soon.
func (t tables) authorize(ctx context.Context, q catalog.Query, s catalog.Sink) error {
	if t.connections == nil {
		return nil // a node: its server has judged
	}
	return auth.Authorizer{Store: t.connections}.AuthorizeQuery(ctx, q, s)
}

// open opens the sink of a query, whose creator is judged again whenever it connects.
func (t tables) open(ctx context.Context, q catalog.Query, s catalog.Sink, columns []column.Column,
	tried func(error)) (connector.Sink, error) {
	if t.connections == nil {
		return nil, fmt.Errorf("%w: this process has no saved connections", coordinator.ErrUnusable)
	}
	judge := auth.Authorizer{Store: t.connections}
	dial := t.dial(s.Config.String(catalog.ConnectionID), "loadstone "+q.Name,
		func(ctx context.Context, to store.Connection) error {
			return judge.AuthorizeWrites(ctx, q, to)
		})
	return postgres.Open(ctx, postgres.Options{Dial: dial, Schema: s.Config.String("SINK.SCHEMA"),
		Table: s.Config.String("SINK.TABLE"), Columns: columns, OnAttempt: tried})
}
