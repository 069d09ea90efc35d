package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// pooler is what is known of a pooler (PgBouncer and its kind) before the server.
type pooler uint8

const (
	poolerUnknown pooler = iota
	poolerNone
	poolerThere
)

// notePooler notes whether a pooler answers: the session that a statement runs in is then
// not the one whose key the connection was given when it was opened.
func (d *database) notePooler(backend int64, version string, c *pgconn.PgConn) bool {
	there := backend != int64(c.PID()) || isPGlite(version)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pooler = poolerNone
	if there {
		d.pooler = poolerThere
	}
	return there
}

// unnamed reports whether statements are sent with each operation, because the
// session that prepared one need not be the one that executes it.
func (d *database) unnamed(ctx context.Context, c *pgconn.PgConn) (bool, error) {
	if d.cfg.Prepared != nil && *d.cfg.Prepared {
		return false, nil
	}
	d.mu.Lock()
	known := d.pooler
	d.mu.Unlock()
	if known == poolerUnknown {
		rs, err := query(ctx, c, "SELECT pg_catalog.pg_backend_pid(), pg_catalog.version()", nil)
		if err != nil {
			// What does not know the function has no sessions to tell apart.
			var server *pgconn.PgError
			if errors.As(err, &server) && !wire.Fatal(server) {
				return d.cfg.Prepared != nil, nil
			}
			if silent := d.unanswered(err, d.answer); silent != nil {
				return false, silent
			}
			return false, d.explain(err, d.answer)
		}
		known = poolerNone
		if len(rs.Rows) == 1 && shaped(rs, 2) == nil {
			version, _ := rs.Rows[0][1].(string)
			if pid, ok := rs.Rows[0][0].(int64); ok && d.notePooler(pid, version, c) {
				known = poolerThere
			}
		}
	}
	if known == poolerThere {
		if err := d.sharedSession(); err != nil {
			return false, err
		}
	}
	return known == poolerThere || d.cfg.Prepared != nil, nil
}

// sharedSession refuses what a pooler would give to whoever has the session next, and take from this run.
func (d *database) sharedSession() error {
	for _, sql := range d.cfg.Session {
		if strings.Contains(strings.ToUpper(sql), "SESSION CHARACTERISTICS") {
			return &engine.Error{Code: engine.CodeTarget,
				Message: "The connection goes through a pooler, and workload.isolation_level cannot be set there: in " +
					"transaction mode a pooler gives every transaction another session.",
				Hint: "Connect to the server itself; or leave workload.isolation_level out; or, where the pooler is in " +
					"session mode, set target.prepared: true."}
		}
	}
	return nil
}

// poolerNote says how statements travel through the pooler.
func (d *database) poolerNote() string {
	if d.cfg.Prepared != nil && *d.cfg.Prepared {
		return "The connection goes through a pooler. Statements are prepared once for each connection, as " +
			"target.prepared asks: the pooler has to be in session mode, or follow prepared statements (PgBouncer 1.21 with " +
			"max_prepared_statements)."
	}
	return "The connection goes through a pooler (PgBouncer or its kind), so every operation brings its statement, and " +
		"the server parses it again. Where the pooler keeps sessions or follows prepared statements, target.prepared: " +
		"true measures without that."
}

// throughPooler explains an error that only a pooler causes; nil for every other one.
func throughPooler(err error) *engine.Error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return nil
	}
	const kept = "A pooler between Loadstone and the server gives every transaction another session, and prepared " +
		"statements stay behind"
	switch {
	case strings.Contains(server.Message, "statement pooling"):
		return &engine.Error{Code: engine.CodeTarget, Cause: err,
			Message: "The pooler (PgBouncer) is in statement mode, in which there are no transactions: " + server.Message + ".",
			Hint: "Set pool_mode to session or transaction in pgbouncer.ini, for this database or user, or connect to the " +
				"server itself. Loadstone looks at a target in transactions that only read."}
	case server.Code == "26000", server.Code == "42P05":
		return &engine.Error{Code: engine.CodeTarget, Cause: err, Message: kept + ": " + server.Message + ".",
			Hint: "Set target.prepared: false, or have the pooler follow prepared statements (PgBouncer 1.21: " +
				"max_prepared_statements), or connect to the server itself."}
	case strings.Contains(server.Message, "unsupported startup parameter"):
		return &engine.Error{Code: engine.CodeTarget, Cause: err, Message: "The pooler (PgBouncer) refuses the connection: " +
			server.Message + ".",
			Hint: "Leave the parameter out of the connection, or name it in ignore_startup_parameters of pgbouncer.ini."}
	case strings.Contains(server.Message, "no such database") &&
		server.Code == "08P01", strings.Contains(server.Message, "pgbouncer cannot connect"),
		strings.Contains(server.Message, "server login has been failing"),
		strings.Contains(server.Message, "no more connections allowed"),
		strings.Contains(server.Message, "query_wait_timeout"):
		return &engine.Error{Code: engine.CodeTarget, Cause: err, Message: "The pooler (PgBouncer) refuses: " +
			server.Message + ".",
			Hint: "Look at the sections [databases] and [users], pool sizes and max_client_conn in pgbouncer.ini, and at its " +
				"log."}
	}
	return nil
}
