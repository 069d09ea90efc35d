package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// transaction is one whose rows are written, or were to be.
type transaction struct {
	// xid is that of the whole life of the server: an xid8.
	xid string
	// serverID is the incarnation of the server that has given it out.
	serverID string
}

// A commit that is acknowledged has to last: where the server, the database or the user would not wait for the disk,
// this transaction does. The setting ends with it, which a pooler between does not see either.
const beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT pg_catalog.pg_current_xact_id()::text, pg_catalog.set_config('synchronous_commit',
	CASE pg_catalog.current_setting('synchronous_commit') WHEN 'off' THEN 'on'
	ELSE pg_catalog.current_setting('synchronous_commit') END, true)`

// begin begins a transaction, and returns its number.
func (s *Sink) begin(ctx context.Context) (transaction, error) {
	results, err := s.conn.Exec(ctx, beginSQL).ReadAll()
	if err != nil {
		return transaction{}, err
	}
	if len(results) != 2 || len(results[1].Rows) != 1 || len(results[1].Rows[0]) != 2 {
		return transaction{}, errUnexpectedReply
	}
	return transaction{xid: string(results[1].Rows[0][0]), serverID: s.serverID}, nil
}

var errUnexpectedReply = errors.New("the server answered otherwise than Postgres does")

// rollback ends a transaction that has failed, and returns why.
func (s *Sink) rollback(ctx context.Context, why error) error {
	if !s.conn.IsClosed() {
		if _, err := s.conn.Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
			closeConn(s.conn)
		}
	}
	return why
}

// commit ends the transaction. unclear says that it may have been carried out though there is an error. Whether it was
// sent is not asked: pgconn.SafeToRetry is also true of connections that broke while the answer was awaited.
func (s *Sink) commit(ctx context.Context) (unclear bool, err error) {
	results, err := s.conn.Exec(ctx, "COMMIT").ReadAll()
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said) && said.SeverityUnlocalized == "ERROR":
		// Refused, a constraint that is looked at at the end for one: nothing was committed.
		return false, s.rollback(ctx, err)
	case err != nil:
		closeConn(s.conn)
		return true, err
	case len(results) != 1 || results[0].CommandTag.String() != "COMMIT":
		closeConn(s.conn)
		return false, errUnexpectedReply
	}
	return false, nil
}

// What became of a transaction whose COMMIT was not answered.
const statusSQL = "SELECT pg_catalog.pg_xact_status($1::xid8)"

// codeFuture is the error of a transaction's number that was not given out yet.
const codeFuture = "22023"

// committed reports whether a transaction was committed. An error that does not stay says that this is not known yet.
func (s *Sink) committed(ctx context.Context, t transaction) (bool, error) {
	if s.serverID != "" && t.serverID != "" && systemID(s.serverID) != systemID(t.serverID) {
		return false, mismatchFailure(
			"another server answers now, and whether the last rows were committed on the one before can not "+
				"be asked",
			"compare the table with the source, then DROP the query and CREATE it again",
			nil,
		)
	}
	status, err := askOne(ctx, s.conn, statusSQL, t.xid)
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said) && said.Code == codeFuture:
		return false, nil // a crash has taken it back
	case err != nil:
		return false, err
	}
	switch status {
	case "committed":
		if s.serverID != "" && s.serverID == t.serverID {
			return true, nil
		}
		return s.tableHasRows(ctx, t)
	case "aborted":
		return false, nil
	case "in progress":
		return false, errRunning
	}
	return false, mismatchFailure("the server does not know any more whether the last rows were committed",
		"compare the table with the source, then DROP the query and CREATE it again", nil)
}

var errRunning = errors.New("the server still carries out the last COMMIT")

// codeDenied is the error of a table that may not be read.
const codeDenied = "42501"

// tableHasRows reports whether the table has rows of a transaction: that of its number which is committed may be
// another one, where a crash came between. Who may not read the table has to believe the number.
func (s *Sink) tableHasRows(ctx context.Context, t transaction) (bool, error) {
	has, err := askOne(ctx, s.conn, fmt.Sprintf("SELECT EXISTS (SELECT FROM %s WHERE xmin = (($1::xid8)::xid))::text",
		s.at.Quoted()), t.xid)
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said) && said.Code == codeDenied:
		return true, nil
	case err != nil:
		return false, err
	}
	return has == "true", nil
}

// incarnation names a server, its line of history, and when it was started or has recovered: as long as it is the
// same, no number of a transaction was given out twice. It is empty where a server does not say.
func incarnation(ctx context.Context, conn *pgconn.PgConn) string {
	born, err := askOne(ctx, conn, `SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()) || ' ' ||
		left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) || ' ' ||
		pg_catalog.pg_postmaster_start_time() || ' ' ||
		coalesce((SELECT stats_reset FROM pg_catalog.pg_stat_bgwriter)::text, '')`)
	if err != nil {
		return ""
	}
	return born
}

// systemID is the part of an incarnation that outlives restarts.
func systemID(born string) string {
	id, _, _ := strings.Cut(born, " ")
	return id
}

// transientCodes are the SQLSTATEs, or their classes, of what ends by itself: connections, resources, shutdowns, locks,
// serialization, a standby that is not the primary yet.
var transientCodes = []string{"08", "53", "57", "58", "40", "55P03", "25006"}

// isPermanent reports whether another attempt is of no use.
func isPermanent(err error) bool {
	var known *sql.Error
	var misfit *MismatchError
	if errors.As(err, &known) || errors.As(err, &misfit) || errors.Is(err, ErrRefused) {
		return true
	}
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return false
	}
	for _, p := range transientCodes {
		if strings.HasPrefix(said.Code, p) {
			return false
		}
	}
	return true
}

// explain returns an error of opening a sink as a *sql.Error.
func explain(err error) error {
	var known *sql.Error
	var misfit *MismatchError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &misfit):
		return mismatchFailure(misfit.Message, misfit.Hint, err)
	case isPermanent(err):
		return mismatchFailure(safeMessage(err), "", err)
	}
	return failure(sql.NetworkError, "Postgres can not be written to: "+safeMessage(err), "", err)
}

// retryTimeoutError is what a query ends with when a transaction's rows can not be written, and with them all that the
// sink was given since. It needs mu.
func (s *Sink) retryTimeoutError(err error, rows int, unclear bool) error {
	behind := s.filling.rows + s.waiting
	what := fmt.Sprintf("%d rows were not written to %s", rows+behind, s.at.Shown())
	if unclear {
		what = fmt.Sprintf("whether the last %d rows are in %s is not known", rows, s.at.Shown())
		if behind > 0 {
			what += fmt.Sprintf(", and %d more were not written", behind)
		}
	}
	var known *sql.Error
	switch {
	case errors.As(err, &known):
		return failure(known.Kind, what+": "+known.Message, known.Hint, err)
	case isPermanent(err):
		return mismatchFailure(what+": "+safeMessage(err), "put that right, then DROP the query and CREATE it again", err)
	}
	return failure(sql.NetworkError,
		fmt.Sprintf("%s: Postgres could not be written to for %s: %s", what, s.o.RetryTimeout, safeMessage(err)),
		"put that right, then DROP the query and CREATE it again", err)
}

// attemptError is why an attempt has failed, as readers of the query see it.
type attemptError struct{ error }

func (t attemptError) Error() string {
	return "Postgres can not be written to: " + safeMessage(t.error)
}

// safeMessage is an error without what may be a secret: of the server its message, of a connection what broke.
func safeMessage(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		text := said.Message
		if said.Detail != "" {
			text += ": " + said.Detail
		}
		if said.Where != "" {
			where, _, _ := strings.Cut(said.Where, "\n")
			text += " (" + where + ")"
		}
		return text + " (" + said.Code + ")"
	}
	return err.Error()
}
