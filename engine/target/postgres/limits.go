package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
)

// outOfLocks explains that the server's table of locks is full; nil for every other error.
func outOfLocks(err error) *engine.Error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "53200" ||
		!strings.Contains(server.Message+server.Hint, "shared memory") ||
		server.Hint != "" && !strings.Contains(server.Hint, "max_locks_per_transaction") &&
			!strings.Contains(server.Hint, "max_pred_locks_per_transaction") {
		return nil
	}
	setting := "max_locks_per_transaction"
	if strings.Contains(server.Hint, "max_pred_locks_per_transaction") {
		setting = "max_pred_locks_per_transaction"
	}
	return &engine.Error{Code: engine.CodeTarget, Cause: err,
		Message: "The server has no room for another lock (" + server.Message + ").",
		Hint: "Raise " + setting + " in postgresql.conf and restart the server. A statement on a partitioned table locks " +
			"every partition and each of its indexes, once for each connection: fewer connections or partitions help, too, " +
			"and conditions on the partition key."}
}

// explained are errors of a statement that a user-facing error of its own explains better than the statement does; nil
// for every other one.
func explained(err error) *engine.Error {
	if known := throughPooler(err); known != nil {
		return known
	}
	return outOfLocks(err)
}

// roles are what target_session_attrs asks for, in words too, and what a server is that does not have it.
var roles = []struct {
	cause              error
	name, words, other string
}{
	{pgconn.ErrReadOnlyConnection, "read-write", "read-write", "takes no writes"},
	{pgconn.ErrReadWriteConnection, "read-only", "read-only", "takes writes"},
	{pgconn.ErrPrimaryConnection, "standby", "a standby", "is a primary"},
	{pgconn.ErrStandbyConnection, "primary", "a primary", "is a standby"},
}

// lacksRole explains that no host has the role that target_session_attrs asks for; "" for other errors.
func (d *database) lacksRole(err error) (message, hint string) {
	for _, r := range roles {
		if !errors.Is(err, r.cause) {
			continue
		}
		hosts := d.conn.Addresses()
		message = fmt.Sprintf(
			"%s %s, and target_session_attrs=%s asks for one that is %s.",
			hosts[0],
			r.other,
			r.name,
			r.words,
		)
		if len(hosts) > 1 {
			message = fmt.Sprintf("None of %s is %s, as target_session_attrs=%s asks: what answered %s.",
				strings.Join(hosts, ", "), r.words, r.name, r.other)
		}
		return message, "Name a server of that role as host, or change target_session_attrs (any takes every server)."
	}
	return "", ""
}

// unanswered explains that a server let a connection in and then did not answer: as a pooler does whose sessions are
// all taken.
func (d *database) unanswered(err error, within time.Duration) *engine.Error {
	if !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		return nil
	}
	return &engine.Error{Code: engine.CodeTarget, Cause: err,
		Message: fmt.Sprintf("%s let the connection in, and did not answer its first statement within %v.", d.address(),
			within),
		Hint: "A pooler in session mode does so while all of its sessions are taken: use fewer connections, or raise its " +
			"pool (default_pool_size of PgBouncer, num_init_children of Pgpool). Without a pooler, the server is overloaded."}
}

// isForeign reports an error of what does not know a function, a table or a syntax that every Postgres has.
func isForeign(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) || wire.Fatal(server) || throughPooler(err) != nil {
		return false
	}
	class := server.Code[:min(2, len(server.Code))]
	// Some have codes of their own, or none.
	return server.Code != "42501" && (slices.Contains([]string{"42", "0A", "XX", "00", "", "HY", "90", "3D", "3F"}, class))
}

// foreign explains an error of what speaks Postgres' protocol and is none: it is asked what every Postgres knows, and
// does not. It is nil for every other error.
func (d *database) foreign(ctx context.Context, c *pgconn.PgConn, err error) *engine.Error {
	if !isForeign(err) || c.IsClosed() || c.TxStatus() != stateIdle {
		return nil
	}
	const every = "SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('server_version_num')"
	probe := execAll(ctx, c, every)
	if !isForeign(probe) {
		return nil
	}
	version := c.ParameterStatus("server_version")
	if rs, wrong := c.Exec(ctx, "SELECT version()").ReadAll(); wrong == nil && len(rs) == 1 && len(rs[0].Rows) == 1 &&
		len(rs[0].Rows[0]) == 1 {
		version = string(rs[0].Rows[0][0])
	}
	what := "It does not tell its version."
	if version != "" {
		what = fmt.Sprintf("Its version string is %q.", shorten(version))
	}
	return &engine.Error{Code: engine.CodeTarget, Cause: err,
		Message: fmt.Sprintf("What answers at %s speaks Postgres' protocol and is not Postgres: to a question that every "+
			"Postgres answers (pg_backend_pid, server_version_num) it says: %s. %s", d.address(),
			strings.TrimSuffix(sentence(probe), "."), what),
		Hint: "Loadstone needs Postgres' own catalog to look at tables. Check the port, or use what is Postgres itself."}
}
