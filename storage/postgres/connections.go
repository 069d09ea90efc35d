package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// connectionLock is the key of the advisory lock under which a connection's
// users are counted and its name goes away.
const connectionLock = 0x636f6e6e // "conn"

const connectionColumns = "connection_id, connection_name, driver, dsn_redacted, description, builtin, created_at, " +
	"updated_at, production, access, version"

func toConnection(row pgx.CollectableRow) (c store.Connection, err error) {
	err = row.Scan(&c.ConnectionID, &c.Name, &c.Driver, &c.DSN, &c.Description, &c.Builtin, &c.CreatedAt.Time,
		&c.UpdatedAt.Time, &c.Production, &c.Access, &c.Version)
	c.CreatedAt, c.UpdatedAt = engine.At(c.CreatedAt.Time), engine.At(c.UpdatedAt.Time)
	return c, err
}

// SaveConnection implements api.ConnectionStore.
func (s *Store) SaveConnection(ctx context.Context, c store.Connection) (store.Connection, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	dsn := c.AddressToSave()
	if c.ConnectionID == "" {
		if err := engine.CheckName("name", c.Name); err != nil {
			return c, err
		}
		if s.secrets.Masked(c.Driver, dsn) {
			return c, engine.InvalidField("dsn", "the password is hidden", "write the password in place of "+target.Mask)
		}
		return s.insertConnection(ctx, c)
	}
	var saved store.Connection
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		old, err := lockedConnection(ctx, tx, c.ConnectionID)
		if err != nil {
			return err
		}
		if old.Builtin {
			return store.BuiltinConnectionError(old.Name)
		}
		if c.Version != 0 && c.Version != old.Version {
			return store.ConcurrentEditError("connection", old.Name, "", old.UpdatedAt, old.Version)
		}
		if old.Name != c.Name {
			if err := engine.CheckName("name", c.Name); err != nil {
				return err
			}
			if err := unused(ctx, tx, old, "renamed"); err != nil {
				return err
			}
		}
		var sealed *string
		shown := s.secrets.Hide(c.Driver, dsn)
		switch {
		case !s.secrets.Masked(c.Driver, dsn):
			text := s.keys.Seal([]byte(dsn), connectionContext(c.ConnectionID))
			sealed = &text
		case dsn != old.DSN, c.Driver != old.Driver:
			return engine.InvalidField("dsn", "the password is hidden, and this is not the address it was saved for",
				"write the password again in place of "+target.Mask)
		}
		rows, err := tx.Query(ctx, `UPDATE connections SET connection_name = $2, driver = $3, dsn_redacted = $4,
				dsn_sealed = coalesce($5, dsn_sealed), description = $6, production = $7, access = $8, updated_at = now(),
				version = version + 1
			WHERE connection_id = $1 RETURNING `+connectionColumns, c.ConnectionID, c.Name, c.Driver, shown, sealed,
			c.Description, c.Production, c.Access)
		if err != nil {
			return err
		}
		saved, err = pgx.CollectExactlyOneRow(rows, toConnection)
		return err
	})
	return saved, dberr.Saving("connection", c.Name, err)
}

// lockedConnection reads a connection that nobody else changes, counts the users of or deletes until tx ends.
func lockedConnection(ctx context.Context, tx pgx.Tx, id string) (c store.Connection, err error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", connectionLock); err != nil {
		return c, err
	}
	rows, err := tx.Query(ctx, "SELECT "+connectionColumns+" FROM connections WHERE connection_id = $1 FOR UPDATE", id)
	if err != nil {
		return c, err
	}
	c, err = pgx.CollectExactlyOneRow(rows, toConnection)
	return c, dberr.Reading("connection", id, err)
}

func (s *Store) insertConnection(ctx context.Context, c store.Connection) (store.Connection, error) {
	c.ConnectionID = newID()
	dsn := c.AddressToSave()
	rows, err := s.pool.Query(ctx,
		`INSERT INTO connections (connection_id, connection_name, driver, dsn_redacted, dsn_sealed, description, production,
			access) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING `+connectionColumns,
		c.ConnectionID, c.Name, c.Driver, s.secrets.Hide(c.Driver, dsn),
		s.keys.Seal([]byte(dsn), connectionContext(c.ConnectionID)), c.Description, c.Production, c.Access)
	if err != nil {
		return c, dberr.Saving("connection", c.Name, err)
	}
	saved, err := pgx.CollectExactlyOneRow(rows, toConnection)
	return saved, dberr.Saving("connection", c.Name, err)
}

// EnsureBuiltin implements api.ConnectionStore.
func (s *Store) EnsureBuiltin(ctx context.Context, c store.Connection) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	id, dsn := newID(), c.AddressToSave()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", connectionLock); err != nil {
			return err
		}
		var sealed string
		var isBuiltin bool
		err := tx.QueryRow(ctx, "SELECT connection_id, dsn_sealed, builtin FROM connections WHERE connection_name = $1 "+
			"FOR UPDATE", c.Name).
			Scan(&id, &sealed, &isBuiltin)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err == nil && !isBuiltin {
			return nil // somebody had the name first
		}
		if err == nil {
			if now, err := s.unseal(sealed, connectionContext(id)); err == nil && now.Reveal() == dsn {
				return nil
			}
		}
		_, err = tx.Exec(
			ctx,
			`INSERT INTO connections (connection_id, connection_name, driver, dsn_redacted, dsn_sealed, description, builtin)
			VALUES ($1, $2, $3, $4, $5, $6, true)
			ON CONFLICT (connection_name) DO UPDATE SET driver = excluded.driver, dsn_redacted = excluded.dsn_redacted,
				dsn_sealed = excluded.dsn_sealed, description = excluded.description, builtin = true, updated_at = now(),
				version = connections.version + 1`,
			id,
			c.Name,
			c.Driver,
			s.secrets.Hide(c.Driver, dsn),
			s.keys.Seal([]byte(dsn), connectionContext(id)),
			c.Description,
		)
		return err
	})
	return dberr.Failed(fmt.Sprintf("saving the built-in connection %q", c.Name), err)
}

// Connection implements store.ConnectionFinder.
func (s *Store) Connection(ctx context.Context, id string) (store.Connection, error) {
	return s.connection(ctx, "connection_id", id)
}

// ConnectionByName implements store.ConnectionFinder.
func (s *Store) ConnectionByName(ctx context.Context, name string) (store.Connection, error) {
	return s.connection(ctx, "connection_name", name)
}

func (s *Store) connection(ctx context.Context, column, value string) (store.Connection, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+connectionColumns+" FROM connections WHERE "+column+" = $1", value)
	if err != nil {
		return store.Connection{}, dberr.Failed("reading connection", err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, toConnection)
	return c, dberr.Reading("connection", value, err)
}

// ListConnections implements api.ConnectionStore; builtin ones come first.
func (s *Store) ListConnections(ctx context.Context) ([]store.Connection, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+connectionColumns+" FROM connections ORDER BY builtin DESC, connection_name")
	if err != nil {
		return nil, dberr.Failed("listing connections", err)
	}
	connections, err := pgx.CollectRows(rows, toConnection)
	return connections, dberr.Failed("listing connections", err)
}

// DeleteConnection implements api.ConnectionStore.
func (s *Store) DeleteConnection(ctx context.Context, id string, version int64) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		c, err := lockedConnection(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case c.Builtin:
			return store.BuiltinConnectionError(c.Name)
		case version != 0 && version != c.Version:
			return store.ConcurrentEditError("connection", c.Name, "", c.UpdatedAt, c.Version)
		}
		if err := unused(ctx, tx, c, "deleted"); err != nil {
			return err
		}
		if err := unwritten(ctx, tx, c); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "DELETE FROM connections WHERE connection_id = $1", id)
		return err
	})
	return dberr.Failed("deleting connection", err)
}

// references is a condition on a document: it has the connection with the id $1, or names it by $2 without an id, as
// what was stored by earlier versions does.
func references(document string) string {
	return `EXISTS (SELECT FROM (SELECT ` + document + ` -> 'target' AS t
			UNION ALL SELECT jsonb_array_elements(coalesce(` + document + ` #> '{matrix,targets}', '[]'))) targets
		WHERE t ->> 'connection_id' = $1 OR NOT t ? 'connection_id' AND t -> 'connection' = to_jsonb($2::text))`
}

// unused returns store.ErrInUse while a template, or a run that may still
// connect, names the connection.
func unused(ctx context.Context, tx pgx.Tx, c store.Connection, done string) error {
	var templates, runs int
	err := tx.QueryRow(ctx, `SELECT
		(SELECT count(*) FROM test_templates WHERE `+references("config")+`),
		(SELECT count(*) FROM run_status WHERE status IN ('PREPARED', 'RUNNING', 'STOPPING', 'CANCELLING')
			AND `+references("scenario_config")+`)`, c.ConnectionID, c.Name).Scan(&templates, &runs)
	if err != nil {
		return err
	}
	if templates+runs == 0 {
		return nil
	}
	return store.ConnectionInUseError(c.Name, done, templates, runs)
}

// unwritten returns store.ErrInUse while a sink of a continuous query writes to the connection, whatever that was
// called when the sink was made. Who makes a sink locks the connection's row, see catalogrows.
func unwritten(ctx context.Context, tx pgx.Tx, c store.Connection) error {
	rows, err := tx.Query(ctx, "SELECT name FROM sinks WHERE config ->> $1 = $2 ORDER BY name", catalog.ConnectionID,
		c.ConnectionID)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return err
	}
	return store.SinkConnectionError(c.Name, names)
}
